"""A turn: sample, call, record, again, until the model has nothing more to call."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from interlock.testing import Call, Fail, Gate, Give, Say, ScriptedModel, Wait
from interlock.threads.turn import TurnResult
from interlock.vocabulary.conversation import (
    AssistantEntry,
    CallEntry,
    ModelRequest,
    OpaqueEntry,
    OutputEntry,
    TextPart,
    UserEntry,
)
from interlock.vocabulary.errors import InvalidRequest, ModelFailed
from interlock.vocabulary.event import CallEnded, CallStarted, MessageCompleted, StepCaptured, TurnEnded
from interlock.vocabulary.item import AgentMessageItem, McpToolCallItem
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.notice import DeltaNotice
from interlock.vocabulary.snapshot import Snapshot
from interlock.vocabulary.tool import ToolResult
from tests.manifest import requirement
from tests.threads.fakes import FakeConnection, config, snapshot, text_result, tool
from tests.threads.room import TURN, Room, cancelled_at, open_room

pytestmark = pytest.mark.anyio

SEARCH = "mcp__notes__search"
SAVE = "mcp__notes__save"
REASONING = Give(OpaqueEntry(provider="scripted", payload={"thought": 1}))


def notes(gate: Gate | None = None) -> Snapshot:
    async def search(arguments: JsonObject | None) -> ToolResult:
        if gate is not None:
            await gate.wait()
        return text_result(f"found {arguments}")

    return snapshot((config("notes"), FakeConnection("notes", {"search": search}), [tool("search")]))


async def run(room: Room, model: ScriptedModel, **settings: Any) -> TurnResult:
    turn = await room.turn(model, **settings)
    await turn.run()
    return await turn.finished()


async def ends(room: Room) -> list[TurnEnded]:
    return [event for event in await room.events() if isinstance(event, TurnEnded)]


@requirement("TRN-1", "CAT-9")
async def test_a_turn_calls_side_by_side_and_records_outputs_in_the_order_of_the_calls(tmp_path: Path) -> None:
    model = ScriptedModel([REASONING, Call(SEARCH, {"n": 1}), Call(SEARCH, {"n": 2})], Say("two found"))
    async with open_room(tmp_path, notes()) as room:
        result = await run(room, model)

        assert result == TurnResult(turn_id=TURN, status="completed", last_message="two found")
        assert [type(entry) for entry in room.journal.state.entries] == [
            UserEntry,
            OpaqueEntry,
            CallEntry,
            CallEntry,
            OutputEntry,
            OutputEntry,
            AssistantEntry,
        ]
        assert model.requests[1].entries[-2:] == (
            OutputEntry(call_id="call-1", content=(TextPart(text="found {'n': 1}"),)),
            OutputEntry(call_id="call-2", content=(TextPart(text="found {'n': 2}"),)),
        )
        assert await ends(room) == [TurnEnded(turn_id=TURN, status="completed", last_message="two found")]
        assert room.journal.state.usage.total_tokens == 30


@requirement("CAT-6")
async def test_each_sampling_has_a_step_of_its_own_and_sees_what_there_is_then(tmp_path: Path) -> None:
    async with open_room(tmp_path, notes()) as room:

        def refresh(request: ModelRequest) -> Call:
            later = FakeConnection("later")
            room.snapshot = snapshot((config("later"), later, [tool("new")]))
            return Call(SEARCH)  # still the catalogue that this Step was shown

        model = ScriptedModel(refresh, Say("seen"))
        await run(room, model)

        shown = [[spec.name for spec in request.tools if "mcp__" in spec.name] for request in model.requests]
        assert shown == [[SEARCH], ["mcp__later__new"]]
        assert [item.status for item in room.items()] == ["completed"]
        assert len([event for event in await room.events() if isinstance(event, StepCaptured)]) == 2


@requirement("CON-3")
async def test_a_model_that_has_to_load_does_so_before_the_first_step_is_captured(tmp_path: Path) -> None:
    async with open_room(tmp_path, notes()) as room:

        class Loading(ScriptedModel):
            async def prepare_sampling(self) -> None:
                assert not any(isinstance(event, StepCaptured) for event in await room.events())
                room.snapshot = snapshot((config("late"), FakeConnection("late"), [tool("new")]))

        model = Loading(Say("done"))
        await run(room, model)

        (request,) = model.requests
        assert "mcp__late__new" in {spec.name for spec in request.tools}


@requirement("TRN-1")
async def test_a_failing_model_fails_the_turn_with_its_sentence_and_keeps_what_was_said(tmp_path: Path) -> None:
    model = ScriptedModel([Say("let me see"), REASONING, Call(SEARCH), Fail(ModelFailed("the endpoint broke off"))])
    async with open_room(tmp_path, notes()) as room:
        result = await run(room, model)

        assert result == TurnResult(
            turn_id=TURN, status="failed", error="the endpoint broke off", last_message="let me see"
        )
        assert room.journal.state.entries[1:] == (AssistantEntry(text="let me see"),)
        assert room.journal.state.unanswered == ()
        assert len(await ends(room)) == 1


@requirement("TRN-1")
async def test_a_failed_call_does_not_fail_the_turn(tmp_path: Path) -> None:
    model = ScriptedModel([Call("mcp__notes__nothing"), Call(SEARCH, "{")], Say("never mind"))
    async with open_room(tmp_path, notes()) as room:
        result = await run(room, model)

        assert (result.status, result.last_message) == ("completed", "never mind")
        assert [item.status for item in room.items()] == ["failed", "failed"]
        outputs = [entry for entry in model.requests[1].entries if isinstance(entry, OutputEntry)]
        assert [output.success for output in outputs] == [False, False]


@requirement("LIF-8")
async def test_a_call_id_that_the_model_uses_twice_gets_one_output_for_each_call(tmp_path: Path) -> None:
    model = ScriptedModel([Call(SEARCH, call_id="x"), Call(SEARCH, call_id="x")], Say("ok"))
    async with open_room(tmp_path, notes()) as room:
        result = await run(room, model)

        assert result.status == "completed"
        outputs = [entry for entry in room.journal.state.entries if isinstance(entry, OutputEntry)]
        assert [(output.call_id, output.success) for output in outputs] == [("x", True), ("x", False)]
        assert [item.status for item in room.items()] == ["completed"]


async def test_a_model_that_calls_tools_without_end_is_stopped(tmp_path: Path) -> None:
    model = ScriptedModel(*[Call(SEARCH) for _ in range(5)])
    async with open_room(tmp_path, notes()) as room:
        result = await run(room, model, max_steps=3)

        assert result.status == "failed"
        assert result.error is not None
        assert "stopped after 3 steps" in result.error
        assert (model.remaining, room.journal.state.unanswered) == (2, ())


@requirement("TRN-1", "LIF-1")
async def test_an_interrupted_turn_cancels_its_calls_and_ends_once(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([Call(SEARCH), Call(SEARCH)], Say("never"))
    async with open_room(tmp_path, notes(gate)) as room, anyio.create_task_group() as tasks:
        turn = await room.turn(model)
        tasks.start_soon(turn.run)
        await gate.reached()

        await turn.interrupt()

        assert (await turn.finished()).status == "interrupted"
        assert [event.status for event in await ends(room)] == ["interrupted"]
        assert [item.status for item in room.items()] == ["failed", "failed"]
        assert (room.journal.state.open_calls, room.journal.state.unanswered) == ((), ())
        assert model.remaining == 1


async def test_deltas_are_notices_that_name_the_message_they_become(tmp_path: Path) -> None:
    async with open_room(tmp_path, notes()) as room:
        await run(room, ScriptedModel([Say("hello world", piece=4), Say("again")]))

        messages = [event.item for event in await room.events() if isinstance(event, MessageCompleted)]
        first, second = messages
        assert isinstance(first, AgentMessageItem)
        deltas = [notice for notice in room.notices if isinstance(notice, DeltaNotice)]
        assert [(delta.item_id, delta.text) for delta in deltas] == [
            (first.id, "hell"),
            (first.id, "o wo"),
            (first.id, "rld"),
            (second.id, "again"),
        ]


async def test_a_sampling_that_just_stops_is_no_answer(tmp_path: Path) -> None:
    class Silent(ScriptedModel):
        async def sample(self, request: ModelRequest):  # type: ignore[no-untyped-def]  # a generator without events
            return
            yield

    async with open_room(tmp_path, notes()) as room:
        result = await run(room, Silent())

    assert result.error == "the answer of model 'scripted' ended before it was complete"


async def test_a_defect_of_the_host_fails_the_turn_and_reaches_whoever_waits(tmp_path: Path) -> None:
    def broken(request: ModelRequest) -> Say:
        raise ZeroDivisionError

    async with open_room(tmp_path, notes()) as room:
        turn = await room.turn(ScriptedModel(broken))
        await turn.run()

        with pytest.raises(ZeroDivisionError):
            await turn.finished()
        assert [event.error for event in await ends(room)] == ["the turn broke inside the host (ZeroDivisionError)"]


async def test_a_defect_in_one_call_fails_the_turn_once_the_others_have_their_outputs(tmp_path: Path) -> None:
    gate = Gate()

    async def save(arguments: JsonObject | None) -> ToolResult:
        raise ZeroDivisionError

    connection = FakeConnection("notes", {"search": lambda _: waited(gate), "save": save})
    both = snapshot((config("notes"), connection, [tool("search"), tool("save")]))
    async with open_room(tmp_path, both) as room, anyio.create_task_group() as tasks:
        turn = await room.turn(ScriptedModel([Call(SAVE), Call(SEARCH)], Say("never")))
        tasks.start_soon(turn.run)
        await gate.reached()
        gate.open()

        with pytest.raises(ZeroDivisionError):
            await turn.finished()
        assert [event.error for event in await ends(room)] == ["the turn broke inside the host (ZeroDivisionError)"]
        assert [item.status for item in room.items()] == ["failed", "completed"]
        assert room.journal.state.unanswered == ()


async def waited(gate: Gate) -> ToolResult:
    await gate.wait()
    return text_result("found")


@requirement("TRN-1", "LIF-1")
@pytest.mark.parametrize("moment", range(0, 120, 2))
async def test_wherever_a_turn_is_interrupted_its_history_is_whole(tmp_path: Path, moment: int) -> None:
    model = ScriptedModel([Say("first"), Call(SEARCH), Call("list_mcp_resources")], Call(SEARCH), Say("done"))
    async with open_room(tmp_path, notes()) as room:
        async with anyio.create_task_group() as tasks:
            turn = await room.turn(model)
            with cancelled_at(moment, tasks):
                await turn.run()

        assert len(await ends(room)) == 1
        state, events = room.journal.state, await room.events()
        assert (state.open_turn, state.open_calls, state.unanswered) == (None, (), ())
        called = {entry.call_id for entry in state.entries if isinstance(entry, CallEntry)}
        assert {event.item.id for event in events if isinstance(event, CallStarted)} == called
        assert sorted(event.item.id for event in events if isinstance(event, CallEnded)) == sorted(called)
        assert {item.id for item in room.items() if isinstance(item, McpToolCallItem)} == called
        assert (await turn.finished()).status in {"interrupted", "completed"}


@requirement("TRN-1")
async def test_a_turn_whose_thread_closes_between_two_steps_ends_as_interrupted(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel(Call(SEARCH), Say("never"))
    async with open_room(tmp_path, notes(gate)) as room, anyio.create_task_group() as tasks:
        turn = await room.turn(model)
        tasks.start_soon(turn.run)
        await gate.reached()
        room.is_closing = True  # the first thing that a Thread does when it closes; it stops its turn a moment later
        gate.open()
        await room.came_too_late.wait()

        await turn.stop()

        assert [event.status for event in await ends(room)] == ["interrupted"]
        assert [item.status for item in room.items()] == ["completed"]
        assert model.remaining == 1


async def test_a_turn_that_waits_for_its_model_can_be_interrupted(tmp_path: Path) -> None:
    gate = Gate()
    async with open_room(tmp_path, notes()) as room, anyio.create_task_group() as tasks:
        turn = await room.turn(ScriptedModel([Say("thinking"), Wait(gate), Call(SEARCH)]))
        tasks.start_soon(turn.run)
        await gate.reached()

        await turn.interrupt()

        assert await turn.finished() == TurnResult(turn_id=TURN, status="interrupted", last_message="thinking")
        assert room.items() == []


@requirement("TRN-1")
async def test_what_the_user_says_meanwhile_is_heard_at_the_next_sampling(tmp_path: Path) -> None:
    async with open_room(tmp_path, notes()) as room:

        def steer(request: ModelRequest) -> Call:
            turn.steer("the red one")
            return Call(SEARCH)

        def and_again(request: ModelRequest) -> Say:
            turn.steer("and a blue one")
            return Say("red")

        model = ScriptedModel(steer, and_again, Say("red and blue"))
        turn = await room.turn(model)
        await turn.run()

        assert (await turn.finished()).last_message == "red and blue"
        assert [type(entry) for entry in room.journal.state.entries] == [
            UserEntry,
            CallEntry,
            OutputEntry,
            UserEntry,
            AssistantEntry,
            UserEntry,
            AssistantEntry,
        ]
        with pytest.raises(InvalidRequest, match="has come to its end"):
            turn.steer("too late")


@requirement("TRN-1")
async def test_what_was_said_to_a_turn_that_fails_is_kept(tmp_path: Path) -> None:
    async with open_room(tmp_path, notes()) as room:

        def steer(request: ModelRequest) -> Fail:
            turn.steer("wait")
            return Fail()

        turn = await room.turn(ScriptedModel(steer))
        await turn.run()

        assert (await turn.finished()).status == "failed"
        assert room.journal.state.entries[-1] == UserEntry(content=(TextPart(text="wait"),))
        assert len(await ends(room)) == 1
