"""What a killed host left open is closed when its Thread is resumed."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from interlock.history.journal import MAXIMUM_TOGETHER, Journal
from interlock.stores import open_store
from interlock.threads.recovery import close_what_was_left_open
from interlock.vocabulary.conversation import CallEntry, OutputEntry, TextPart
from interlock.vocabulary.errors import StorageFailed
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    EntriesRecorded,
    Event,
    StoredEvent,
    ThreadStarted,
    TurnEnded,
    TurnStarted,
)
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.tool import ToolResult
from tests.manifest import requirement
from tests.threads.fakes import Ticks

pytestmark = pytest.mark.anyio


def started(call_id: str) -> CallStarted:
    item = McpToolCallItem(id=call_id, server="a", tool="t", public_name="mcp__a__t", arguments={})
    return CallStarted(turn_id="t1", step_id="s1", item=item)


def ended(call_id: str) -> CallEnded:
    result = ToolResult(content=({"type": "text", "text": "y" * 500},))
    item = McpToolCallItem(
        id=call_id, server="a", tool="t", public_name="mcp__a__t", arguments={}, status="completed", result=result
    )
    return CallEnded(turn_id="t1", step_id="s1", item=item, effect="done")


CALLS = tuple(CallEntry(call_id=call_id, name="mcp__a__t", arguments="{}") for call_id in ("open", "done", "never"))


@requirement("LIF-1", "TRN-1")
async def test_open_calls_and_the_open_turn_end_as_interrupted_and_every_call_gets_an_output(tmp_path: Path) -> None:
    async with open_store(tmp_path / "events.db") as store:
        async with Journal.open(store, "thread", Ticks()) as journal:
            await journal.record_all(
                (
                    ThreadStarted(),
                    TurnStarted(turn_id="t1"),
                    EntriesRecorded(turn_id="t1", entries=CALLS),
                    started("open"),
                    started("done"),
                    ended("done"),
                )
            )  # here the host was killed

        async with Journal.open(store, "thread", Ticks()) as journal:
            await close_what_was_left_open(journal, output_limit=100)

            state = journal.state
            assert (state.open_turn, state.open_calls, state.unanswered) == (None, (), ())
            (turn,) = state.turns
            assert (turn.status, turn.error) == ("interrupted", "the host ended while the turn ran")
            interrupted, done = turn.items
            assert isinstance(interrupted, McpToolCallItem)
            assert interrupted.error is not None
            assert (interrupted.status, interrupted.error.code, interrupted.effect) == (
                "failed",
                "interrupted",
                "unknown",
            )
            assert done == ended("done").item
            outputs = [entry for entry in state.entries if isinstance(entry, OutputEntry)]
            assert [(output.call_id, output.success) for output in outputs] == [
                ("open", False),
                ("done", True),
                ("never", False),
            ]
            (text,) = outputs[1].content
            assert isinstance(text, TextPart)
            assert "characters left out" in text.text

            before = journal.last_sequence
            await close_what_was_left_open(journal, output_limit=100)
            assert journal.last_sequence == before


@requirement("LIF-1")
async def test_a_thread_that_ended_in_peace_is_left_as_it_is(tmp_path: Path) -> None:
    async with open_store(tmp_path / "events.db") as store, Journal.open(store, "thread", Ticks()) as journal:
        await journal.record_all((ThreadStarted(), TurnStarted(turn_id="t1"), started("c1"), ended("c1")))
        await journal.record(TurnEnded(turn_id="t1", status="completed"))
        before = journal.state

        await close_what_was_left_open(journal, output_limit=100)

        assert journal.state == before


@requirement("LIF-1")
async def test_more_open_calls_than_are_stored_together_end_all_the_same_and_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the host that closes them is killed between two parts."""
    names = [f"c{number}" for number in range(MAXIMUM_TOGETHER + 100)]
    entries = tuple(CallEntry(call_id=name, name="mcp__a__t", arguments="{}") for name in names)
    async with open_store(tmp_path / "events.db") as store:
        async with Journal.open(store, "thread", Ticks()) as journal:
            await journal.record_all(
                (ThreadStarted(), TurnStarted(turn_id="t1"), EntriesRecorded(turn_id="t1", entries=entries))
            )
            for half in (names[:600], names[600:]):
                await journal.record_all([started(name) for name in half])

        record_all, parts = Journal.record_all, 0

        async def once(journal: Journal, events: Sequence[Event]) -> tuple[StoredEvent, ...]:
            nonlocal parts
            parts += 1
            if parts > 1:
                raise StorageFailed("killed here")
            return await record_all(journal, events)

        async with Journal.open(store, "thread", Ticks()) as journal:
            with monkeypatch.context() as patch:
                patch.setattr(Journal, "record_all", once)
                with pytest.raises(StorageFailed, match="killed here"):
                    await close_what_was_left_open(journal, output_limit=100)
            assert len(journal.state.open_calls) == 100

        async with Journal.open(store, "thread", Ticks()) as journal:
            await close_what_was_left_open(journal, output_limit=100)
            state = journal.state
            assert (state.open_turn, state.open_calls, state.unanswered) == (None, (), ())
            ends = [stored async for stored in store.read("thread") if isinstance(stored.event, CallEnded)]
            assert len(ends) == len(names)
