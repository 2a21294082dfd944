"""A host killed after each event that it stored: every one of its Threads is found whole, and goes on."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from interlock import Host
from interlock.history.fold import fold
from interlock.testing import Say, ScriptedModel
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    StoredEvent,
    ThreadRolledBack,
    TurnEnded,
    TurnStarted,
)
from interlock.vocabulary.item import McpToolCallItem
from tests.manifest import requirement

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders of hosts that were killed, one stored batch later each; the last one came to its end."""
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, str(Path(__file__).parent / "kill_loop.py"), str(folder)]
    subprocess.run(command, check=True, timeout=250)
    return sorted(folder.iterdir(), key=lambda place: int(place.name))


async def stored(host: Host, thread_id: str) -> list[StoredEvent]:
    return [event async for event in host.events(thread_id)]


@requirement("LIF-1", "LIF-4", "HIS-1", "HIS-2", "TRN-1")
async def test_whenever_a_host_is_killed_its_thread_is_found_whole_and_goes_on(killed: list[Path]) -> None:
    assert len(killed) > 15
    for number, place in enumerate(killed, 1):
        async with Host(store=place / "interlock.db", model=ScriptedModel(Say("on we go"))) as host:
            (record,) = await host.threads()
            before = await stored(host, record.thread_id)
            assert number == len(killed) or len(before) >= number

            thread = await host.resume_thread(record.thread_id)
            after = await stored(host, record.thread_id)
            check(before, after)
            assert thread.state == fold(record.thread_id, after)
            assert (thread.state.open_turn, thread.state.open_calls, thread.state.unanswered) == (None, (), ())

            result = await (await thread.start_turn("still there?")).finished()
            assert (result.status, result.last_message) == ("completed", "on we go")


def check(before: list[StoredEvent], after: list[StoredEvent]) -> None:
    """Nothing that was stored has changed; everything that began has ended once; what was cut off says so."""
    assert after[: len(before)] == before
    events = [event.event for event in after]
    started = Counter(event.item.id for event in events if isinstance(event, CallStarted))
    ended = Counter(event.item.id for event in events if isinstance(event, CallEnded))
    assert started == ended
    assert set(started.values()) <= {1}
    assert Counter(event.turn_id for event in events if isinstance(event, TurnStarted)) == Counter(
        event.turn_id for event in events if isinstance(event, TurnEnded)
    )
    state = fold("a", after)
    was_open = fold("a", before)
    interrupted = [
        item.id
        for turn in state.turns
        for item in turn.items
        if isinstance(item, McpToolCallItem) and item.error is not None and item.error.code == "interrupted"
    ]
    assert interrupted == [call.item.id for call in was_open.open_calls]
    if was_open.open_turn is not None:
        assert state.turns[-1].status == "interrupted"


async def test_the_host_that_was_not_killed_came_to_its_end(killed: list[Path]) -> None:
    async with Host(store=killed[-1] / "interlock.db") as host:
        (record,) = await host.threads()
        events = [event.event for event in await stored(host, record.thread_id)]
    assert any(isinstance(event, ThreadRolledBack) for event in events)
    assert record.name == "killed"
