"""The rounds of a row, interleaved.

Owns: the workers of a row, the order of the rounds (shuffled by a seed), the server of HTTP rows.
Never: measures; that happens in the workers.

All subjects of a row are ready before the first round; then each round asks every subject once, in an order of its
own, while the others rest. So a machine that becomes busy slows all of them alike, and ratios are taken round by round.
"""

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.environments import CACHE, ROOT, python_of
from benchmarks.rows import SUBJECTS, Row

ROUND_TIMEOUT = 300.0
"""Seconds; 50 MB through a quadratic reader take most of a minute on a quiet machine."""
ENOUGH = 25.0
"""Seconds that a subject may take in a row before it is left with the rounds that it has."""
TELLING = 5.0
"""Seconds from which on a first round counts instead of being a warm-up."""
LINE_LIMIT = 1 << 22


class WorkerFailed(Exception):
    """A worker ended or was silent instead of answering."""


@dataclass(kw_only=True)
class Rounds:
    """The samples of one subject by number of the round; `failure` is why there are none, or no more."""

    samples: dict[int, dict[str, Any]] = field(default_factory=dict)
    taken: float = 0.0
    failure: str | None = None


class Worker:
    """The process of one subject."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def answer(self) -> Any:
        assert self._process.stdout is not None
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), ROUND_TIMEOUT)
        except TimeoutError:
            raise WorkerFailed(f"no answer within {ROUND_TIMEOUT:g} s") from None
        if not line:
            raise WorkerFailed("it ended (see the log)")
        return json.loads(line)

    async def one_round(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        sample: dict[str, Any] = await self.answer()
        return sample

    async def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 20)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


async def run_row(row: Row, *, seed: int, rounds: int, log: Path) -> dict[str, Rounds]:
    """Every round of `row` for each of its subjects."""
    order = random.Random(f"{seed} {row.name}")
    results = {name: Rounds() for name in row.subjects}
    async with AsyncExitStack() as stack:
        places = await stack.enter_async_context(prepared_places(row))
        workers = {}
        for name in row.subjects:
            workers[name] = await start_worker(row, name, places, log)
            stack.push_async_callback(workers[name].close)
        await asyncio.gather(*(_ready(worker, results[name]) for name, worker in workers.items()))
        for number in range(-1, rounds):
            names = list(row.subjects)
            order.shuffle(names)
            for name in names:
                await _one_round(workers[name], results[name], number, last=rounds - 1)
    return results


async def start_worker(row: Row, name: str, places: list[dict[str, Any]], log: Path) -> Worker:
    job = {"subject": name, "measure": row.measure, "parameters": dict(row.parameters), "places": places}
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            python_of(SUBJECTS[name].environment),
            "-m",
            "benchmarks.worker",
            json.dumps(job),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
            limit=LINE_LIMIT,
            start_new_session=True,
        )
    return Worker(process)


async def _ready(worker: Worker, rounds: Rounds) -> None:
    try:
        await worker.answer()
    except WorkerFailed as failure:
        rounds.failure = str(failure)


async def _one_round(worker: Worker, rounds: Rounds, number: int, *, last: int) -> None:
    """Round -1 is the warm-up, and counts only where it takes so long, or where there is only one."""
    if rounds.failure is not None or rounds.taken > ENOUGH or (last == 0 and number == 0):
        return
    began = asyncio.get_running_loop().time()
    try:
        sample = await worker.one_round()
    except WorkerFailed as failure:
        rounds.failure = str(failure)
        return
    took = asyncio.get_running_loop().time() - began
    rounds.taken += took
    if number >= 0 or took > TELLING or last == 0:
        rounds.samples[number] = sample


@asynccontextmanager
async def prepared_places(row: Row) -> AsyncIterator[list[dict[str, Any]]]:
    """Where the servers of a row are, as a worker's job says it."""
    if row.server == "http":
        with http_server(row.options) as url:
            yield [{"name": "one", "url": url}]
        return
    command = [tiny_server()] if row.server == "tiny" else [sys.executable, "-m", "benchmarks.servers.stdio"]
    yield [{"name": f"server{number}", "command": [*command, *row.options]} for number in range(row.servers)]


@contextmanager
def http_server(options: tuple[str, ...]) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.servers.http", *options]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, start_new_session=True, text=True
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        assert server.stdin is not None
        server.stdin.close()


def tiny_server() -> str:
    """The tiny server, compiled."""
    source, program = ROOT / "benchmarks" / "servers" / "tiny.c", CACHE / "tiny"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-O2", "-o", program, source], check=True)
    return str(program)
