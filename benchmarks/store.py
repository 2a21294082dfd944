"""What an append costs beside a bare SQLite insert, and what resuming a long Thread costs.

    python -m benchmarks.store [appends]

The bare insert writes the same row with the plain driver in the same journal mode; both are timed in
turns within one run, so that a busy machine slows both. The figure is the ratio of the medians.
"""

import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

from interlock.history.fold import Fold
from interlock.history.journal import Journal
from interlock.stores import codec
from interlock.stores.sqlite import SqliteStore, open_sqlite
from interlock.vocabulary.event import CallEnded, CallStarted, Event, ThreadStarted, TurnStarted
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.tool import ToolResult

WRITERS = 50
LONG_THREAD = 100_000


class WallClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def now_milliseconds(self) -> int:
        return time.time_ns() // 1_000_000


def call_ended(number: int) -> CallEnded:
    item = McpToolCallItem(
        id=f"call-{number}",
        server="git",
        tool="git_status",
        public_name="mcp__git__git_status",
        arguments={"repo_path": "."},
        status="completed",
        result=ToolResult(content=({"type": "text", "text": "On branch main, nothing to commit. " * 8},)),
        duration=12,
    )
    return CallEnded(turn_id="turn", step_id="step", item=item, effect="done")


def call_started(number: int) -> CallStarted:
    return CallStarted(turn_id="turn", step_id="step", item=call_ended(number).item)


def bare_insert(path: Path) -> Callable[[int], None]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(
        "CREATE TABLE events (thread_id TEXT, sequence INTEGER, at INTEGER, kind TEXT, version INTEGER, payload TEXT,"
        " PRIMARY KEY (thread_id, sequence)) WITHOUT ROWID"
    )
    row = codec.encode(call_ended(0))

    def insert(number: int) -> None:
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", ("bare", number, 0, *row))

    return insert


async def one_by_one(store: SqliteStore, insert: Callable[[int], None], count: int) -> None:
    bare, append, record = list[float](), list[float](), list[float]()
    started: list[Event] = [ThreadStarted(), TurnStarted(turn_id="turn")]
    await store.append("appended", started, after=0, at=0)
    async with Journal.open(store, "recorded", WallClock()) as journal:
        await journal.record_all(started)
        for number in range(1, count + 1):
            began = time.perf_counter()
            insert(number)
            bare.append(time.perf_counter() - began)
            event = call_ended(number)
            began = time.perf_counter()
            await store.append("appended", [event], after=number + 1, at=0)
            append.append(time.perf_counter() - began)
            opened = call_started(number)
            began = time.perf_counter()
            await journal.record(opened)
            record.append(time.perf_counter() - began)
    floor = statistics.median(bare)
    print(f"bare insert            {floor * 1e6:8.1f} µs")
    print(
        f"store.append           {statistics.median(append) * 1e6:8.1f} µs   {statistics.median(append) / floor:5.2f} x"
    )
    print(
        f"journal.record         {statistics.median(record) * 1e6:8.1f} µs   {statistics.median(record) / floor:5.2f} x"
    )


async def side_by_side(store: SqliteStore, insert: Callable[[int], None], count: int) -> None:
    rounds = max(1, count // WRITERS)
    began = time.perf_counter()
    for number in range(rounds * WRITERS):
        insert(1_000_000 + number)
    floor = (time.perf_counter() - began) / (rounds * WRITERS)

    async def write(thread_id: str) -> None:
        await store.append(thread_id, [ThreadStarted()], after=0, at=0)
        for number in range(rounds):
            await store.append(thread_id, [call_ended(number)], after=number + 1, at=0)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for writer in range(WRITERS):
            tasks.create_task(write(f"writer-{writer}"))
    each = (time.perf_counter() - began) / ((rounds + 1) * WRITERS)
    print(f"append, {WRITERS} at once    {each * 1e6:8.1f} µs   {each / floor:5.2f} x")


async def resume(store: SqliteStore) -> None:
    events = [call_ended(number) for number in range(LONG_THREAD)]
    for after in range(0, LONG_THREAD, 1000):
        await store.append("long", events[after : after + 1000], after=after, at=0)
    began = time.perf_counter()
    fold = Fold("long")
    async with aclosing(store.read("long")) as stored:
        async for event in stored:
            fold.apply(event)
    assert len(fold.state.turns[0].items) == LONG_THREAD
    seconds = time.perf_counter() - began
    print(f"resume {LONG_THREAD:,} events {seconds:6.2f} s   {seconds / LONG_THREAD * 1e6:5.1f} µs an event")


async def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        insert = bare_insert(Path(folder, "bare.db"))
        async with open_sqlite(Path(folder, "interlock.db")) as store:
            await one_by_one(store, insert, count)
            await side_by_side(store, insert, count)
            await resume(store)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000))
