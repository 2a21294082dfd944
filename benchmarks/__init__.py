"""What Interlock costs, beside the floor and beside its peers; and what it survives.

python -m benchmarks            the table and the chart (benchmarks/results)
python -m benchmarks.growth     how costs grow with Threads, servers and tools
python -m benchmarks.soak       chaos by a seed, until something leaks or the time is over
python -m benchmarks.store      appends beside a bare insert
"""
