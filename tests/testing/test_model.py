from contextlib import aclosing

import anyio
import pytest

from interlock.testing import Call, Fail, Gate, Give, Say, ScriptedModel, Wait
from interlock.vocabulary.conversation import (
    AssistantEntry,
    CallEntry,
    EntryCompleted,
    ModelEvent,
    ModelRequest,
    OpaqueEntry,
    SamplingCompleted,
    TextDelta,
    UserEntry,
)
from interlock.vocabulary.errors import ModelFailed
from interlock.vocabulary.ports import Model

pytestmark = pytest.mark.anyio
ASK = ModelRequest(entries=(UserEntry(content=()),))


async def events(model: Model, request: ModelRequest = ASK) -> list[ModelEvent]:
    async with aclosing(model.sample(request)) as sampling:  # type: ignore[type-var]  # the port promises a generator
        return [event async for event in sampling]


async def test_a_message_comes_in_pieces_and_then_whole() -> None:
    got = await events(ScriptedModel(Say("hello", piece=2)))
    assert got[:3] == [TextDelta(text="he"), TextDelta(text="ll"), TextDelta(text="o")]
    assert got[3] == EntryCompleted(entry=AssistantEntry(text="hello"))
    assert isinstance(got[4], SamplingCompleted)


async def test_calls_in_one_sampling_get_ids_that_count_on_through_the_script() -> None:
    model = ScriptedModel([Call("a"), Call("b", {"n": 1}, "mine")], Call("c", "not json"))
    first, second = await events(model), await events(model)
    entries = [event.entry for event in first + second if isinstance(event, EntryCompleted)]
    assert entries == [
        CallEntry(call_id="call-1", name="a", arguments="{}"),
        CallEntry(call_id="mine", name="b", arguments='{"n": 1}'),
        CallEntry(call_id="call-3", name="c", arguments="not json"),
    ]


async def test_a_sampling_may_be_a_function_of_the_request_and_requests_are_kept() -> None:
    model = ScriptedModel(lambda request: Say(f"{len(request.entries)} entry"))
    got = await events(model)
    assert EntryCompleted(entry=AssistantEntry(text="1 entry")) in got
    assert model.requests == (ASK,)
    assert repr(model) == "<ScriptedModel 'scripted': <Script 1 of 1 samplings played>>"


async def test_a_request_beyond_the_script_fails_instead_of_waiting() -> None:
    with pytest.raises(ModelFailed, match="no answer left after 0"):
        await events(ScriptedModel())


async def test_a_script_can_fail_after_it_has_said_something() -> None:
    sampling = ScriptedModel([Say("so far"), Fail()]).sample(ASK)
    assert await anext(sampling) == TextDelta(text="so far")
    assert await anext(sampling) == EntryCompleted(entry=AssistantEntry(text="so far"))
    with pytest.raises(ModelFailed, match="lets this sampling fail"):
        await anext(sampling)


async def test_a_provider_entry_is_given_as_it_is() -> None:
    opaque = OpaqueEntry(provider="scripted", payload={"type": "reasoning"})
    assert EntryCompleted(entry=opaque) in await events(ScriptedModel(Give(opaque)))


async def test_a_gate_holds_a_sampling() -> None:
    gate, got = Gate("sampling"), list[ModelEvent]()

    async def collect() -> None:
        got.extend(await events(ScriptedModel([Wait(gate), Say("now")])))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect)
        await gate.reached()
        assert got == []
        gate.open()
    assert EntryCompleted(entry=AssistantEntry(text="now")) in got
