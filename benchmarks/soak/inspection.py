"""What is looked at when everybody rests, and when all is over.

Owns: the measures of one rest, the verdicts over all of them, the check of the stored events.
Never: disturbs the host: it collects garbage, and looks.
"""

import asyncio
import ctypes
import gc
import os
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from benchmarks.measures import resident_bytes
from interlock import Host
from interlock.connections.generation import Generation
from interlock.vocabulary.event import CallEnded, CallStarted

WATCHED = ("Generation", "Session", "Dispatcher", "SupervisedConnection", "Step", "Thread", "Journal", "Attempt")
"""Classes of the host whose living objects are counted."""
PER_CONNECTION = ("Session", "Dispatcher", "SupervisedConnection")
"""Of those, the ones that a living Generation may have once for each of its connections. How many connections there
are at a rest is chance (which servers were killed last, which Threads had begun their own): only what lives beyond
them can be a leak."""
WARM, LATE = 0.35, 0.3
"""The first share of all rests is warm-up, the last one is compared with what lies between."""
MEMORY_SLACK, BLOCK_SLACK = 8 * 2**20, 20_000
OBJECT_SLACK = 3


@dataclass(frozen=True, kw_only=True)
class Rest:
    """One rest. `memory` is resident bytes, `blocks` are Python's small objects, `connections` those that are ready,
    `held` those that some living Generation holds."""

    round: int
    memory: int
    blocks: int
    descriptors: int
    tasks: int
    connections: int
    held: int
    objects: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        objects = " ".join(f"{name}={count}" for name, count in self.objects.items() if count)
        return (
            f"round {self.round}: {self.memory / 2**20:.1f} MiB, {self.blocks} blocks, {self.descriptors} descriptors,"
            f" {self.tasks} tasks,"
            f" {self.connections} connections, {self.held} held; {objects}"
        )


def rest(number: int, host: Host) -> Rest:
    """Look at the process, after its garbage is gone."""
    for _ in range(3):
        gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # what is free but not given back says nothing about leaks
    ours = [thing for thing in gc.get_objects() if _is_ours(thing)]
    living = Counter(type(thing).__name__ for thing in ours)
    generations = [thing for thing in ours if isinstance(thing, Generation)]
    return Rest(
        round=number,
        memory=resident_bytes(),
        blocks=sys.getallocatedblocks(),
        descriptors=len(descriptors()),
        tasks=len(asyncio.all_tasks()),
        connections=sum(report.status.value == "ready" for report in host.reports()),
        held=len({id(connection) for one in generations for connection in one.connections.values()}),
        objects={name: living[name] for name in WATCHED},
    )


def _is_ours(thing: object) -> bool:
    kind = type(thing)
    return kind.__name__ in WATCHED and kind.__module__.startswith("interlock.")


def descriptors() -> dict[int, str]:
    """The open file descriptors of this process, and what each is."""
    found = {}
    for entry in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of the listing itself
            found[int(entry)] = os.readlink(f"/proc/self/fd/{entry}")
    return found


def growth(rests: Sequence[Rest]) -> Iterator[str]:
    """What has grown from the rests in the middle to the last ones; nothing if all is flat."""
    middle = rests[round(len(rests) * WARM) : round(len(rests) * (1 - LATE))]
    last = rests[round(len(rests) * (1 - LATE)) :]
    if not middle or not last:
        yield f"{len(rests)} rests are too few to judge; let it run longer"
        return
    before, after = (statistics.median(one.memory for one in some) for some in (middle, last))
    if after - before > max(MEMORY_SLACK, before * 0.08):
        yield f"memory grew from {before / 2**20:.1f} to {after / 2**20:.1f} MiB"
    before, after = (statistics.median(one.blocks for one in some) for some in (middle, last))
    if after - before > max(BLOCK_SLACK, before * 0.03):
        yield f"blocks of memory grew from {before:,.0f} to {after:,.0f}"
    for name in WATCHED:
        before, after = (statistics.median(_unexplained(one, name) for one in some) for some in (middle, last))
        if after - before > max(OBJECT_SLACK, before * 0.1):
            beyond = " beyond its connections" if name in PER_CONNECTION else ""
            yield f"living objects of {name}{beyond} grew from {before:g} to {after:g}"
    for name in ("tasks", "descriptors"):
        before, after = (
            statistics.median(getattr(one, name) / (one.connections + 1) for one in some) for some in (middle, last)
        )
        if after > before * 1.25 + 1:
            yield f"{name} for each connection grew from {before:.1f} to {after:.1f}"


def _unexplained(one: Rest, name: str) -> int:
    """The living objects of a class; of those that belong to a connection only the ones that are too many."""
    return max(0, one.objects[name] - one.held) if name in PER_CONNECTION else one.objects[name]


async def stored(host: Host, thread_id: str, told: Mapping[str, str]) -> list[str]:
    """What is wrong with the stored calls of a Thread: each must have begun once and ended once, with the status that
    its caller was told."""
    begun, ended = Counter[str](), dict[str, list[str]]()
    async with aclosing(host.events(thread_id)) as events:
        async for one in events:
            match one.event:
                case CallStarted(item=item):
                    begun[item.id] += 1
                case CallEnded(item=item):
                    ended.setdefault(item.id, []).append(item.status)
                case _:
                    pass
    wrong = [f"call {name} began {count} times" for name, count in begun.items() if count != 1]
    wrong += [f"call {name} ended as {ends}" for name in begun if len(ends := ended.get(name, [])) != 1]
    wrong += [f"call {name} ended and never began" for name in ended.keys() - begun.keys()]
    wrong += [
        f"call {name} was {status} for its caller, and is stored as {ended.get(name)}"
        for name, status in told.items()
        if ended.get(name) != [status]
    ]
    return [f"thread {thread_id}: {problem}" for problem in wrong]


def left_over(before: Mapping[int, str], processes: Mapping[int, str]) -> Iterator[str]:
    """What is left of a host that has closed."""
    for pid, command in processes.items():
        yield f"process {pid} still runs: {command[:150]}"
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        yield f"task {task.get_name()!r} still runs"
    for number, what in descriptors().items():
        if before.get(number) != what and number not in before:
            yield f"descriptor {number} is still open: {what}"
    gc.collect()
    living = Counter(type(thing).__name__ for thing in gc.get_objects() if _is_ours(thing))
    for name in ("Generation", "Session", "Dispatcher", "SupervisedConnection"):
        if living[name]:
            yield f"{living[name]} objects of {name} still live"


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
