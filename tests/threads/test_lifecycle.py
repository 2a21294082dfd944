"""run_item: every started item ends exactly once."""

from collections.abc import Sequence

import anyio
import anyio.lowlevel
import pytest

from interlock.threads.lifecycle import SENTENCE_LIMIT, Answer, Attempt, Ending, Operation, run_item
from interlock.vocabulary.conversation import TextPart
from interlock.vocabulary.errors import Effect, InterlockError, NotPermitted, ServerFailed, StorageFailed
from interlock.vocabulary.event import CallEnded, CallStarted, Event
from interlock.vocabulary.item import ItemError, McpToolCallItem
from interlock.vocabulary.tool import ToolResult
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

ITEM = McpToolCallItem(id="c1", server="github", tool="search", public_name="mcp__github__search", arguments={})
START = CallStarted(turn_id="t1", step_id="s1", item=ITEM)
GOOD = Answer(result=ToolResult(content=({"type": "text", "text": "ok"},)), content=(TextPart(text="ok"),))


class Memory:
    """A journal that keeps events in a list, and takes a moment to do so."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def record_surely(self, event: Event) -> Sequence[object]:
        with anyio.CancelScope(shield=True):
            await anyio.lowlevel.checkpoint()
        self.events.append(event)
        return ()


class Ticks:
    """A clock that is 250 ms later each time it is asked."""

    def __init__(self) -> None:
        self.time = 0.0

    def monotonic(self) -> float:
        self.time += 0.25
        return self.time

    def now_milliseconds(self) -> int:
        return 0


async def run(journal: Memory, operation: Operation) -> Ending:
    return await run_item(journal, START, operation, clock=Ticks(), scope=anyio.CancelScope())


@requirement("LIF-1", "LIF-3", "LIF-4")
async def test_the_start_is_stored_before_the_operation_and_the_end_before_anyone_is_told() -> None:
    journal = Memory()

    async def operation(attempt: Attempt) -> Answer:
        assert journal.events == [START]
        return GOOD

    ending = await run(journal, operation)

    assert journal.events[1:] == [CallEnded(turn_id="t1", step_id="s1", item=ending.item, effect="done")]
    assert (ending.item.status, ending.item.result, ending.item.duration) == ("completed", GOOD.result, 250)


@requirement("LIF-3")
async def test_a_result_with_is_error_is_a_failed_item_that_keeps_its_result() -> None:
    bad = Answer(result=ToolResult(is_error=True, structured_content={"why": "no"}), content=())

    async def operation(attempt: Attempt) -> Answer:
        return bad

    ending = await run(Memory(), operation)

    assert (ending.item.status, ending.item.result, ending.item.error) == ("failed", bad.result, None)


REFUSED = ServerFailed("it refused", server="github", kind="rejected", effect="unknown", rpc_code=-32602)
LOST = ServerFailed("connection lost", server="github", kind="lost", effect="unknown")
STARTING = ServerFailed("still starting", server="github")
DENIED = NotPermitted("a person said no")
FULL = StorageFailed("the disk is full")


@requirement("LIF-1", "LIF-3")
@pytest.mark.parametrize(
    ("how_far", "error", "effect", "told"),
    [
        ({}, DENIED, "none", False),
        ({}, STARTING, "none", False),
        ({"sent": True}, STARTING, "none", False),
        ({"sent": True}, LOST, "unknown", True),
        ({"sent": True}, FULL, "unknown", True),
        ({"sent": True}, REFUSED, "unknown", False),
        ({"reading": True}, LOST, "none", False),
        ({"reading": True}, DENIED, "none", False),
        ({"earlier": True}, DENIED, "unknown", True),
        ({"earlier": True}, STARTING, "unknown", True),
        ({"earlier": True}, REFUSED, "unknown", False),
    ],
)
async def test_a_foreseen_failure_becomes_a_failed_item_with_its_effect(
    how_far: dict[str, bool], error: InterlockError, effect: Effect, told: bool
) -> None:
    journal = Memory()

    async def operation(attempt: Attempt) -> Answer:
        for name, value in how_far.items():
            setattr(attempt, name, value)
        raise error

    ending = await run(journal, operation)

    message = error.message + ("; whether the call took effect is unknown" if told else "")
    assert ending.item.error == ItemError(code=error.code, message=message, effect=effect)
    assert [type(event) for event in journal.events] == [CallStarted, CallEnded]


@requirement("LIF-1", "RES-10")
async def test_a_failure_of_which_a_server_wrote_a_megabyte_is_kept_within_its_bound() -> None:
    async def operation(attempt: Attempt) -> Answer:
        raise ServerFailed("it said: " + "no " * 400_000, server="github", kind="lost", effect="unknown")

    ending = await run(Memory(), operation)

    assert ending.item.error is not None
    assert len(ending.item.error.message.encode()) <= SENTENCE_LIMIT <= 16 * 1024
    assert ending.item.error.message.startswith("it said: no no")
    assert ending.item.error.message.endswith("; whether the call took effect is unknown")


@requirement("LIF-1")
async def test_a_call_whose_own_scope_is_cancelled_comes_back_as_a_failed_item() -> None:
    journal, scope = Memory(), anyio.CancelScope()

    async def operation(attempt: Attempt) -> Answer:
        attempt.sent = True
        scope.cancel()
        await anyio.lowlevel.checkpoint()
        return GOOD

    ending = await run_item(journal, START, operation, clock=Ticks(), scope=scope)

    assert ending.item.error is not None
    assert (ending.item.error.code, ending.item.error.effect) == ("cancelled", "unknown")
    assert [type(event) for event in journal.events] == [CallStarted, CallEnded]


@requirement("LIF-1")
async def test_a_defect_of_our_own_ends_the_item_and_is_not_hidden() -> None:
    journal = Memory()

    async def operation(attempt: Attempt) -> Answer:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run(journal, operation)

    end = journal.events[-1]
    assert isinstance(end, CallEnded)
    assert end.item.error is not None
    assert (end.item.status, end.item.error.code, end.effect) == ("failed", "internal", "unknown")


@requirement("LIF-1", "LIF-4")
@pytest.mark.parametrize("moment", range(10))
async def test_wherever_a_call_is_cancelled_it_ends_once_and_says_whether_it_was_sent(moment: int) -> None:
    journal, scope, sent = Memory(), anyio.CancelScope(), False

    async def operation(attempt: Attempt) -> Answer:
        nonlocal sent
        await anyio.lowlevel.checkpoint()
        attempt.sent = sent = True
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        return GOOD

    async def cancel_after(checkpoints: int) -> None:
        for _ in range(checkpoints):
            await anyio.lowlevel.checkpoint()
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel_after, moment)
        with scope:
            await run(journal, operation)

    start, end = journal.events
    assert start == START
    assert isinstance(end, CallEnded)
    if end.item.error is not None:
        assert end.item.error.code == "cancelled"
        assert end.effect == ("unknown" if sent else "none")
    else:
        assert end.effect == "done"
