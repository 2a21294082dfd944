"""Sessions as their owner and their callers know them, over real processes."""

import sys
from typing import Any

import anyio
import pytest

from interlock.connections.negotiation import Negotiated
from interlock.connections.session import Session, SessionHandlers, open_session
from interlock.connections.stamping import Stamp
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.server import ServerConfig, StdioTransport
from interlock.vocabulary.tool import Progress
from tests.clock import let_pass
from tests.connections.servers import PATIENCE, nothing_left_behind, scripted
from tests.connections.test_negotiation import DISCOVERED
from tests.manifest import requirement

pytestmark = pytest.mark.anyio


async def seen_by(session: Session) -> list[Any]:
    seen: list[Any] = (await session.request("test/seen", {}, timeout=PATIENCE))["seen"]
    return seen


@requirement("CFG-5")
async def test_a_server_really_sees_only_what_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST_SECRET", "x")
    async with open_session(scripted(env={"TOKEN": "t"}), era="handshake") as session:
        environment = (await session.request("test/environment", timeout=PATIENCE))["environment"]
    assert environment["TOKEN"] == "t"
    assert "HOST_SECRET" not in environment
    assert "INTERLOCK_HOME" not in environment


async def test_the_body_sees_its_own_errors_unwrapped() -> None:
    async with nothing_left_behind():
        with pytest.raises(ZeroDivisionError):
            async with open_session(scripted(), era="handshake"):
                raise ZeroDivisionError


async def test_a_command_that_does_not_exist_is_a_plain_error() -> None:
    config = ServerConfig(name="gone", transport=StdioTransport(command="no-such-command"))
    async with nothing_left_behind():
        with pytest.raises(ServerFailed, match="command not found"):
            async with open_session(config):
                pass


@requirement("CON-9", "CON-10")
async def test_a_call_beyond_its_deadline_is_taken_back_and_its_late_answer_dropped() -> None:
    script = {"slow": [{"until": "notifications/cancelled"}, {"result": {"v": "late"}}]}
    async with open_session(scripted(script), era="handshake") as session:
        with pytest.raises(ServerFailed) as caught:
            await session.request("slow", {}, timeout=0.05)
        assert (caught.value.kind, caught.value.effect) == ("deadline", "unknown")
        seen = await seen_by(session)
        assert seen[-2]["method"] == "notifications/cancelled"
        assert seen[-2]["params"]["requestId"] == seen[-3]["id"]
        assert [(entry.kind, entry.count) for entry in session.diagnostics()] == [("late_or_repeated_answer", 1)]


@requirement("CON-10")
async def test_a_call_given_up_right_before_the_end_is_taken_back_all_the_same(tmp_path: Any) -> None:
    trace = tmp_path / "trace"
    program = (
        "import sys\n"
        f"trace = open({str(trace)!r}, 'w')\n"
        "for line in sys.stdin:\n"
        "    trace.write(line); trace.flush()\n"
        "    if '\"initialize\"' in line:\n"
        '        print(\'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}\', flush=True)\n'
        "    if '\"tools/call\"' in line:\n"
        '        print(\'{"jsonrpc":"2.0","method":"test/called"}\', flush=True)\n'
    )
    transport = StdioTransport(command=sys.executable, args=("-I", "-S", "-c", program))
    given_up = anyio.CancelScope()
    handlers = SessionHandlers(on_notification=lambda *_: given_up.cancel())
    config = ServerConfig(name="t", transport=transport)
    async with open_session(config, era="handshake", handlers=handlers) as session:
        with given_up:
            await session.request("tools/call", {}, timeout=PATIENCE)
    assert "notifications/cancelled" in trace.read_text()


@requirement("CON-8", "CON-9")
async def test_odd_things_cost_a_count_and_the_session_lives() -> None:
    script = {"odd": [{"raw": "hello\n"}, {"hex": "fffe0a"}, {"send": {"id": 999, "result": {}}}, {"result": {"v": 1}}]}
    async with open_session(scripted(script), era="handshake") as session:
        for _ in range(3):
            assert await session.request("odd", {}, timeout=PATIENCE) == {"v": 1}
        session.diagnostic("bad_tool", "from above")
        counts = {entry.kind: entry.count for entry in session.diagnostics()}
    assert counts == {"noise": 3, "invalid_utf8": 3, "unknown_id": 3, "bad_tool": 1}


async def test_the_end_of_the_server_is_known_with_its_reason() -> None:
    script = {"die": [{"stderr": "segfault, sorry\n"}, {"exit": 7}]}
    async with nothing_left_behind(), open_session(scripted(script), era="handshake") as session:
        assert session.process_id is not None
        assert not session.ended.is_set()
        with pytest.raises(ServerFailed) as caught:
            await session.request("die", {}, timeout=PATIENCE)
        with anyio.fail_after(PATIENCE):
            await session.ended.wait()
        assert session.failure is not None
        assert session.failure.facts["exit_code"] == 7
        assert "segfault, sorry" in session.failure.facts["standard_error"]
        assert (caught.value.kind, caught.value.effect) == ("lost", "unknown")
        assert caught.value.facts["exit_code"] == 7


@requirement("CON-5")
@pytest.mark.parametrize("moment", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55])
async def test_an_owner_that_is_cancelled_at_any_moment_leaves_nothing(moment: int) -> None:
    async with nothing_left_behind():

        async def own() -> None:
            async with open_session(scripted(), timeout=PATIENCE) as session:
                await session.request("tools/call", {"arguments": {}}, timeout=PATIENCE)
                await anyio.sleep_forever()

        async with anyio.create_task_group() as group:
            group.start_soon(own)
            for _ in range(moment):
                await anyio.sleep(0.002)  # the moments of a real process are in time, not in turns of the loop
            group.cancel_scope.cancel()


@requirement("CON-5")
async def test_closing_from_another_task_is_the_owners_affair_and_fails_what_is_in_flight() -> None:
    stop, opened = anyio.Event(), anyio.Event()
    handlers = SessionHandlers(on_notification=lambda *_: stop.set())
    sessions: list[Session] = []
    outcome: list[ServerFailed] = []

    async def own() -> None:
        script = {"hang": [{"send": {"jsonrpc": "2.0", "method": "test/called"}}]}
        async with open_session(scripted(script), era="handshake", handlers=handlers) as session:
            sessions.append(session)
            opened.set()
            await stop.wait()

    async def ask() -> None:
        with pytest.raises(ServerFailed) as caught:
            await sessions[0].request("hang", {}, timeout=PATIENCE)
        outcome.append(caught.value)

    async with nothing_left_behind(), anyio.create_task_group() as group:
        group.start_soon(own)
        await opened.wait()
        group.start_soon(ask)
    assert (outcome[0].kind, outcome[0].effect) == ("lost", "unknown")


async def test_fifty_sessions_open_and_close_side_by_side() -> None:
    async def own(number: int) -> None:
        async with open_session(scripted(), era="handshake") as session:
            result = await session.request("tools/call", {"arguments": {"n": number}}, timeout=PATIENCE)
            assert str(number) in result["content"][0]["text"]

    async with nothing_left_behind(), anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(own, number)


# ---------------------------------------------------------------- stamps


async def test_a_handshake_request_is_sent_as_it_is() -> None:
    async with open_session(scripted(), era="handshake") as session:
        await session.request("tools/call", {"name": "x"}, timeout=PATIENCE)
        await session.request("tools/call", {"name": "x"}, timeout=PATIENCE, meta={"traceparent": "00"})
        await session.notify("notifications/x", {"a": 1})
        seen = await seen_by(session)
    assert seen[-4]["params"] == {"name": "x"}
    assert seen[-3]["params"] == {"name": "x", "_meta": {"traceparent": "00"}}
    assert seen[-2] == {"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": 1}}


@requirement("CON-4")
async def test_a_stateless_request_carries_version_client_and_capabilities() -> None:
    heard: list[Progress] = []
    steps = [
        {"send": {"method": "notifications/progress", "params": {"progressToken": "$id", "progress": 1}}},
        {"result": {"content": []}},
    ]
    script = {"server/discover": [{"result": DISCOVERED}], "tools/call": steps}
    async with open_session(scripted(script)) as session:
        parameters = {"name": "x", "_meta": {"a": 1}}
        await session.request(
            "tools/call", parameters, timeout=PATIENCE, meta={"traceparent": "00"}, on_progress=heard.append
        )
        await session.notify("notifications/x")
        seen = await seen_by(session)
    meta = seen[-3]["params"]["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "interlock"
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {}
    assert (meta["a"], meta["traceparent"], meta["progressToken"]) == (1, "00", seen[-3]["id"])
    assert "io.modelcontextprotocol/protocolVersion" in seen[-2]["params"]["_meta"]
    assert heard == [Progress(progress=1)]


@pytest.mark.parametrize("kind", [None, "complete", "input_required"])
async def test_known_result_types_are_handed_up_raw(kind: str | None) -> None:
    result: dict[str, Any] = {"content": []} | ({} if kind is None else {"resultType": kind})
    script = {"server/discover": [{"result": DISCOVERED}], "tools/call": [{"result": result}]}
    async with open_session(scripted(script)) as session:
        assert await session.request("tools/call", {}, timeout=PATIENCE) == result


@pytest.mark.parametrize("kind", ["telepathy", 5, {"a": 1}])
async def test_an_unknown_result_type_is_no_result(kind: Any) -> None:
    result = {"content": [], "resultType": kind}
    script = {"server/discover": [{"result": DISCOVERED}], "tools/call": [{"result": result}]}
    async with open_session(scripted(script)) as session:
        with pytest.raises(ServerFailed, match="unknown type") as caught:
            await session.request("tools/call", {}, timeout=PATIENCE)
    assert (caught.value.kind, caught.value.effect) == ("protocol", "unknown")


def negotiated(era: Any, version: str) -> Negotiated:
    return Negotiated(era=era, protocol_version=version)


def test_over_http_an_older_server_is_told_the_version_only() -> None:
    stamp = Stamp(negotiated("handshake", "2025-06-18"), {}, http=True)
    assert stamp.headers("tools/call", {"name": "x"}, None) == {"mcp-protocol-version": "2025-06-18"}


@requirement("CON-4")
def test_over_http_a_stateless_request_repeats_method_name_and_marked_arguments_in_headers() -> None:
    stamp = Stamp(negotiated("stateless", "2026-07-28"), {}, http=True)
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    parameters = {"name": "résumé", "arguments": {"region": "eu", "other": 1}}
    for _ in range(2):
        assert stamp.headers("tools/call", parameters, schema) == {
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": "=?base64?csOpc3Vtw6k=?=",
            "Mcp-Param-Region": "eu",
        }
    assert stamp.headers("tools/list", None, None) == {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}


def test_over_stdio_there_are_no_headers() -> None:
    assert Stamp(negotiated("stateless", "2026-07-28"), {}, http=False).headers("tools/call", {}, None) is None


# ---------------------------------------------------------------- questions of the server


@requirement("CON-11", "CON-12")
async def test_a_question_is_answered_by_its_handler_while_the_calls_clock_stands_still() -> None:
    sessions: list[Session] = []

    async def think(params: JsonObject) -> JsonObject:
        with sessions[0].paused():
            let_pass(PATIENCE)  # longer than the call may take; that this does not count is the point
            await anyio.lowlevel.checkpoint()
        return {"action": "accept", "content": {"n": params["n"]}}

    question = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"n": 4}}
    script = {"tools/call": [{"ask": question}]}
    answered = anyio.Event()
    answers: list[JsonObject] = []

    def hear(method: str, params: JsonObject) -> None:
        if method == "test/answered":
            answers.append(params)
            answered.set()
            let_pass(PATIENCE)

    handlers = SessionHandlers(on_request={"elicitation/create": think}, on_notification=hear)
    async with open_session(scripted(script), era="handshake", handlers=handlers) as session:
        sessions.append(session)
        with pytest.raises(ServerFailed) as caught:
            await session.request("tools/call", {}, timeout=PATIENCE)
        assert caught.value.kind == "deadline"
        assert answered.is_set()
    assert answers[0]["result"] == {"action": "accept", "content": {"n": 4}}


@requirement("CON-8")
async def test_a_start_that_fails_shows_what_was_printed_instead_of_messages() -> None:
    printed = [{"raw": "Booting\n\u001b[1mReady\u001b[0m\n"}]
    script = {"@start": printed, "initialize": [{"stderr": "oops\n"}, {"exit": 1}]}
    async with nothing_left_behind():
        with pytest.raises(ServerFailed) as caught:
            async with open_session(scripted(script), timeout=PATIENCE, era="handshake"):
                raise AssertionError("it opened")
    assert caught.value.message.endswith(
        "; its last words on stderr: oops; what it printed on stdout is no message, but 2 lines, "
        "the last of them: \\x1b[1mReady\\x1b[0m"
    )
    assert [(entry.kind, entry.count) for entry in caught.value.facts["diagnostics"]] == [("noise", 2)]


async def test_a_server_that_ends_right_after_its_first_answer_is_told_by_its_exit_status() -> None:
    script = {"initialize": [{"result": {"protocolVersion": "2025-11-25"}}, {"exit": 3}]}
    async with nothing_left_behind():
        try:
            async with open_session(scripted(script), timeout=PATIENCE) as session:
                await session.ended.wait()  # it may have taken what follows the handshake before it ended
                failure = session.failure
        except ServerFailed as error:
            failure = error
    assert failure is not None
    assert "ended with exit code 3" in failure.message
