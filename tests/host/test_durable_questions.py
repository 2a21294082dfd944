"""Questions of 2026-07-28 outlive their host: the next one asks again, and the call, the item and the turn go on."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from interlock import Accept, Cancel, Decline, Host, InvalidRequest, Policy, ServerConfig, Thread
from interlock.stores import open_store
from interlock.testing import Call, Say, ScriptedModel, scripted_server
from interlock.threads.hooks import HookedCall, Hooks
from interlock.vocabulary.conversation import CallEntry, ModelRequest, OutputEntry, TextPart
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    InputRequested,
    InputSent,
    QuestionAnswered,
    QuestionAsked,
    QuestionDeclined,
    QuestionWithdrawn,
    StepCaptured,
    TurnEnded,
)
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.question import Answer, Question
from interlock.vocabulary.tool import ToolResult
from tests.host.conftest import READ_ONLY, OpenHost, answering
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

Servers = Callable[..., dict[str, ServerConfig]]

NAME = {"type": "object", "properties": {"name": {"type": "string", "minLength": 1}}, "required": ["name"]}
ASK = {"ask": {"message": "Who?", "requestedSchema": NAME}}
ADA = Accept({"name": "Ada"})
PATIENCE = 40.0


def asking(name: str = "ask", *more: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "annotations": READ_ONLY, "do": [ASK, *more]}


def modern(*tools: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"eras": ["stateless"], "tools": list(tools), **members}


async def left_open(host: Host, *questions: int, **begun: Any) -> str:
    """The id of a Thread whose host has stopped while as many questions are open."""
    thread = await host.start_thread()
    with anyio.fail_after(PATIENCE):
        async with thread.audience("thread") as asked:
            turn = await thread.start_turn("go", **begun)
            for _ in range(*questions or (1,)):
                await anext(asked)
            await thread.close()
            assert (await turn.finished()).status == "interrupted"
    return thread.id


async def gone_on(thread: Thread) -> Any:
    """How the turn that was open ended."""
    turn = thread.running_turn
    assert turn is not None
    with anyio.fail_after(PATIENCE):
        return await turn.finished()


async def facts(host: Host, thread_id: str, *kinds: type) -> list[Any]:
    return [stored.event async for stored in host.events(thread_id) if not kinds or isinstance(stored.event, kinds)]


def told(thread: Thread) -> Any:
    """What the server says it was told, in the newest call."""
    item = [item for item in thread.items if isinstance(item, McpToolCallItem)][-1]
    assert item.result is not None
    return json.loads(item.result.content[0]["text"])


CALL_FACTS = (CallStarted, CallEnded, InputRequested, InputSent, QuestionAsked, QuestionAnswered, QuestionDeclined)


@requirement("QST-9", "QST-8", "LIF-1", "TRN-1")
async def test_an_answer_after_a_restart_sends_the_call_again_and_the_turn_goes_on(
    open_host: OpenHost, servers: Servers
) -> None:
    configs = servers(e=modern(asking()))
    async with open_host(configs, model=ScriptedModel(Call("mcp__e__ask", {"for": "you"}))) as host:
        thread_id = await left_open(host)
        kept = (await host.read_thread(thread_id)).held_calls
        assert [held.requested.request.params for held in kept] == [{"name": "ask", "arguments": {"for": "you"}}]

    model = ScriptedModel(Say("thanks"))
    async with open_host(configs, model=model) as host:
        thread = await host.resume_thread(thread_id)
        (question,) = thread.open_questions
        assert (question.message, question.call_id, question.certainty) == ("Who?", "call-1", "known")
        await thread.answer(question.id, ADA)
        result = await gone_on(thread)
        assert (result.status, result.last_message) == ("completed", "thanks")
        assert told(thread)[0] == {"action": "accept", "content": {"name": "Ada"}}

        assert [type(event) for event in await facts(host, thread_id, *CALL_FACTS)] == [
            CallStarted,
            InputRequested,
            QuestionAsked,
            QuestionAnswered,
            InputSent,
            CallEnded,
        ]
        assert len(await facts(host, thread_id, TurnEnded)) == 1
        assert len(await facts(host, thread_id, StepCaptured)) == 3  # the call went out in a step of this host
        entries = [type(entry) for entry in thread.state.entries]
        assert entries.index(OutputEntry) == entries.index(CallEntry) + 1
        (seen,) = model.requests
        assert any(isinstance(entry, OutputEntry) and entry.success for entry in seen.entries)
        answered = await facts(host, thread_id, QuestionAnswered)
        assert answered[0].content is None


@requirement("QST-9")
async def test_as_often_as_hosts_stop_the_question_stays_open_and_nothing_is_added(
    open_host: OpenHost, servers: Servers
) -> None:
    configs = servers(e=modern(asking()))
    async with open_host(configs, model=ScriptedModel(Call("mcp__e__ask"))) as host:
        thread_id = await left_open(host)
        before = await facts(host, thread_id)
    for _ in range(3):
        async with open_host({}) as host:  # one that could not go on: it has no server and no model
            thread = await host.resume_thread(thread_id)
            assert len(thread.open_questions) == 1
            assert await facts(host, thread_id) == before
            with pytest.raises(InvalidRequest, match="is running"):
                await thread.rollback(1)
    async with open_host(configs, model=ScriptedModel(Say("thanks"))) as host:
        thread = await host.resume_thread(thread_id)
        await thread.answer(thread.open_questions[0].id, ADA)
        assert (await gone_on(thread)).status == "completed"


def question_about(message: str) -> dict[str, Any]:
    params = {"mode": "form", "message": message, "requestedSchema": NAME}
    return {"method": "elicitation/create", "params": params}


TWO_AT_ONCE = {
    "resultType": "input_required",
    "requestState": "s",
    "inputRequests": {"a": question_about("A"), "b": question_about("B")},
}


@requirement("QST-9")
@pytest.mark.parametrize("ticks", range(2))
async def test_answers_that_come_while_the_host_stops_do_not_end_the_call(
    ticks: int, open_host: OpenHost, servers: Servers
) -> None:
    configs = servers(e=modern({"name": "two", "annotations": READ_ONLY, "do": [{"result": TWO_AT_ONCE}]}))
    async with open_host(configs, model=ScriptedModel(Call("mcp__e__two"))) as host:
        thread_id = await left_open(host, 2)
    async with open_host(configs, model=ScriptedModel()) as host:
        thread = await host.resume_thread(thread_id)
        for question in thread.open_questions:
            await thread.answer(question.id, ADA)
        for _ in range(ticks):
            await anyio.lowlevel.checkpoint()
        await thread.close()
        assert await facts(host, thread_id, CallEnded, TurnEnded) == []
    async with open_host(configs, model=ScriptedModel()) as host:
        thread = await host.resume_thread(thread_id)
        assert [question.message for question in thread.open_questions] == ["A", "B"]


@requirement("QST-9", "QST-4")
async def test_who_listens_after_a_restart_is_asked_and_who_leaves_declines(
    open_host: OpenHost, servers: Servers
) -> None:
    configs = servers(e=modern(asking()))
    async with open_host(configs, model=ScriptedModel(Call("mcp__e__ask"))) as host:
        thread_id = await left_open(host)
    async with open_host(configs, model=ScriptedModel(Say("a pity"))) as host:
        thread = await host.resume_thread(thread_id)
        with anyio.fail_after(PATIENCE):
            async with thread.audience() as questions:
                assert (await anext(questions)).message == "Who?"
        assert (await gone_on(thread)).last_message == "a pity"
        assert told(thread) == [{"action": "decline"}]


@requirement("QST-9")
@pytest.mark.parametrize(("answer", "result"), [(Decline("no"), "decline"), (Cancel(), "cancel")])
async def test_no_is_an_answer_too(answer: Answer, result: str, open_host: OpenHost, servers: Servers) -> None:
    configs = servers(e=modern(asking()))
    async with open_host(configs, model=ScriptedModel(Call("mcp__e__ask"))) as host:
        thread_id = await left_open(host)
    async with open_host(configs, model=ScriptedModel(Say("well"))) as host:
        thread = await host.resume_thread(thread_id)
        await thread.answer(thread.open_questions[0].id, answer)
        assert (await gone_on(thread)).status == "completed"
        assert told(thread) == [{"action": result}]


@requirement("QST-9", "QST-6")
async def test_an_answer_that_does_not_fit_leaves_it_open_and_the_first_that_does_counts(
    open_host: OpenHost, servers: Servers
) -> None:
    configs = servers(e=modern(asking()), other=modern())
    async with open_host(configs, model=ScriptedModel(Call("mcp__e__ask"))) as host:
        thread_id = await left_open(host)
    async with open_host(configs, model=ScriptedModel(Say("thanks"))) as host:
        thread = await host.resume_thread(thread_id)
        (question,) = thread.open_questions
        with pytest.raises(InvalidRequest, match="does not fit"):
            await thread.answer(question.id, Accept({"name": ""}))
        with pytest.raises(InvalidRequest, match="not open"):
            await thread.answer(question.id, ADA, server="other")
        assert thread.open_questions == (question,)
        await thread.answer(question.id, ADA)
        with pytest.raises(InvalidRequest, match="not open"):
            await thread.answer(question.id, ADA)
        assert (await gone_on(thread)).status == "completed"


@requirement("QST-9", "QST-8")
async def test_a_server_may_ask_again_and_each_round_is_durable(open_host: OpenHost, servers: Servers) -> None:
    configs = servers(e=modern(asking("ask", {"ask": {"message": "Sure?", "requestedSchema": NAME}})))
    async with open_host(configs, model=ScriptedModel(Call("mcp__e__ask"))) as host:
        thread_id = await left_open(host)
    async with open_host(configs) as host:
        thread = await host.resume_thread(thread_id)
        with anyio.fail_after(PATIENCE):
            async with thread.audience("thread") as questions:
                await thread.answer((await anext(questions)).id, ADA)
                assert (await anext(questions)).message == "Sure?"
                await thread.close()
    async with open_host(configs, model=ScriptedModel(Say("thanks"))) as host:
        thread = await host.resume_thread(thread_id)
        (question,) = thread.open_questions
        assert question.message == "Sure?"
        await thread.answer(question.id, Accept({"name": "Bob"}))
        assert (await gone_on(thread)).status == "completed"
        assert [answer["content"]["name"] for answer in told(thread)] == ["Ada", "Bob"]


@requirement("QST-9", "LIF-1", "LIF-5")
async def test_calls_beside_the_one_that_waits_end_at_once_and_outputs_keep_their_order(
    open_host: OpenHost, servers: Servers
) -> None:
    slow = {"name": "slow", "annotations": READ_ONLY, "do": [{"silence": True}]}
    configs = servers(e=modern(asking(), answering("quick", "here")), s=modern(slow))
    calls = [Call("mcp__e__ask"), Call("mcp__e__quick"), Call("mcp__s__slow"), Call("mcp__e__ask")]
    async with open_host(configs, model=ScriptedModel(calls)) as host:
        thread_id = await left_open(host, 2)
    async with open_host(configs, model=ScriptedModel(Say("all of it"))) as host:
        thread = await host.resume_thread(thread_id)
        first, second = thread.open_questions
        await thread.answer(second.id, Accept({"name": "Bob"}))
        assert thread.open_questions == (first,)
        await thread.answer(first.id, ADA)
        assert (await gone_on(thread)).last_message == "all of it"
        outputs = [entry for entry in thread.state.entries if isinstance(entry, OutputEntry)]
        assert [(output.call_id, output.success) for output in outputs] == [
            ("call-1", True),
            ("call-2", True),
            ("call-3", False),
            ("call-4", True),
        ]
        ended = [event.item.id for event in await facts(host, thread_id, CallEnded)]
        assert sorted(ended) == ["call-1", "call-2", "call-3", "call-4"]


async def test_a_resource_that_asks_is_read_after_the_restart(open_host: OpenHost, servers: Servers) -> None:
    resource = {
        "uri": "doc://a",
        "name": "a",
        "text": "hello",
        "do": [ASK, {"result": {"contents": [{"uri": "doc://a", "text": "hello"}]}}],
    }
    configs = servers(e=modern(resources=[resource]))
    read = Call("read_mcp_resource", {"server": "e", "uri": "doc://a"})
    async with open_host(configs, model=ScriptedModel(read)) as host:
        thread_id = await left_open(host)
    async with open_host(configs, model=ScriptedModel(Say("read"))) as host:
        thread = await host.resume_thread(thread_id)
        await thread.answer(thread.open_questions[0].id, ADA)
        assert (await gone_on(thread)).status == "completed"
        (output,) = [entry for entry in thread.state.entries if isinstance(entry, OutputEntry)]
        (part,) = output.content
        assert isinstance(part, TextPart)
        assert json.loads(part.text)["contents"] == [{"uri": "doc://a", "text": "hello"}]


# ---- what has changed meanwhile


async def ended_without_the_server(host: Host, thread_id: str, answer: Answer = ADA) -> McpToolCallItem:
    """The item of the call after people have answered in vain; the turn goes on."""
    thread = await host.resume_thread(thread_id)
    await thread.answer(thread.open_questions[0].id, answer)
    assert (await gone_on(thread)).status == "completed"
    assert await facts(host, thread_id, InputSent) == []
    (item,) = [item for item in thread.items if isinstance(item, McpToolCallItem)]
    assert (item.status, thread.state.unanswered) == ("failed", ())
    assert item.effect == "unknown"  # its first round has reached the server
    return item


@requirement("QST-9", "QST-1")
@pytest.mark.parametrize("change", ["gone", "another", "disabled", "filtered"])
async def test_a_server_that_is_another_now_does_not_get_the_answer(
    change: str, open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    configs = servers(e=modern(asking()))
    async with open_host(configs, model=ScriptedModel(Call("mcp__e__ask"))) as host:
        thread_id = await left_open(host)
    changed, words = {
        "gone": ({}, "not configured any more"),
        "another": ({"e": replace(scripted_server("f", modern(asking()), tmp_path), name="e")}, "another server"),
        "disabled": ({"e": replace(configs["e"], enabled=False)}, "disabled now"),
        "filtered": ({"e": replace(configs["e"], disabled_tools=("ask",))}, "filters"),
    }[change]
    async with open_host(changed, model=ScriptedModel(Say("so be it"))) as host:
        item = await ended_without_the_server(host, thread_id)
        assert item.error is not None
        assert words in item.error.message


@requirement("QST-9")
async def test_a_server_that_does_not_know_its_state_any_more_is_to_be_called_again(
    open_host: OpenHost, servers: Servers
) -> None:
    async with open_host(servers(e=modern(asking())), model=ScriptedModel(Call("mcp__e__ask"))) as host:
        thread_id = await left_open(host)
    forgetful = {**asking(), "do": [ASK, {"error": {"code": -32602, "message": "invalid requestState"}}]}
    async with open_host(servers(e=modern(forgetful)), model=ScriptedModel(Say("again, then"))) as host:
        thread = await host.resume_thread(thread_id)
        await thread.answer(thread.open_questions[0].id, ADA)
        assert (await gone_on(thread)).last_message == "again, then"
        (item,) = [item for item in thread.items if isinstance(item, McpToolCallItem)]
        assert item.error is not None
        assert "invalid requestState" in item.error.message
        assert "call it again from the beginning" in item.error.message


@requirement("QST-9", "QST-2")
@pytest.mark.parametrize("policy", [Policy(approval="never"), Policy(mcp_elicitations=False)])
async def test_a_policy_that_asks_nobody_declines_it_at_the_restart(
    policy: Policy, open_host: OpenHost, servers: Servers
) -> None:
    configs = servers(e=modern(asking()))
    async with open_host(configs, model=ScriptedModel(Call("mcp__e__ask"))) as host:
        thread_id = await left_open(host)
    async with open_host(configs, policy=policy, model=ScriptedModel(Say("nobody asks"))) as host:
        thread = await host.resume_thread(thread_id)
        assert thread.open_questions == ()
        assert (await gone_on(thread)).last_message == "nobody asks"
        assert told(thread) == [{"action": "decline"}]
        (declined,) = await facts(host, thread_id, QuestionDeclined)
        assert (declined.by, declined.question) == ("policy", None)


@requirement("QST-9")
async def test_without_a_model_the_call_ends_and_the_turn_says_what_is_missing(
    open_host: OpenHost, servers: Servers
) -> None:
    configs = servers(e=modern(asking()))
    async with open_host(configs, model=ScriptedModel(Call("mcp__e__ask"))) as host:
        thread_id = await left_open(host)
    async with open_host(configs) as host:
        thread = await host.resume_thread(thread_id)
        await thread.answer(thread.open_questions[0].id, ADA)
        result = await gone_on(thread)
        assert result.status == "failed"
        assert told(thread)[0]["action"] == "accept"


# ---- other ways out


@requirement("QST-9", "QST-5")
async def test_the_turn_can_be_interrupted_instead_and_the_thread_is_free(
    open_host: OpenHost, servers: Servers
) -> None:
    configs = servers(e=modern(asking()))
    async with open_host(configs, model=ScriptedModel(Call("mcp__e__ask"))) as host:
        thread_id = await left_open(host)
    async with open_host(configs, model=ScriptedModel(Say("anew"))) as host:
        thread = await host.resume_thread(thread_id)
        turn = thread.running_turn
        assert turn is not None
        await turn.interrupt()
        assert (thread.open_questions, thread.state.open_questions, thread.state.held_calls) == ((), (), ())
        assert (thread.state.turns[-1].status, thread.state.unanswered) == ("interrupted", ())
        assert len(await facts(host, thread_id, QuestionWithdrawn)) == 1
        await thread.rollback(1)
        assert (await (await thread.start_turn("again")).finished()).last_message == "anew"


@requirement("QST-9")
async def test_an_interrupted_turn_leaves_nothing_for_the_next_host(open_host: OpenHost, servers: Servers) -> None:
    configs = servers(e=modern(asking()))
    async with open_host(configs, model=ScriptedModel(Call("mcp__e__ask"))) as host:
        thread = await host.start_thread()
        with anyio.fail_after(PATIENCE):
            async with thread.audience("thread") as questions:
                turn = await thread.start_turn("go")
                await anext(questions)
                await turn.interrupt()
        state = thread.state
        assert (state.open_questions, state.held_calls, state.open_calls, state.open_turn) == ((), (), (), None)


@requirement("QST-9")
async def test_a_fork_leaves_the_turn_that_waits_out_and_a_deletion_takes_it_along(
    open_host: OpenHost, servers: Servers
) -> None:
    configs = servers(e=modern(asking()))
    async with open_host(configs, model=ScriptedModel(Say("first"), Call("mcp__e__ask"))) as host:
        thread = await host.start_thread()
        await (await thread.start_turn("hello")).finished()
        with anyio.fail_after(PATIENCE):
            async with thread.audience("thread") as questions:
                await thread.start_turn("go")
                await anext(questions)
                fork = await host.fork_thread(thread.id)
                assert (fork.open_questions, len(fork.state.turns)) == ((), 1)
                await host.archive_thread(thread.id)
                assert len(thread.open_questions) == 1
                await host.delete_thread(thread.id)
        with pytest.raises(InvalidRequest, match="no thread"):
            await host.resume_thread(thread.id)


@requirement("QST-9")
async def test_an_import_ends_a_turn_that_waits(open_host: OpenHost, servers: Servers) -> None:
    configs = servers(e=modern(asking()))
    async with open_host(configs, model=ScriptedModel(Call("mcp__e__ask"))) as host:
        thread_id = await left_open(host)
        lines = [line async for line in host.export_thread(thread_id)]

        async def exported() -> AsyncIterator[str]:
            for line in lines:
                yield line

        copy = await host.read_thread(await host.import_thread(exported(), new=True))
        assert (copy.open_turn, copy.open_calls, copy.open_questions, copy.unanswered) == (None, (), (), ())
        assert copy.turns[-1].status == "interrupted"
        assert len((await host.resume_thread(thread_id)).open_questions) == 1


@requirement("QST-9")
async def test_what_the_user_said_meanwhile_is_not_lost_for_a_question(open_host: OpenHost, servers: Servers) -> None:
    configs = servers(e=modern(asking()))
    async with open_host(configs, model=ScriptedModel(Call("mcp__e__ask"))) as host:
        thread = await host.start_thread()
        with anyio.fail_after(PATIENCE):
            async with thread.audience("thread") as questions:
                turn = await thread.start_turn("go")
                await anext(questions)
                turn.steer("never mind")
                await thread.close()
        state = await host.read_thread(thread.id)
        assert (state.open_turn, state.held_calls, state.unanswered) == (None, (), ())
        assert "never mind" in repr(state.entries[-1])


@requirement("QST-9", "LIF-1")
@pytest.mark.parametrize("what", ["steer", "interrupt"])
async def test_whatever_comes_while_the_host_stops_call_question_and_turn_have_their_ends_or_none_has(
    what: str, open_host: OpenHost, servers: Servers
) -> None:
    configs = servers(e=modern(asking()))
    kept = set()
    async with open_host(
        configs, model=ScriptedModel(*[Call("mcp__e__ask", call_id=f"c{n}") for n in range(30)])
    ) as host:
        for ticks in range(30):
            thread = await host.start_thread()
            async with thread.audience("thread") as questions, anyio.create_task_group() as tasks:
                turn = await thread.start_turn("go")
                await anext(questions)
                tasks.start_soon(thread.close)
                for _ in range(ticks):
                    await anyio.lowlevel.checkpoint()
                said = what == "steer"
                if said:
                    try:
                        turn.steer("never mind")
                    except InvalidRequest:
                        said = False
                else:
                    tasks.start_soon(turn.interrupt)
            state = await host.read_thread(thread.id)
            waits = state.open_turn is not None
            assert (len(state.open_calls), len(state.open_questions), len(state.held_calls)) == (waits,) * 3
            assert ("never mind" in repr(state.entries)) == said
            assert not (waits and said)
            kept.add(waits)
    assert kept == {True, False}


@requirement("QST-9")
async def test_a_loop_of_the_application_hears_the_end_when_it_stops_itself(
    open_host: OpenHost, servers: Servers
) -> None:
    async with open_host(servers(e=modern(asking()))) as host:
        thread = await host.start_thread()
        results = []
        with anyio.fail_after(PATIENCE):
            async with thread.audience("thread") as questions, anyio.create_task_group() as tasks:

                async def loop() -> None:
                    async with thread.step() as step:
                        results.append(await step.call("c1", "mcp__e__ask"))

                tasks.start_soon(loop)
                await anext(questions)
                await thread.close()
        state = await host.read_thread(thread.id)
        assert (state.open_questions, state.open_calls, state.open_turn) == ((), (), None)
        assert results[0].is_error


@requirement("QST-9", "LIF-7")
async def test_the_turn_goes_on_with_its_own_instructions_and_hooks_see_the_call_once(
    open_host: OpenHost, servers: Servers
) -> None:
    configs = servers(e=modern(asking()))
    seen: list[str] = []

    def before(call: HookedCall) -> None:
        seen.append("before")

    def after(call: HookedCall, result: ToolResult) -> None:
        seen.append(f"after {call.tool}")

    hooks = Hooks(before=(before,), after=(after,))
    schema = {"type": "object"}
    async with open_host(configs, model=ScriptedModel(Call("mcp__e__ask")), hooks=hooks) as host:
        thread_id = await left_open(host, instructions="be brief", output_schema=schema)
    requests: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Say:
        requests.append(request)
        return Say("ok")

    async with open_host(configs, model=ScriptedModel(answer), hooks=hooks) as host:
        thread = await host.resume_thread(thread_id)
        await thread.answer(thread.open_questions[0].id, ADA)
        assert (await gone_on(thread)).status == "completed"
    assert (requests[0].instructions, requests[0].output_schema) == ("be brief", schema)
    assert seen == ["before", "after ask"]


@requirement("QST-9", "HIS-1")
async def test_a_checkpoint_keeps_what_waits(
    open_host: OpenHost, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.history.journal.LONG_TAIL", 1)
    configs = servers(e=modern(asking()))
    async with open_host(configs, model=ScriptedModel(Call("mcp__e__ask"))) as host:
        thread_id = await left_open(host)
    async with open_host(configs, model=ScriptedModel(Say("thanks"))) as host:
        thread = await host.resume_thread(thread_id)
        (held,) = thread.state.held_calls
        assert held.requested.questions == thread.open_questions
        await thread.answer(thread.open_questions[0].id, ADA)
        assert (await gone_on(thread)).last_message == "thanks"


@requirement("QST-9")
async def test_content_that_is_stored_is_not_asked_for_a_second_time(tmp_path: Path, servers: Servers) -> None:
    """A host that ended between the answer and its way to the server."""
    configs = servers(e=modern(asking()))
    async with answered_and_lost(configs, tmp_path, Policy(store_answers=True)) as (host, thread_id):
        thread = await host.resume_thread(thread_id)
        assert (await gone_on(thread)).status == "completed"
        assert told(thread)[0]["content"] == {"name": "Ada"}
        assert len(await facts(host, thread_id, QuestionAsked)) == 1


@requirement("QST-9")
async def test_content_that_is_not_stored_is_asked_for_again(tmp_path: Path, servers: Servers) -> None:
    configs = servers(e=modern(asking()))
    async with answered_and_lost(configs, tmp_path, Policy()) as (host, thread_id):
        thread = await host.resume_thread(thread_id)
        (question,) = thread.open_questions
        assert thread.state.open_questions == (question,)
        await thread.answer(question.id, Accept({"name": "Bob"}))
        assert (await gone_on(thread)).status == "completed"
        assert told(thread)[0]["content"] == {"name": "Bob"}
        assert len(await facts(host, thread_id, QuestionAsked)) == 2


@asynccontextmanager
async def answered_and_lost(
    configs: dict[str, ServerConfig], folder: Path, policy: Policy
) -> AsyncIterator[tuple[Host, str]]:
    """A Host, and a Thread whose last host stored an answer as its last event."""
    place = folder / "lost.db"
    async with Host(configs, store=place, grace=45.0, model=ScriptedModel(Call("mcp__e__ask"))) as host:
        thread_id = await left_open(host)
        (question,) = (await host.read_thread(thread_id)).open_questions
    async with open_store(place) as store, store.claim(thread_id):
        record = await store.find(thread_id)
        assert record is not None
        await store.append(thread_id, [_answered(question, policy)], after=record.last_sequence, at=record.updated_at)
    model = ScriptedModel(Say("thanks"))
    async with Host(configs, store=place, grace=45.0, model=model, policy=policy) as host:
        yield host, thread_id


def _answered(question: Question, policy: Policy) -> QuestionAnswered:
    content = {"name": "Ada"} if policy.store_answers else None
    return QuestionAnswered(question_id=question.id, server="e", action="accept", by="user", content=content)
