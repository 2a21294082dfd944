"""What a long Thread costs to resume, with a checkpoint and without, and what the store takes of a turn.

    python -m benchmarks.threads [events]

Resuming is opening the Journal with the origins that follow it, as a Host does; both ways are timed in turns
within one run, and the figure is the ratio of the medians. The turn has 20 calls, each asked for by a model that
answers after 200 ms; the store's share is the time spent waiting for its appends.
"""

import asyncio
import resource
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.store import WallClock
from interlock import Host
from interlock.history.journal import Journal
from interlock.origins.store import Origins
from interlock.stores.sqlite import SqliteStore, open_sqlite
from interlock.testing import Call, Say, ScriptedModel
from interlock.vocabulary.conversation import (
    CallEntry,
    ModelEvent,
    ModelRequest,
    OutputEntry,
    TextPart,
    Usage,
    UserEntry,
)
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    EntriesRecorded,
    Event,
    MessageCompleted,
    StepCaptured,
    StoredEvent,
    ThreadCompacted,
    ThreadStarted,
    TurnEnded,
    TurnStarted,
    UsageRecorded,
)
from interlock.vocabulary.item import AgentMessageItem, McpToolCallItem, UserMessageItem
from interlock.vocabulary.tool import ToolResult

LONG_THREAD = 100_000
CALLS_OF_A_TURN = 20
ROUNDS = 3
THINKING = 0.2
"""Seconds that the model takes for an answer."""


def call(call_id: str) -> Iterator[Event]:
    item = McpToolCallItem(
        id=call_id,
        server="git",
        tool="git_status",
        public_name="mcp__git__git_status",
        arguments={"repo_path": "."},
    )
    text = "On branch main, nothing to commit. " * 8
    result = ToolResult(content=({"type": "text", "text": text},))
    ended = McpToolCallItem(
        id=item.id,
        server=item.server,
        tool=item.tool,
        public_name=item.public_name,
        arguments=item.arguments,
        status="completed",
        result=result,
        duration=12,
    )
    entry = CallEntry(call_id=call_id, name=item.public_name, arguments='{"repo_path": "."}')
    yield StepCaptured(turn_id="", step_id="s", generation=1, revision=1, tools=("mcp__git__git_status",))
    yield EntriesRecorded(turn_id="", entries=(entry,))
    yield UsageRecorded(turn_id="", usage=Usage(input_tokens=1000, output_tokens=20))
    yield CallStarted(turn_id="", step_id="s", item=item)
    yield CallEnded(turn_id="", step_id="s", item=ended, effect="done")
    yield EntriesRecorded(turn_id="", entries=(OutputEntry(call_id=call_id, content=(TextPart(text=text),)),))


def turn(number: int) -> Iterator[Event]:
    """A turn of 20 calls; every tenth ends with a compaction, as a budget of tokens would have it."""
    parts = (TextPart(text=f"question {number}"),)
    yield TurnStarted(turn_id=f"t{number}", input=parts)
    yield MessageCompleted(turn_id=f"t{number}", item=UserMessageItem(id=f"u{number}", content=parts))
    yield EntriesRecorded(turn_id=f"t{number}", entries=(UserEntry(content=parts),))
    for place in range(CALLS_OF_A_TURN):
        for event in call(f"c{number}-{place}"):
            object.__setattr__(event, "turn_id", f"t{number}")
            yield event
    yield MessageCompleted(turn_id=f"t{number}", item=AgentMessageItem(id=f"a{number}", text="All is clean. " * 20))
    yield TurnEnded(turn_id=f"t{number}", status="completed", last_message="All is clean.")
    if number % 10 == 9:
        yield ThreadCompacted(summary="so far", entries=(UserEntry(content=parts),), origins=Origins().checkpoint())


async def fill(store: SqliteStore, thread_id: str, count: int) -> int:
    events: list[Event] = [ThreadStarted()]
    after = number = 0
    while after + len(events) < count:
        events.extend(turn(number))
        number += 1
        if len(events) >= 900:
            await store.append(thread_id, events, after=after, at=0)
            after, events = after + len(events), []
    await store.append(thread_id, events, after=after, at=0)
    return after + len(events)


async def open_journal(store: SqliteStore, *, checkpoints: bool) -> tuple[float, int]:
    """Seconds until the Journal is open, and how many of its turns there are."""
    began = time.perf_counter()
    kept = store if checkpoints else None
    opening = Journal.open(store, "long", WallClock(), followers={"origins": Origins()}, checkpoints=kept)
    async with opening as journal:
        return time.perf_counter() - began, len(journal.turn_ids)


async def resume(store: SqliteStore, count: int) -> None:
    stored = await fill(store, "long", count)
    await open_journal(store, checkpoints=True)  # keeps the checkpoint
    whole, kept = list[float](), list[float]()
    for _ in range(ROUNDS):
        whole.append((await open_journal(store, checkpoints=False))[0])
        kept.append((await open_journal(store, checkpoints=True))[0])
    tracemalloc.start()
    await open_journal(store, checkpoints=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    ratio = statistics.median(kept) / statistics.median(whole)
    print(f"resume of {stored:,} events, all read      {statistics.median(whole):7.3f} s")
    print(f"resume of {stored:,} events, a checkpoint  {statistics.median(kept):7.3f} s   {ratio:5.3f} x")
    print(f"peak of Python's memory with a checkpoint {peak / 2**20:7.1f} MiB")


class Thinking(ScriptedModel):
    """Answers after a while."""

    async def sample(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        await asyncio.sleep(THINKING)
        async for event in super().sample(request):
            yield event


async def one_turn(folder: Path) -> None:
    model = Thinking(*[Call("list_nothing", {"n": number}) for number in range(CALLS_OF_A_TURN)], Say("done"))
    append, waited = SqliteStore.append, [0.0]

    async def timed(store: SqliteStore, *batch: Any, **place: Any) -> Sequence[StoredEvent]:
        began = time.perf_counter()
        try:
            return await append(store, *batch, **place)
        finally:
            waited[0] += time.perf_counter() - began

    SqliteStore.append = timed  # type: ignore[method-assign,assignment] # measured where it is called
    try:
        async with Host(store=folder / "turn.db", model=model) as host:
            thread = await host.start_thread()
            began = time.perf_counter()
            await (await thread.start_turn("go")).finished()
            seconds = time.perf_counter() - began
    finally:
        SqliteStore.append = append  # type: ignore[method-assign]
    print(f"a turn of {CALLS_OF_A_TURN} calls {seconds:6.2f} s, in the store {waited[0] / seconds:6.2%}")


async def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with open_sqlite(Path(folder, "interlock.db")) as store:
            await resume(store, count)
        await one_turn(Path(folder))
    print(f"peak of the process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else LONG_THREAD))
