"""How costs grow: a call with many Threads open, a refresh among many servers, a Step over many tools.

    python -m benchmarks.growth [--into FOLDER]

Each figure is the median of several rounds in one process, the sizes in turns. CPU is that of the host's process.
"""

import argparse
import asyncio
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from benchmarks.environments import ROOT
from benchmarks.report import number
from benchmarks.running import tiny_server
from benchmarks.subjects.ports import ARGUMENTS, TOOL, TOUCH, expect
from interlock import Host
from interlock.threads.step import Step
from interlock.threads.thread import Thread
from interlock.vocabulary.server import ServerConfig, StdioTransport

REFERENCE = ("-m", "benchmarks.servers.stdio")
PATIENCE = 300.0
NUMBERS = itertools.count()

Table = dict[str, dict[int, float]]
"""Figures by their name, then by size."""


def config(name: str, command: str, *arguments: str, shared: bool | None = None) -> ServerConfig:
    transport = StdioTransport(command=command, args=arguments)
    return ServerConfig(name=name, transport=transport, required=True, shared=shared)


@asynccontextmanager
async def opened(*configs: ServerConfig) -> AsyncIterator[Host]:
    servers = {one.name: one for one in configs}
    with tempfile.TemporaryDirectory(prefix="interlock-growth-") as folder:
        async with Host(servers, store=Path(folder, "store.db"), grace=PATIENCE) as host:
            yield host


async def timed(action: Callable[[], Awaitable[object]], times: int = 1) -> tuple[float, float]:
    """Seconds and CPU seconds of one `action`."""
    cpu, began = time.process_time(), time.perf_counter()
    for _ in range(times):
        await action()
    return (time.perf_counter() - began) / times, (time.process_time() - cpu) / times


def noted(table: Table, name: str, size: int, samples: list[tuple[float, float]]) -> None:
    """Milliseconds, of both clocks."""
    table.setdefault(f"{name}, ms", {})[size] = statistics.median(wall for wall, _ in samples) * 1e3
    table.setdefault(f"{name}, CPU ms", {})[size] = statistics.median(cpu for _, cpu in samples) * 1e3


# ---- a call, with many Threads open


async def threads(sizes: tuple[int, ...] = (1, 100, 1000), rounds: int = 20) -> Table:
    """All Threads share one connection, as with a server of 2026-07-28: else each would have a process."""
    table: Table = {}
    async with AsyncExitStack() as stack:
        called = {}
        for size in sizes:
            host = await stack.enter_async_context(opened(config("one", tiny_server(), shared=True)))
            called[size] = await host.start_thread()
            began = time.perf_counter()
            for _ in range(size - 1):
                await host.start_thread()
            if size > 1:
                table.setdefault("opening a Thread, ms", {})[size] = (time.perf_counter() - began) / (size - 1) * 1e3
        samples: dict[int, list[tuple[float, float]]] = {size: [] for size in sizes}
        for _, size in itertools.product(range(rounds), sizes):
            async with called[size].step() as step:
                samples[size].append(await timed(lambda: call(step), 40))
        for size in sizes:
            noted(table, "step.call", size, samples[size])
    return table


async def call(step: Step) -> None:
    result = await step.call(f"call-{next(NUMBERS)}", f"mcp__one__{TOOL}", ARGUMENTS)
    expect(result.text == "ok", result)


# ---- a refresh, when one of many servers changed


REST = 1.2
"""Seconds after which a server that changes its tools is heard at once again: one that does so all the time is heard
less and less often, and the waiting would be measured with the work."""


async def servers(sizes: tuple[int, ...] = (1, 10, 50), tools: int = 200, rounds: int = 12) -> Table:
    """From the notice of the server to the catalogue of the next Step. What counts is CPU: the time is the server's."""
    table: Table = {}
    for size in sizes:
        configs = [config(f"server{n}", sys.executable, *REFERENCE, "--tools", str(tools)) for n in range(size)]
        async with opened(*configs) as host:
            thread = await host.start_thread()
            async with thread.step() as step:
                expect(len(step.tools) >= size * tools, len(step.tools))
            samples = []
            for _ in range(rounds):
                await asyncio.sleep(REST)
                samples.append(await timed(lambda: changed(thread)))  # noqa: B023
            cpu = statistics.median(cpu for _, cpu in samples)
            table.setdefault(f"refresh of one server of {tools} tools, CPU ms", {})[size] = cpu * 1e3
    return table


async def changed(thread: Thread) -> None:
    catalog = thread.snapshot.catalog
    await thread.requests.call_tool("server0", TOUCH, {})
    while thread.snapshot.catalog is catalog:  # noqa: ASYNC110 - no notice tells of a new catalogue
        await asyncio.sleep(0.03)  # rarely: the looking costs too


# ---- a Step over many tools


async def steps(sizes: tuple[int, ...] = (10, 1000, 10_000), rounds: int = 15) -> Table:
    table: Table = {}
    async with AsyncExitStack() as stack:
        hosts = {}
        for size in sizes:
            options = ("--tools", str(size), "--page-size", "1000")
            host = await stack.enter_async_context(opened(config("one", sys.executable, *REFERENCE, *options)))
            hosts[size] = await host.start_thread()
        samples: dict[int, list[tuple[float, float]]] = {size: [] for size in sizes}
        for _, size in itertools.product(range(rounds), sizes):
            samples[size].append(await timed(lambda: one_step(hosts[size], size)))  # noqa: B023
        for size in sizes:
            noted(table, "a Step", size, samples[size])
    return table


async def one_step(thread: Thread, tools: int) -> None:
    async with thread.step() as step:
        expect(len(step.tools) >= tools, len(step.tools))


def markdown(tables: Mapping[str, Table]) -> str:
    lines = list[str]()
    for title, table in tables.items():
        sizes = sorted({size for figures in table.values() for size in figures})
        lines += [f"| {title} | " + " | ".join(f"{size:,}" for size in sizes) + " |"]
        lines += ["|---|" + "---|" * len(sizes)]
        lines += [
            f"| {name} | " + " | ".join(number(figures.get(size)) for size in sizes) + " |"
            for name, figures in table.items()
        ]
        lines.append("")
    return "\n".join(lines)


async def measured() -> dict[str, Table]:
    return {"Threads open": await threads(), "servers": await servers(), "tools": await steps()}


def main(into: Path) -> None:
    tables = asyncio.run(measured())
    into.mkdir(parents=True, exist_ok=True)
    (into / "growth.json").write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")
    (into / "growth.md").write_text(markdown(tables), encoding="utf-8")
    print(markdown(tables))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "benchmarks" / "results")
    main(parser.parse_args().into)
