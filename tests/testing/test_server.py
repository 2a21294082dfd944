"""The scripted MCP server, spoken to over its pipes in plain JSON-RPC: no client of ours can flatter it."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from interlock.testing import scripted_server
from interlock.vocabulary.server import StdioTransport

pytestmark = pytest.mark.anyio
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Peer:
    """The client's side of the pipes."""

    def __init__(self, process: anyio.abc.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self._stdin = process.stdin
        self._lines = BufferedByteReceiveStream(process.stdout)
        self._last = 0

    async def send(self, **message: Any) -> None:
        await self._stdin.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def receive(self) -> dict[str, Any]:
        with anyio.fail_after(60):
            value: dict[str, Any] = json.loads(await self._lines.receive_until(b"\n", 1_000_000))
        return value

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._last += 1
        await self.send(id=self._last, method=method, params=params)
        answer = await self.receive()
        assert answer["id"] == self._last
        return answer

    async def ask_stateless(self, method: str, **params: Any) -> dict[str, Any]:
        return await self.ask(method, _meta=META, **params)


@asynccontextmanager
async def started(script: dict[str, Any], directory: Path) -> AsyncIterator[Peer]:
    transport = scripted_server("scripted", script, directory).transport
    assert isinstance(transport, StdioTransport)
    command = [str(transport.command), *map(str, transport.args)]
    async with await anyio.open_process(command, stderr=sys.stderr) as process:
        yield Peer(process)
        assert process.stdin is not None
        await process.stdin.aclose()
        with anyio.fail_after(60):
            await process.wait()


async def test_both_eras_are_served_by_one_script(tmp_path: Path) -> None:
    script = {"name": "docs", "tools": [{"name": "echo"}], "instructions": "read first"}
    async with started(script, tmp_path) as peer:
        older = (await peer.ask("initialize", protocolVersion="2025-06-18"))["result"]
        newer = (await peer.ask_stateless("server/discover"))["result"]
        listed = (await peer.ask_stateless("tools/list"))["result"]
    assert older["protocolVersion"] == "2025-06-18"
    assert older["serverInfo"] == {"name": "docs", "version": "1.0"}
    assert newer["supportedVersions"] == ["2026-07-28"]
    assert older["capabilities"] == newer["capabilities"] == {"tools": {"listChanged": True}}
    assert older["instructions"] == newer["instructions"] == "read first"
    assert listed == {
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "tools": [{"inputSchema": {"type": "object"}, "name": "echo"}],
    }


async def test_a_script_can_keep_to_one_era(tmp_path: Path) -> None:
    async with started({"eras": ["handshake"]}, tmp_path) as peer:
        assert (await peer.ask_stateless("tools/list"))["error"]["code"] == -32022
        assert (await peer.ask("server/discover"))["error"]["code"] == -32601
    async with started({"eras": ["stateless"]}, tmp_path) as peer:
        refused = (await peer.ask("initialize", protocolVersion="2025-11-25"))["error"]
    assert refused["data"] == {"supported": ["2026-07-28"], "requested": "2025-11-25"}


async def test_listings_have_pages_and_a_cursor_of_another_kind_is_refused(tmp_path: Path) -> None:
    resources = [{"uri": f"docs://{n}", "name": str(n), "text": f"page {n}"} for n in range(3)]
    async with started({"page_size": 2, "resources": resources}, tmp_path) as peer:
        first = (await peer.ask("resources/list"))["result"]
        second = (await peer.ask("resources/list", cursor=first["nextCursor"]))["result"]
        refused = await peer.ask("resources/list", cursor="nonsense")
        read = (await peer.ask("resources/read", uri="docs://2"))["result"]
        templates = (await peer.ask("resources/templates/list"))["result"]
    assert [entry["uri"] for entry in first["resources"] + second["resources"]] == [f"docs://{n}" for n in range(3)]
    assert "nextCursor" not in second
    assert "text" not in first["resources"][0]
    assert refused["error"]["code"] == -32602
    assert read["contents"] == [{"uri": "docs://2", "mimeType": "text/plain", "text": "page 2"}]
    assert templates == {"resourceTemplates": []}


async def test_a_call_waits_for_its_file_while_others_are_answered(tmp_path: Path) -> None:
    here, go = tmp_path / "here", tmp_path / "go"
    slow = {"name": "slow", "do": [{"touch": str(here)}, {"wait_for_file": str(go)}, {"text": "at last"}]}
    async with started({"tools": [slow, {"name": "echo"}]}, tmp_path) as peer:
        await peer.send(id="s", method="tools/call", params={"name": "slow"})
        echoed = await peer.ask("tools/call", name="echo", arguments={"a": 1})
        assert echoed["result"]["content"] == [{"type": "text", "text": '{"a": 1}'}]
        go.touch()
        assert (await peer.receive())["id"] == "s"
        assert here.exists()


async def test_progress_goes_to_the_token_of_the_call_and_errors_are_errors(tmp_path: Path) -> None:
    tools = [
        {"name": "work", "do": [{"progress": [1, 2, "half"]}, {"text": "no good", "is_error": True}]},
        {"name": "refuse", "do": [{"error": {"code": -32000, "message": "not today"}}]},
    ]
    async with started({"tools": tools}, tmp_path) as peer:
        await peer.send(id="w", method="tools/call", params={"name": "work", "_meta": {"progressToken": 7}})
        progress, result = await peer.receive(), await peer.receive()
        refused = await peer.ask("tools/call", name="refuse")
        unknown = await peer.ask("tools/call", name="other")
    assert progress["params"] == {"progressToken": 7, "progress": 1, "total": 2, "message": "half"}
    assert result["result"]["isError"] is True
    assert refused["error"] == {"code": -32000, "message": "not today"}
    assert unknown["error"]["message"] == "unknown name: other"


async def test_a_cancelled_call_is_not_answered(tmp_path: Path) -> None:
    async with started({"tools": [{"name": "hang", "do": [{"silence": True}]}]}, tmp_path) as peer:
        await peer.send(id="h", method="tools/call", params={"name": "hang"})
        await peer.send(method="notifications/cancelled", params={"requestId": "h"})
        assert (await peer.ask("ping"))["result"] == {}


async def test_a_tool_asks_by_a_request_in_the_handshake_era(tmp_path: Path) -> None:
    ask = {"ask": {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}}
    async with started({"tools": [{"name": "greet", "do": [ask]}]}, tmp_path) as peer:
        await peer.send(id="g", method="tools/call", params={"name": "greet"})
        question = await peer.receive()
        assert question["method"] == "elicitation/create"
        await peer.send(id=question["id"], result={"action": "accept", "content": {"name": "Ada"}})
        answer = await peer.receive()
    assert json.loads(answer["result"]["content"][0]["text"]) == [{"action": "accept", "content": {"name": "Ada"}}]


async def continued(peer: Peer, result: dict[str, Any], key: str, answer: dict[str, Any]) -> dict[str, Any]:
    state = result["requestState"]
    again = await peer.ask_stateless("tools/call", name="greet", inputResponses={key: answer}, requestState=state)
    value: dict[str, Any] = again["result"]
    return value


async def test_a_tool_asks_by_a_round_of_input_in_the_stateless_era(tmp_path: Path) -> None:
    log = tmp_path / "log"
    steps = [{"touch": str(log)}, {"ask": {"message": "who?"}}, {"ask": {"message": "sure?"}}]
    async with started({"tools": [{"name": "greet", "do": steps}]}, tmp_path) as peer:
        first = (await peer.ask_stateless("tools/call", name="greet"))["result"]
        assert first["resultType"] == "input_required"
        log.unlink()
        yes = {"action": "accept", "content": {}}
        second = await continued(peer, first, "ask-1", yes)
        third = await continued(peer, second, "ask-2", yes)
    assert json.loads(third["content"][0]["text"]) == [yes, yes]
    assert not log.exists(), "steps before the question are not played again"


async def test_a_changed_list_is_announced_to_the_older_era_and_to_listeners_of_the_newer(tmp_path: Path) -> None:
    changed = "notifications/tools/list_changed"
    grow = [{"set": {"tools": [{"name": "new"}]}}, {"notify": {"method": changed}}]
    async with started({"tools": [{"name": "grow", "do": grow}]}, tmp_path) as peer:
        await peer.send(
            id="l", method="subscriptions/listen", params={"_meta": META, "notifications": {"toolsListChanged": True}}
        )
        acknowledged = await peer.receive()
        await peer.send(id="g", method="tools/call", params={"_meta": META, "name": "grow"})
        note, _ = await peer.receive(), await peer.receive()
        listed = (await peer.ask("tools/list"))["result"]
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert note["method"] == changed
    assert note["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "l"}
    assert [tool["name"] for tool in listed["tools"]] == ["new"]


async def test_prompts_and_completions_are_answered(tmp_path: Path) -> None:
    message = {"role": "user", "content": {"type": "text", "text": "hi"}}
    script = {"prompts": [{"name": "hello", "messages": [message]}], "completions": {"hello": {"who": ["Ada", "Alan"]}}}
    async with started(script, tmp_path) as peer:
        got = (await peer.ask("prompts/get", name="hello"))["result"]
        reference = {"type": "ref/prompt", "name": "hello"}
        found = (await peer.ask("completion/complete", ref=reference, argument={"name": "who", "value": "Al"}))[
            "result"
        ]
    assert got == {"messages": [message]}
    assert found["completion"] == {"values": ["Alan"], "total": 1, "hasMore": False}


async def test_steps_before_a_method_can_fail_it_and_a_step_can_end_the_process(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    script = {
        "tools": [{"name": "die", "do": [{"exit": 3}]}],
        "on": {"resources/list": [{"error": {"code": -32000, "message": "no shelves"}}]},
        "resources": [],
        "trace": str(trace),
    }
    async with started(script, tmp_path) as peer:
        assert (await peer.ask("resources/list"))["error"]["message"] == "no shelves"
        await peer.send(id="d", method="tools/call", params={"name": "die"})
        with anyio.fail_after(60):
            assert await peer.process.wait() == 3
    methods = [json.loads(line)["method"] for line in trace.read_text().splitlines()]
    assert methods == ["resources/list", "tools/call"]


@pytest.mark.parametrize("what", ["a device", "a file"])
async def test_without_anybody_who_could_speak_to_it_it_says_so_and_ends(what: str, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text("{}", encoding="utf-8")
    command = [sys.executable, "-m", "interlock.testing.server", str(script)]
    with open("/dev/null" if what == "a device" else script, "rb") as nobody, anyio.fail_after(60):  # noqa: ASYNC230
        done = await anyio.run_process(command, stdin=nobody, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"stdin is a file or a device" in done.stderr
