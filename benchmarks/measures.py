"""How one round of each row is measured.

Owns: what a round does, and the seconds and CPU seconds that it took.
Never: knows which subject it measures, or what the figures mean.

A measure is an async context manager: entering prepares, what it gives runs one round, leaving cleans up. CPU time
is that of the measuring process with all its threads; the servers' is not in it.
"""

import asyncio
import gc
import resource
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from benchmarks.subjects.ports import Client, Place, Subject, expect


@dataclass(kw_only=True)
class Sample:
    """One round: seconds of each thing that was timed, CPU seconds of one on average, and other figures by name."""

    seconds: list[float]
    cpu: float
    more: dict[str, float] = field(default_factory=dict)


Round = Callable[[], Awaitable[Sample]]
Measure = Callable[..., AbstractAsyncContextManager[Round]]


async def timed(action: Callable[[], Awaitable[object]], times: int) -> Sample:
    seconds, cpu = [], time.process_time()
    for _ in range(times):
        began = time.perf_counter()
        await action()
        seconds.append(time.perf_counter() - began)
    return Sample(seconds=seconds, cpu=(time.process_time() - cpu) / times)


@asynccontextmanager
async def calls(subject: Subject, places: Sequence[Place], *, times: int = 200) -> AsyncIterator[Round]:
    """Calls one after another, enough of them that the first ones, which find cold caches, do not tell."""
    async with subject.open(places) as clients:
        yield lambda: timed(clients[0].call, times)


@asynccontextmanager
async def in_flight(
    subject: Subject, places: Sequence[Place], *, count: int = 100, times: int = 3
) -> AsyncIterator[Round]:
    """`count` calls of one server at once, or one call of each of many."""
    async with subject.open(places) as clients:
        everyone = [clients[number % len(clients)] for number in range(count)]

        async def all_at_once() -> None:
            await asyncio.gather(*(client.call() for client in everyone))

        yield lambda: timed(all_at_once, times)


@asynccontextmanager
async def connecting(subject: Subject, places: Sequence[Place]) -> AsyncIterator[Round]:
    """Start or reach all servers and know their tools; then close them all."""

    async def one_round() -> Sample:
        cpu, began = time.process_time(), time.perf_counter()
        async with subject.open(places) as clients:
            counts = await asyncio.gather(*(client.tools() for client in clients))
            opened, closing = time.perf_counter() - began, time.perf_counter()
            cpu_to_open = time.process_time() - cpu
        closed = time.perf_counter() - closing
        expect(min(counts) > 0, counts)
        return Sample(
            seconds=[opened],
            cpu=cpu_to_open,
            more={"closing": closed, "cpu of closing": time.process_time() - cpu - cpu_to_open},
        )

    yield one_round


@asynccontextmanager
async def listing(subject: Subject, places: Sequence[Place], *, tools: int) -> AsyncIterator[Round]:
    """List every page and convert what it holds."""
    async with subject.open(places) as clients:

        async def whole() -> None:
            count = await clients[0].tools()
            expect(count == tools, count)

        yield lambda: timed(whole, 1)


@asynccontextmanager
async def refreshing(subject: Subject, places: Sequence[Place]) -> AsyncIterator[Round]:
    """One tool changed: have it all again."""
    async with subject.open(places) as clients:
        await clients[0].tools()
        yield lambda: timed(clients[0].touch, 1)


@asynccontextmanager
async def reading(subject: Subject, places: Sequence[Place], *, uri: str, size: int) -> AsyncIterator[Round]:
    """Read one large resource. `size` is in bytes; some of the text's characters have several."""
    async with subject.open(places) as clients:

        async def whole() -> None:
            length = await clients[0].read(uri)
            expect(length >= size * 0.9, length)

        async def one_round() -> Sample:
            sample = await timed(whole, 1)
            sample.more["peak MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            return sample

        yield one_round


@asynccontextmanager
async def memory(subject: Subject, places: Sequence[Place]) -> AsyncIterator[Round]:
    """Memory of the process for each idle connection, over that with one. One round: it can be measured once."""

    async def one_round() -> Sample:
        async with subject.open(places[:1]) as one:
            await used(one)
            before = resident_bytes()
            async with subject.open(places[1:]) as others:
                await used(others)
                each = (resident_bytes() - before) / len(others)
        return Sample(seconds=[], cpu=0.0, more={"KiB each": each / 1024, "MiB with one": before / 2**20})

    yield one_round


async def used(clients: Sequence[Client]) -> None:
    await asyncio.gather(*(client.tools() for client in clients))
    await asyncio.gather(*(client.call() for client in clients))
    gc.collect()


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as sizes:
        return int(sizes.read().split()[1]) * resource.getpagesize()


MEASURES: dict[str, Measure] = {
    measure.__name__: measure for measure in (calls, in_flight, connecting, listing, refreshing, reading, memory)
}
