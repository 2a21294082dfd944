"""Run a soak: rounds of chaos, a rest after each, and at the end the question what is left.

    python -m benchmarks.soak [--seconds 600] [--seed 1] [--servers 20] [--actors 6]

Exit status 0: nothing leaked, and every call began and ended once. A seed gives the same acts again; what the
scheduler makes of them differs.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import anyio

from benchmarks.soak import plan as planning
from benchmarks.soak.actors import Actor, Record, Wrong
from benchmarks.soak.inspection import Rest, descriptors, growth, left_over, rest, say, stored
from benchmarks.soak.plan import Plan
from benchmarks.soak.world import World, world
from interlock import Host

ROUND = 4.0
"""Seconds of chaos between two rests."""
SETTLING = 1.0
"""Seconds of a rest before anybody looks."""
CLOSING = 45.0
"""Seconds in which the host must have closed."""


@dataclass(kw_only=True)
class Report:
    seed: int
    plan: str
    seconds: float
    rests: list[Rest] = field(default_factory=list)
    acts: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


async def soak(given: argparse.Namespace, store: Path) -> Report:
    plans = planning.servers(given.servers)
    plan = Plan(given.seed, tuple(one.name for one in plans))
    report = Report(seed=given.seed, plan=plan.digest(), seconds=given.seconds)
    record = Record()
    with world(plans, max_life=given.seconds + 120) as surroundings:
        await one_host(surroundings, store)  # what is loaded once is loaded before anything is counted
        before = descriptors()
        await under_chaos(surroundings, store, plan, record, report, given)
        surroundings.close()
        await asyncio.sleep(0.2)
        report.problems += left_over(before, surroundings.processes())
    report.problems += growth(report.rests)
    async with Host({}, store=store) as host:
        for thread_id, told in record.statuses.items():
            report.problems += await stored(host, thread_id, told)
    report.acts, report.outcomes = dict(record.acts), dict(record.outcomes)
    return report


async def one_host(surroundings: World, store: Path) -> None:
    async with (
        Host(surroundings.configs, store=store, approvals="allow") as host,
        (await host.start_thread()).step(),
    ):
        pass


async def under_chaos(
    surroundings: World, store: Path, plan: Plan, record: Record, report: Report, given: argparse.Namespace
) -> None:
    closing = 0.0
    try:
        async with Host(surroundings.configs, store=store, approvals="allow") as host:
            actors = [Actor(number, host, surroundings, record) for number in range(given.actors)]
            await rounds(host, actors, plan, report, given.seconds)
            closing = time.monotonic()
    except* Wrong as several:
        report.problems += [str(error) for error in several.exceptions]
    if closing and time.monotonic() - closing > CLOSING:
        report.problems.append(f"the host took {time.monotonic() - closing:.0f} s to close")


async def rounds(host: Host, actors: Sequence[Actor], plan: Plan, report: Report, seconds: float) -> None:
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        async with anyio.create_task_group() as tasks:
            for actor in actors:
                tasks.start_soon(actor.begin_anew)
        until = anyio.current_time() + ROUND
        async with anyio.create_task_group() as tasks:
            for actor in actors:
                tasks.start_soon(actor.act, plan.acts(number, actor.number), until)
        async with anyio.create_task_group() as tasks:
            for actor in actors:
                tasks.start_soon(actor.begin_anew)
        await anyio.sleep(SETTLING)
        report.rests.append(rest(number, host))
        say(str(report.rests[-1]))
        number += 1


HONEST_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_ARENA_MAX": "1"}
"""For glibc: give back what is free, so that resident memory tells what is held (else a freed answer of some megabytes
leaves a hole that may stay for ever)."""


def main() -> int:
    if not HONEST_MEMORY.items() <= os.environ.items():
        command = [sys.executable, "-m", "benchmarks.soak", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | HONEST_MEMORY)  # noqa: S606 - itself again, and no shell
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--servers", type=int, default=20)
    parser.add_argument("--actors", type=int, default=6)
    parser.add_argument("--report", type=Path, help="write a JSON report to this file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="interlock-soak-") as folder:
        report = asyncio.run(soak(given, Path(folder, "store.db")))
    if given.report is not None:
        given.report.write_text(json.dumps(asdict(report), indent=1) + "\n", encoding="utf-8")
    print(f"seed {report.seed}, plan {report.plan}, {report.seconds:g} s, {len(report.rests)} rests")
    print(f"acts: {report.acts}")
    print(f"outcomes: {report.outcomes}")
    for problem in report.problems:
        print(f"PROBLEM: {problem}")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
