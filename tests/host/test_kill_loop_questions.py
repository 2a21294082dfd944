"""Hosts killed after each event around a question of 2026-07-28: the next one asks again, and nothing ends twice."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import anyio
import pytest

from interlock.history.fold import fold
from interlock.vocabulary.conversation import OutputEntry
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    InputRequested,
    InputSent,
    QuestionAsked,
    StoredEvent,
    TurnEnded,
)
from interlock.vocabulary.item import McpToolCallItem
from tests.host.kill_loop_questions import answer_all, host
from tests.manifest import requirement

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-m", "tests.host.kill_loop_questions", str(folder)]
    subprocess.run(command, check=True, timeout=300, cwd=Path(__file__).parents[2])
    return folder


def places(folder: Path) -> list[Path]:
    return sorted(folder.iterdir(), key=lambda place: int(place.name))


async def found_and_gone_on_with(place: Path) -> tuple[list[StoredEvent], list[StoredEvent]]:
    """The stored events as the killed host left them, and as they are after the next one came to the turn's end."""
    async with host(place) as opened:
        (record,) = await opened.threads()
        before = [event async for event in opened.events(record.thread_id)]
        thread = await opened.resume_thread(record.thread_id)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer_all, thread)
                turn = thread.running_turn
                if turn is not None:
                    assert (await turn.finished()).status == "completed"
                await thread.close()
        after = [event async for event in opened.events(record.thread_id)]
    return before, after


@requirement("QST-9", "LIF-1", "LIF-4", "TRN-1", "HIS-1")
@pytest.mark.parametrize("phase", ["asking", "answering"])
async def test_whenever_a_host_is_killed_the_question_is_answered_in_the_end_or_its_call_interrupted(
    phase: str, killed: Path
) -> None:
    went_on = 0
    hosts = places(killed / phase)
    assert len(hosts) > 12
    for place in hosts:
        before, after = await found_and_gone_on_with(place)
        assert after[: len(before)] == before
        went_on += check(before, after)
    assert went_on >= 4


def check(before: list[StoredEvent], after: list[StoredEvent]) -> bool:
    """Whether the killed host left a call that waits for people; everything has ended, once, and as it should."""
    events = [stored.event for stored in after]
    started = Counter(event.item.id for event in events if isinstance(event, CallStarted))
    assert started == Counter(event.item.id for event in events if isinstance(event, CallEnded))
    was, now = fold("t", before), fold("t", after)
    assert (now.open_turn, now.open_calls, now.held_calls, now.unanswered) == (None, (), (), ())
    assert now.open_questions == ()
    assert len([event for event in events if isinstance(event, TurnEnded)]) == len(now.turns)
    assert sum(isinstance(event, InputSent) for event in events) <= sum(
        isinstance(event, InputRequested) for event in events
    )
    items = {item.id: item for turn in now.turns for item in turn.items if isinstance(item, McpToolCallItem)}
    for call in was.open_calls:
        waited = any(held.call_id == call.item.id for held in was.held_calls)
        check_end(items[call.item.id], waited=waited)
    if was.held_calls:
        assert now.turns[-1].status == "completed"
        outputs = [entry.call_id for entry in now.entries if isinstance(entry, OutputEntry)]
        assert outputs == sorted(outputs)
    return bool(was.held_calls)


def check_end(item: McpToolCallItem, *, waited: bool) -> None:
    if not waited:
        assert item.error is not None
        assert (item.error.code, item.error.effect) == ("interrupted", "unknown")
        return
    assert (item.status, item.error) == ("completed", None)
    assert item.result is not None
    told = json.loads(item.result.content[0]["text"])
    assert [answer["content"]["name"] for answer in told] == ["Ada, to Who?", "Ada, to Sure?"]


@requirement("QST-9")
async def test_an_answer_that_had_not_gone_out_is_asked_for_again(killed: Path) -> None:
    asked_again = 0
    for place in places(killed / "answering"):
        async with host(place) as opened:
            (record,) = await opened.threads()
            events = [stored.event async for stored in opened.events(record.thread_id)]
        asked = Counter(event.question.id for event in events if isinstance(event, QuestionAsked))
        asked_again += any(times > 1 for times in asked.values())
    assert asked_again >= 2
