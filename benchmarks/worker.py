"""One subject under one measure, in a process of its own.

    python -m benchmarks.worker JOB

JOB is JSON: subject, measure, its parameters, places. Each line on stdin asks for one round, whose sample is answered
as one line of JSON; the end of stdin ends the worker. What a subject prints goes to stderr.
"""

import asyncio
import importlib
import json
import logging
import os
import sys
import warnings
from dataclasses import asdict

from benchmarks.measures import MEASURES
from benchmarks.subjects.ports import Place


async def lines() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def work(answers: int) -> None:
    job = json.loads(sys.argv[1])
    subject = importlib.import_module(f"benchmarks.subjects.{job['subject']}").SUBJECT
    places = [Place(**place) for place in job["places"]]
    orders = await lines()
    async with MEASURES[job["measure"]](subject, places, **job["parameters"]) as one_round:
        os.write(answers, b'"ready"\n')
        while await orders.readline():
            os.write(answers, json.dumps(asdict(await one_round())).encode() + b"\n")


def main() -> None:
    answers = os.dup(1)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)  # the peers log what they think of our reference servers
    asyncio.run(work(answers))


if __name__ == "__main__":
    main()
