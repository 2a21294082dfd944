"""A server whose every answer is a little wrong, by chance: whatever it says ends in a result or in one of our errors.

Each seed makes one server, in one of both eras. What is right in an answer is replaced, removed, doubled or renamed,
anywhere in it; notices and questions are bent in the same way. The Host goes through all that can be asked.
"""

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest

from interlock import Accept, Cancel, Decline, Host, InterlockError, ServerConfig, StdioTransport, Thread
from interlock.connections import session
from interlock.connections.callbacks import callback_context
from interlock.connections.channel import Receiver
from interlock.vocabulary.server import Era
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

SEEDS = range(24)
PATIENCE = 60.0
TIMEOUT = 0.25
"""Seconds after which an answer that does not come is given up; how many come in time changes nothing here."""


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [value]}
    return value


ODD = [None, True, False, 0, -1, 1e308, 1.5, 2**63, 2**64 - 1, "", "x" * 3000, "\x00", "\u202e\x1b[2J", "a/b c"]
ODD += [[], {}, [[]], {"": {}}, [None], ["a"], {"type": "object"}, "complete", "input_required", nested(300)]

FIELDS = {
    "n": {"type": "integer", "minimum": 1, "default": 3},
    "s": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
    "m": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}, "default": ["a"]},
}
QUESTION = {
    "method": "elicitation/create",
    "params": {"message": "How?", "requestedSchema": {"type": "object", "properties": FIELDS, "required": ["n"]}},
}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {},
    "completions": {},
}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"$ref": "#/$defs/x"}}}
TOOL = {"name": "t1", "inputSchema": SCHEMA, "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
BLOCKS = [{"type": "text", "text": "hi"}, {"type": "resource", "resource": {"uri": "u://x", "text": "t"}}]
RIGHT: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": CAPABILITIES,
        "serverInfo": {"name": "f", "version": "1"},
    },
    "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES},
    "tools/list": {"tools": [TOOL, {"name": "t2", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": BLOCKS, "structuredContent": {"r": 1}, "isError": False, "_meta": {"a": 1}},
    "resources/list": {"resources": [{"uri": "u://x", "name": "n", "size": 5}], "nextCursor": "2"},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "u://{x}", "name": "n"}]},
    "resources/read": {"contents": [{"uri": "u://x", "text": "t"}, {"uri": "u://y", "blob": "aGk="}]},
    "prompts/list": {"prompts": [{"name": "p", "arguments": [{"name": "a", "required": True}]}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "t"}}]},
    "completion/complete": {"completion": {"values": ["a"], "total": 1, "hasMore": False}},
}
NOTICES = [
    {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1, "total": 2, "message": "m"}},
    {"method": "notifications/resources/updated", "params": {"uri": "u://x"}},
    {"method": "notifications/tools/list_changed", "params": {}},
    {"method": "notifications/cancelled", "params": {"requestId": 1}},
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield (*path, key)
        yield from places(part, (*path, key))


def bent(right: Any, chance: random.Random) -> Any:
    """A copy with some of its places changed."""
    value = json.loads(json.dumps(right))
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        if not (found := list(places(value))):
            break
        *path, key = chance.choice(found)
        holder = value
        for step in path:
            holder = holder[step]
        match chance.choice(("replace", "replace", "remove", "double", "rename")):
            case "remove":
                del holder[key]
            case "double" if isinstance(holder, list):
                holder.append(json.loads(json.dumps(holder[key])))
            case "rename" if isinstance(holder, dict):
                holder[chance.choice([*holder, "$ref", "_meta", "enum", "requestState"])] = holder[key]
            case _:
                holder[key] = json.loads(json.dumps(chance.choice(ODD)))
    return value


class OddServer:
    """A channel that is its own server."""

    sending_waits = False
    standard_error = ""
    process_id = None

    def __init__(self, era: Era, chance: random.Random) -> None:
        self._era = era
        self._chance = chance
        self._receiver: Receiver | None = None

    async def run(
        self, receiver: Receiver, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        self._receiver = receiver
        task_status.started()
        await anyio.sleep_forever()

    async def send(self, message: Any, **rest: object) -> None:
        if "method" not in message or "id" not in message:
            return
        for notice in self._chance.choices(NOTICES, k=self._chance.randrange(3)):
            self._say(bent({"jsonrpc": "2.0", **notice}, self._chance))
        if message["method"] == "tools/call" and self._era == "handshake" and self._chance.random() < 0.4:
            self._say(bent({"jsonrpc": "2.0", "id": f"q{self._chance.random()}", **QUESTION}, self._chance))
        self._say({"jsonrpc": "2.0", "id": message["id"], **self._answer(message["method"], message["params"])})

    def _answer(self, method: str, params: Any) -> dict[str, Any]:
        ours = {"handshake": "initialize", "stateless": "server/discover"}
        opens = method in ours.values()
        right = RIGHT.get(method)
        if right is None or (opens and ours[self._era] != method):
            return {"error": {"code": -32601, "message": "no"}}
        if self._era == "stateless":
            right = {"resultType": "complete", "ttlMs": 0, **right}
            if method == "tools/call" and "inputResponses" not in params and self._chance.random() < 0.4:
                right = {"resultType": "input_required", "inputRequests": {"q": QUESTION}, "requestState": "s"}
        if opens and self._chance.random() < 0.7:
            return {"result": right}
        if self._chance.random() < 0.1:
            return {"error": bent({"code": -32042, "message": "m", "data": {"elicitations": []}}, self._chance)}
        return {"result": bent(right, self._chance)}

    def _say(self, message: Any) -> None:
        assert self._receiver is not None
        asyncio.get_running_loop().call_soon(self._receiver.message, message, context=callback_context())

    async def flush(self) -> None:
        pass

    def abandon(self, request_id: int | str) -> bool:
        return False

    def adopted(self, era: Era, protocol_version: str) -> None:
        pass


@asynccontextmanager
async def odd_host(chance: random.Random, store: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Thread]:
    era: Era = chance.choice(("handshake", "stateless"))
    monkeypatch.setattr(session, "StdioChannel", lambda config: OddServer(era, chance))
    config = ServerConfig(
        name="odd",
        transport=StdioTransport(command="played"),
        startup_timeout=TIMEOUT,
        tool_timeout=TIMEOUT,
        on_bad_tool=chance.choice(("skip", "refuse")),
    )
    answers = (Accept({"n": 4}), Decline(), Cancel(), Accept({}))
    async with Host(
        {"odd": config}, store=store, approvals="allow", elicitation=True, reviewer=lambda _: chance.choice(answers)
    ) as host:
        yield await host.start_thread()


@requirement("CON-1", "CON-9", "CAT-3", "QST-6")
@pytest.mark.parametrize("seed", SEEDS)
async def test_whatever_is_wrong_in_an_answer_ends_in_a_result_or_in_an_error_of_ours(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: broken.append(context))
    with anyio.fail_after(PATIENCE):
        async with odd_host(random.Random(seed), tmp_path / "events.db", monkeypatch) as thread:
            await everything(thread)
            assert all(report.name == "odd" for report in thread.reports())
    assert broken == []
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


async def everything(thread: Thread) -> None:
    """All that can be asked, one after the other."""
    ask = thread.requests
    async with thread.step() as step:
        for number, tool in enumerate(step.tools):
            await tried(step.call(f"c{number}", tool.name, {"a": "b", "server": "odd", "uri": "u://x"}))
    await tried(ask.list_resources("odd"))
    await tried(ask.list_resource_templates("odd"))
    await tried(ask.read_resource("odd", "u://x"))
    await tried(ask.list_prompts("odd"))
    await tried(ask.get_prompt("odd", "p"))
    await tried(ask.complete_prompt("odd", "p", "a"))
    await tried(ask.list_tools("odd"))
    await tried(ask.call_tool("odd", "t1", {"a": "b"}))


async def tried(asked: Awaitable[object]) -> None:
    with suppress(InterlockError):
        await asked
