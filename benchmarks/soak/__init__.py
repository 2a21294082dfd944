"""Chaos by a seed, over twenty servers: nothing may leak, and every call must end once.

    python -m benchmarks.soak [--seconds 600] [--seed 1] [--servers 20]

`server` is a server whose tools misbehave on demand, `plan` what is done by a seed, `actors` who does it, `inspection`
what is looked at when everybody rests.
"""
