"""Questions end to end: real servers ask, a policy asks, people answer through their Thread."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from interlock import (
    Accept,
    CallResult,
    Cancel,
    Decline,
    Host,
    InvalidRequest,
    Policy,
    ServerConfig,
    StdioTransport,
    Step,
    Thread,
)
from interlock.testing import Call, Say, ScriptedModel
from interlock.threads.hooks import Block, HookedCall, Hooks, Rewrite
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    Event,
    QuestionAnswered,
    QuestionAsked,
    QuestionDeclined,
    QuestionWithdrawn,
    StoredEvent,
)
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.notice import WarningNotice
from interlock.vocabulary.question import Answer, Approval, Question
from interlock.vocabulary.tool import ToolResult
from tests.host.conftest import READ_ONLY, OpenHost
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

Servers = Callable[..., dict[str, ServerConfig]]

NAME = {"type": "object", "properties": {"name": {"type": "string", "minLength": 1}}, "required": ["name"]}
ASK = {"ask": {"message": "Who?", "requestedSchema": NAME}}
ERAS = pytest.mark.parametrize("era", ["handshake", "stateless"])
PATIENCE = 60.0


def asking_tool(name: str = "ask", *more: dict[str, Any]) -> dict[str, Any]:
    """A read-only tool that asks for a name and answers with what it was told."""
    return {"name": name, "annotations": READ_ONLY, "do": [ASK, *more]}


def script(era: str, *tools: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"eras": [era], "tools": list(tools), **members}


async def facts(thread: Thread, *kinds: type) -> list[Event]:
    """The events of these kinds so far, in order."""
    found: list[Event] = []
    last = thread.state.last_sequence
    async for stored in thread.events():
        assert isinstance(stored, StoredEvent)
        if isinstance(stored.event, kinds):
            found.append(stored.event)
        if stored.sequence >= last:
            return found
    return found


QUESTIONS = (QuestionAsked, QuestionAnswered, QuestionDeclined, QuestionWithdrawn)


async def answer_all(thread: Thread, answers: Sequence[Answer], asked: list[Question], ready: anyio.Event) -> None:
    left = list(answers)
    async with thread.audience("thread") as questions:
        ready.set()
        async for question in questions:
            asked.append(question)
            await thread.answer(question.id, left.pop(0))


def told(result: CallResult) -> Any:
    """What the server was told, as the scripted server gives it back."""
    assert result.item.result is not None
    return json.loads(result.item.result.content[0]["text"])


# ---- approvals


def writing_tool(trace: Path) -> dict[str, Any]:
    return {"name": "write", "do": [{"touch": str(trace)}, {"text": "written"}]}


@requirement("APR-2", "APR-3", "LIF-1")
async def test_a_program_of_ten_lines_approves_a_call_and_the_turn_goes_on(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    written = tmp_path / "written"
    configs = servers(disk={"tools": [writing_tool(written)]})
    model = ScriptedModel(Call("mcp__disk__write", {"path": "a"}), Say("done"))
    async with open_host(configs, model=model) as host:
        thread = await host.start_thread()
        with anyio.fail_after(PATIENCE):
            async with thread.audience() as questions:
                turn = await thread.start_turn("write it")
                async for question in questions:
                    assert isinstance(question.subject, Approval)
                    assert not written.exists()
                    await thread.answer(question.id, Accept())
                assert (await turn.finished()).last_message == "done"

        assert written.exists()
        kinds = [type(event) for event in await facts(thread, CallStarted, CallEnded, *QUESTIONS)]
        assert kinds == [CallStarted, QuestionAsked, QuestionAnswered, CallEnded]


@requirement("APR-3")
async def test_a_declined_call_never_reaches_its_server_and_the_model_is_told(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    written = tmp_path / "written"
    configs = servers(disk={"tools": [writing_tool(written)]})
    model = ScriptedModel(Call("mcp__disk__write"), Say("then not"))
    async with open_host(configs, model=model) as host:
        thread = await host.start_thread()
        with anyio.fail_after(PATIENCE):
            async with thread.audience() as questions:
                turn = await thread.start_turn("write it")
                async for question in questions:
                    await thread.answer(question.id, Decline("not now"))
                assert (await turn.finished()).status == "completed"

        (item,) = [item for item in thread.items if isinstance(item, McpToolCallItem)]
        assert item.error is not None
        assert (item.status, item.error.code, item.error.effect) == ("failed", "not_permitted", "none")
        assert "the user declined it: not now" in str(model.requests[1].entries[-1])
        assert not written.exists()


@requirement("APR-2")
async def test_an_approval_for_the_session_ends_with_the_thread(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    configs = servers(disk={"tools": [writing_tool(tmp_path / "written")]})
    async with open_host(configs) as host:
        first, second = await host.start_thread(), await host.start_thread()
        asked: list[Question] = []
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                for thread in (first, second):
                    ready = anyio.Event()
                    tasks.start_soon(answer_all, thread, [Accept(remember="session")], asked, ready)
                    await ready.wait()
                    async with thread.step() as step:
                        for number in range(2):
                            assert not (await step.call(f"c{number}", "mcp__disk__write")).is_error
                tasks.cancel_scope.cancel()
    assert len(asked) == 2


def config_file(servers: dict[str, ServerConfig], folder: Path, text: str = "") -> Path:
    """The same servers in a file of the user's."""
    lines = [text, "# mine"]
    for name, server in servers.items():
        assert isinstance(server.transport, StdioTransport)
        lines += [
            f"[mcp_servers.{name}]  # a comment",
            f"command = {json.dumps(server.transport.command)}",
            f"args = {json.dumps(list(server.transport.args))}",
        ]
    file = folder / "interlock.toml"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


@requirement("APR-2")
async def test_an_approval_for_always_stands_in_the_users_file_and_later_threads_are_not_asked(
    servers: Servers, tmp_path: Path
) -> None:
    file = config_file(servers(disk={"tools": [writing_tool(tmp_path / "written")]}), tmp_path)
    asked: list[Question] = []
    async with Host.open(file, store=tmp_path / "s.db", grace=45.0) as host:
        for _ in range(2):
            thread = await host.start_thread()
            ready = anyio.Event()
            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(answer_all, thread, [Accept(remember="always")], asked, ready)
                    await ready.wait()
                    async with thread.step() as step:
                        for number in range(2):
                            assert not (await step.call(f"c{number}", "mcp__disk__write")).is_error
                    tasks.cancel_scope.cancel()

    assert len(asked) == 1
    written = file.read_text(encoding="utf-8")
    assert 'approval_mode = "approve"' in written
    assert "# mine" in written
    assert "[mcp_servers.disk]  # a comment" in written


@requirement("APR-2")
async def test_an_approval_that_cannot_be_written_down_holds_for_the_session_and_people_are_told(
    servers: Servers, tmp_path: Path
) -> None:
    file = config_file(servers(disk={"tools": [writing_tool(tmp_path / "written")]}), tmp_path)
    asked: list[Question] = []
    ready = anyio.Event()
    async with Host.open(file, store=tmp_path / "s.db", grace=45.0) as host:
        thread = await host.start_thread()
        file.unlink()
        notices = thread.notices()
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer_all, thread, [Accept(remember="always")], asked, ready)
                await ready.wait()
                async with thread.step() as step:
                    for number in range(2):
                        assert not (await step.call(f"c{number}", "mcp__disk__write")).is_error
                tasks.cancel_scope.cancel()
            async for notice in notices:
                if isinstance(notice, WarningNotice):
                    assert "holds for this session only" in notice.message
                    break
    assert len(asked) == 1


@requirement("APR-4")
async def test_rules_of_the_users_file_decide_before_anybody_is_asked(servers: Servers, tmp_path: Path) -> None:
    rules = """
    [[approval_rules]]
    action = "deny"
    tool = "write"
    arguments = { path = { within = "/etc" } }
    reason = "hands off"
    [[approval_rules]]
    action = "allow"
    tool = "write"
    """
    file = config_file(servers(disk={"tools": [writing_tool(tmp_path / "written")]}), tmp_path, rules)
    async with Host.open(file, store=tmp_path / "s.db", grace=45.0) as host:
        assert host.problems == ()
        thread = await host.start_thread()
        async with thread.step() as step:
            denied = await step.call("c1", "mcp__disk__write", {"path": "/tmp/../etc/passwd"})
            allowed = await step.call("c2", "mcp__disk__write", {"path": "/tmp/x"})
    assert "hands off" in denied.text
    assert not allowed.is_error


# ---- elicitations


@ERAS
@requirement("QST-1", "QST-8", "QST-11", "LIF-1")
async def test_a_server_asks_and_the_call_goes_on_with_the_answer(
    era: str, open_host: OpenHost, servers: Servers
) -> None:
    async with open_host(servers(e=script(era, asking_tool()))) as host:
        thread = await host.start_thread()
        asked: list[Question] = []
        ready = anyio.Event()
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer_all, thread, [Accept({"name": "Ada"}, meta={"by": "me"})], asked, ready)
                await ready.wait()
                async with thread.step() as step:
                    result = await step.call("c1", "mcp__e__ask")
                    turn_id = step.binding.turn_id
                tasks.cancel_scope.cancel()

        assert told(result) == [{"action": "accept", "content": {"name": "Ada"}, "_meta": {"by": "me"}}]
        (question,) = asked
        assert (question.server, question.call_id, question.turn_id) == ("e", "c1", turn_id)
        assert question.certainty == ("known" if era == "stateless" else "only_call")
        kinds = [type(event) for event in await facts(thread, CallStarted, CallEnded, *QUESTIONS)]
        assert kinds == [CallStarted, QuestionAsked, QuestionAnswered, CallEnded]
        (answered,) = await facts(thread, QuestionAnswered)
        assert isinstance(answered, QuestionAnswered)
        assert answered.content is None


@ERAS
@requirement("QST-4")
async def test_without_an_audience_the_server_is_told_no_at_once(
    era: str, open_host: OpenHost, servers: Servers
) -> None:
    async with open_host(servers(e=script(era, asking_tool()))) as host:
        thread = await host.start_thread()
        async with thread.step() as step:
            assert told(await step.call("c1", "mcp__e__ask")) == [{"action": "decline"}]
        (declined,) = await facts(thread, *QUESTIONS)
        assert isinstance(declined, QuestionDeclined)
        assert declined.by == "nobody"


@ERAS
@requirement("QST-5")
async def test_an_interrupted_turn_takes_its_question_along_and_the_next_one_is_answered(
    era: str, open_host: OpenHost, servers: Servers
) -> None:
    model = ScriptedModel(Call("mcp__e__ask"), Call("mcp__e__ask"), Say("done"))
    async with open_host(servers(e=script(era, asking_tool())), model=model) as host:
        thread = await host.start_thread()
        with anyio.fail_after(PATIENCE):
            async with thread.audience("thread") as questions:
                turn = await thread.start_turn("one")
                first = await anext(questions)
                await turn.interrupt()
                assert thread.open_questions == ()
                with pytest.raises(InvalidRequest, match="no longer needed"):
                    await thread.answer(first.id, Accept({"name": "late"}))

                turn = await thread.start_turn("two")
                second = await anext(questions)
                await thread.answer(second.id, Accept({"name": "second"}))
                assert (await turn.finished()).last_message == "done"

        withdrawn, answered = await facts(thread, QuestionWithdrawn, QuestionAnswered)
        assert isinstance(withdrawn, QuestionWithdrawn)
        assert isinstance(answered, QuestionAnswered)
        assert (withdrawn.question_id, answered.question_id) == (first.id, second.id)


@ERAS
@requirement("QST-1")
async def test_threads_get_only_the_questions_of_their_own_calls(
    era: str, open_host: OpenHost, servers: Servers
) -> None:
    """In the stateless era both share one connection."""
    async with open_host(servers(e=script(era, asking_tool()))) as host:
        threads = [await host.start_thread() for _ in range(2)]
        results: dict[str, Any] = {}

        async def play(thread: Thread, name: str) -> None:
            async with thread.audience("thread") as questions, thread.step() as step, anyio.create_task_group() as own:

                async def call() -> None:
                    results[name] = told(await step.call("c1", "mcp__e__ask"))

                own.start_soon(call)
                question = await anext(questions)
                await thread.answer(question.id, Accept({"name": name}))

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                for number, thread in enumerate(threads):
                    tasks.start_soon(play, thread, f"thread {number}")

    assert {name: answer[0]["content"]["name"] for name, answer in results.items()} == {
        "thread 0": "thread 0",
        "thread 1": "thread 1",
    }


@requirement("QST-11")
async def test_of_two_calls_of_an_older_server_the_question_says_that_it_does_not_know(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    reached, go = tmp_path / "reached", tmp_path / "go"
    slow = {"name": "slow", "annotations": READ_ONLY, "do": [{"touch": str(reached)}, {"wait_for_file": str(go)}]}
    waits = asking_tool()
    waits["do"] = [{"wait_for_file": str(reached)}, *waits["do"]]
    async with open_host(servers(e=script("handshake", slow, waits))) as host:
        thread = await host.start_thread()
        with anyio.fail_after(PATIENCE):
            async with (
                thread.audience("thread") as questions,
                thread.step() as step,
                anyio.create_task_group() as calls,
            ):
                calls.start_soon(step.call, "c1", "mcp__e__slow")
                calls.start_soon(step.call, "c2", "mcp__e__ask")
                question = await anext(questions)
                assert (question.call_id, question.certainty) == (None, "unknown")
                assert question.turn_id == step.binding.turn_id
                await thread.answer(question.id, Cancel())
                go.touch()


@requirement("QST-5", "CON-6")
async def test_when_the_server_goes_while_people_think_both_are_told(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    dies = {"name": "die", "annotations": READ_ONLY, "do": [{"wait_for_file": str(go)}, {"exit": 3}]}
    async with open_host(servers(e=script("handshake", asking_tool(), dies))) as host:
        thread = await host.start_thread()
        results: list[CallResult] = []

        async def call(step: Step, call_id: str, name: str) -> None:
            results.append(await step.call(call_id, name))

        with anyio.fail_after(PATIENCE):
            async with (
                thread.audience("thread") as questions,
                thread.step() as step,
                anyio.create_task_group() as calls,
            ):
                calls.start_soon(call, step, "c1", "mcp__e__ask")
                question = await anext(questions)
                calls.start_soon(call, step, "c2", "mcp__e__die")
                go.touch()
                await thread.question_closed(question.id)
                with pytest.raises(InvalidRequest, match="no longer needed"):
                    await thread.answer(question.id, Accept({"name": "Ada"}))

        asked = next(result for result in results if result.call_id == "c1")
        assert asked.item.error is not None
        assert asked.item.error.effect == "unknown"


@ERAS
@requirement("QST-4", "QST-9")
async def test_closing_a_thread_with_an_open_question_is_quick_and_leaves_open_what_can_go_on(
    era: str, open_host: OpenHost, servers: Servers
) -> None:
    model = ScriptedModel(Call("mcp__e__ask"))
    async with open_host(servers(e=script(era, asking_tool())), model=model) as host:
        thread = await host.start_thread()
        with anyio.fail_after(PATIENCE):
            async with thread.audience("thread") as questions:
                await thread.start_turn("go")
                question = await anext(questions)
                await thread.close()
                assert [question async for question in questions] == []
        state = await host.read_thread(thread.id)
        if era == "stateless":
            assert (state.open_questions, len(state.open_calls)) == ((question,), 1)
            assert state.open_turn == question.turn_id
        else:
            assert (state.open_questions, state.open_calls, state.open_turn) == ((), (), None)


@ERAS
@requirement("QST-5", "QST-8")
async def test_a_request_of_the_application_may_be_asked_back_and_outlives_the_turn(
    era: str, open_host: OpenHost, servers: Servers
) -> None:
    configs = servers(e=script(era, asking_tool()), other={"tools": [{"name": "x", "annotations": READ_ONLY}]})
    model = ScriptedModel(Call("mcp__other__x"), Say("done"))
    async with open_host(configs, model=model) as host:
        thread = await host.start_thread()
        results: list[ToolResult] = []

        async def request() -> None:
            results.append(await thread.requests.call_tool("e", "ask"))

        with anyio.fail_after(PATIENCE):
            async with thread.audience("thread") as questions, anyio.create_task_group() as tasks:
                tasks.start_soon(request)
                question = await anext(questions)
                assert (question.call_id, question.turn_id, question.certainty) == (None, None, "unknown")
                turn = await thread.start_turn("go")
                await turn.finished()
                assert thread.open_questions == (question,)
                await thread.answer(question.id, Accept({"name": "Ada"}))
        assert json.loads(results[0].content[0]["text"])[0]["content"] == {"name": "Ada"}


@ERAS
async def test_a_resource_that_asks_before_it_is_read_is_answered_too(
    era: str, open_host: OpenHost, servers: Servers
) -> None:
    resource = {
        "uri": "doc://a",
        "name": "a",
        "text": "hello",
        "do": [ASK, {"result": {"contents": [{"uri": "doc://a", "text": "hello"}]}}],
    }
    async with open_host(servers(e=script(era, resources=[resource]))) as host:
        thread = await host.start_thread()
        asked: list[Question] = []
        ready = anyio.Event()
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer_all, thread, [Accept({"name": "Ada"})], asked, ready)
                await ready.wait()
                async with thread.step() as step:
                    result = await step.call("c1", "read_mcp_resource", {"server": "e", "uri": "doc://a"})
                tasks.cancel_scope.cancel()
        assert "hello" in result.text
        assert [question.call_id for question in asked] == ["c1"]


# ---- policy, reviewer


@ERAS
@requirement("QST-2")
async def test_a_changed_policy_holds_for_the_next_question_and_not_for_the_open_one(
    era: str, open_host: OpenHost, servers: Servers
) -> None:
    async with open_host(servers(e=script(era, asking_tool()))) as host:
        thread = await host.start_thread()
        results: list[Any] = []

        async def call(step: Step, call_id: str) -> None:
            results.append(told(await step.call(call_id, "mcp__e__ask")))

        with anyio.fail_after(PATIENCE):
            async with thread.audience("thread") as questions, thread.step() as step:
                async with anyio.create_task_group() as calls:
                    calls.start_soon(call, step, "c1")
                    question = await anext(questions)
                    await host.reload(policy=Policy(mcp_elicitations=False))
                    await thread.answer(question.id, Accept({"name": "Ada"}))
                await call(step, "c2")
        assert [answer[0]["action"] for answer in results] == ["accept", "decline"]


@ERAS
@requirement("QST-10")
async def test_a_reviewer_of_the_application_answers_without_any_audience(
    era: str, open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    configs = servers(e=script(era, asking_tool(), writing_tool(tmp_path / "written")))

    def reviewer(question: Question) -> Answer | None:
        return Accept() if isinstance(question.subject, Approval) else Accept({"name": "reviewed"})

    async with open_host(configs, reviewer=reviewer) as host:
        thread = await host.start_thread()
        async with thread.step() as step:
            assert told(await step.call("c1", "mcp__e__ask"))[0]["content"] == {"name": "reviewed"}
            assert not (await step.call("c2", "mcp__e__write")).is_error


@requirement("CON-12")
async def test_a_host_may_offer_no_questions_at_all(open_host: OpenHost, servers: Servers) -> None:
    async with open_host(servers(e=script("handshake", asking_tool())), elicitation=False) as host:
        thread = await host.start_thread()
        async with thread.audience(), thread.step() as step:
            result = await step.call("c1", "mcp__e__ask")
    assert "-32601" in json.dumps(told(result)) or "method not found" in json.dumps(told(result))


# ---- hooks


@requirement("LIF-7")
async def test_hooks_see_calls_of_servers_and_resource_tools_alike(open_host: OpenHost, servers: Servers) -> None:
    echo = {"name": "echo", "annotations": READ_ONLY, "do": []}
    seen: list[tuple[str, str, bool]] = []

    def before(call: HookedCall) -> Block | Rewrite | None:
        seen.append((call.server, call.tool, call.builtin))
        match call.arguments:
            case {"text": "forbidden"}:
                return Block("that word")
            case {"text": text}:
                return Rewrite({"text": f"{text}!"})
            case {"uri": "doc://secret"}:
                return Rewrite({"server": "e", "uri": "doc://a"})
            case _:
                return None

    def after(call: HookedCall, result: ToolResult) -> ToolResult | None:
        text = result.content[0]["text"].replace("hello", "[redacted]")
        return ToolResult(content=({"type": "text", "text": text},))

    configs = servers(
        e=script("handshake", echo, resources=[{"uri": "doc://a", "name": "a", "text": "hello"}]),
    )
    async with open_host(configs, hooks=Hooks(before=(before,), after=(after,))) as host:
        thread = await host.start_thread()
        async with thread.step() as step:
            blocked = await step.call("c1", "mcp__e__echo", {"text": "forbidden"})
            rewritten = await step.call("c2", "mcp__e__echo", {"text": "hello"})
            read = await step.call("c3", "read_mcp_resource", {"server": "e", "uri": "doc://secret"})

    assert blocked.is_error
    assert "blocked: that word" in blocked.text
    assert json.loads(rewritten.text) == {"text": "[redacted]!"}
    assert rewritten.item.arguments == {"text": "hello!"}
    assert "[redacted]" in read.text
    assert "hello" not in json.dumps(read.item.result.content if read.item.result else None)
    assert read.item.arguments == {"server": "e", "uri": "doc://a"}
    assert seen == [("e", "echo", False), ("e", "echo", False), ("e", "read_mcp_resource", True)]


@requirement("LIF-7", "APR-3")
async def test_people_approve_what_a_hook_made_of_the_arguments(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    configs = servers(disk={"tools": [writing_tool(tmp_path / "written")]})
    hooks = Hooks(before=(lambda call: Rewrite({"path": "/safe"}),))
    asked: list[Question] = []
    ready = anyio.Event()
    async with open_host(configs, hooks=hooks) as host:
        thread = await host.start_thread()
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer_all, thread, [Accept()], asked, ready)
                await ready.wait()
                async with thread.step() as step:
                    await step.call("c1", "mcp__disk__write", {"path": "/etc"})
                tasks.cancel_scope.cancel()
    subject = asked[0].subject
    assert isinstance(subject, Approval)
    assert subject.arguments == {"path": "/safe"}
