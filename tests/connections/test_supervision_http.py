"""Supervision over real HTTP: lost sessions, busy servers, servers that come up late."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from interlock.connections.connection import SupervisedConnection
from interlock.connections.pool import Pool
from interlock.connections.startup import Backoff, Recovery
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.server import ServerStatus
from tests.connections.http_driver import Handler, Reply, Request, ScriptedServer, configured, serving
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

PATIENCE = 60.0
SLOW = Recovery(backoff=Backoff(first=100.0, limit=100.0))


class Forgetful:
    """A server of 2025-11-25 that knows only its newest session, and forgets it when told to."""

    def __init__(self) -> None:
        self.opened = 0
        self.known = ""
        self.calls: list[tuple[str, str]] = []

    async def __call__(self, request: Request, reply: Reply) -> None:
        session = request.headers.get("mcp-session-id", "")
        match request.method, request.rpc:
            case "POST", "initialize":
                self.opened += 1
                self.known = f"s-{self.opened}"
                result = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "far", "version": "1"},
                }
                await reply.result(request, result, Mcp_Session_Id=self.known)
            case "POST", _ if session != self.known:
                await reply.respond(404, json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32600}}))
            case "POST", _ if "id" not in request.message:
                await reply.respond(202)
            case "POST", method:
                self.calls.append((str(method), session))
                await self.answer(request, reply)
            case _:
                await reply.respond(405)

    async def answer(self, request: Request, reply: Reply) -> None:
        if request.rpc == "tools/list":
            await reply.result(request, {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
        else:
            await reply.result(request, {"content": [{"type": "text", "text": self.known}]})


@asynccontextmanager
async def connected(handler: Handler) -> AsyncIterator[tuple[SupervisedConnection, ScriptedServer]]:
    with anyio.fail_after(3 * PATIENCE):
        async with serving(handler) as server, Pool(recovery=SLOW) as pool:
            yield pool.acquire(configured(server.url, protocol="2025-11-25"), owner="a"), server


@requirement("CON-7")
async def test_a_lost_session_is_opened_again_once_for_all_waiting_callers() -> None:
    far, texts = Forgetful(), []
    async with connected(far) as (connection, server):
        await connection.list_tools(timeout=PATIENCE)
        far.known = "forgotten"

        async def call() -> None:
            result = await connection.call_tool("echo", {}, timeout=PATIENCE, safe_to_repeat=True)
            texts.append(result.content[0]["text"])

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(call)
        report = connection.report()
    assert texts == ["s-2"] * 8
    assert len(server.of("initialize")) == 2
    assert all("mcp-session-id" not in request.headers for request in server.of("initialize"))
    assert (report.status, report.restarts) == (ServerStatus.READY, 1)


@requirement("CON-7")
async def test_a_call_that_may_have_had_an_effect_is_not_repeated_in_the_new_session() -> None:
    far = Forgetful()
    stuck = anyio.Event()
    errors: list[ServerFailed] = []

    async def handler(request: Request, reply: Reply) -> None:
        if request.rpc == "tools/call" and request.message["params"]["name"] == "slow":
            far.calls.append(("slow", request.headers["mcp-session-id"]))
            stuck.set()
            await reply.client_left()
        else:
            await far(request, reply)

    async with connected(handler) as (connection, _), anyio.create_task_group() as tasks:

        async def slow() -> None:
            with pytest.raises(ServerFailed) as failed:
                await connection.call_tool("slow", {}, timeout=PATIENCE)
            errors.append(failed.value)

        await connection.ready(PATIENCE)
        tasks.start_soon(slow)
        await stuck.wait()
        far.known = "forgotten"
        await connection.list_tools(timeout=PATIENCE)
    assert [(error.kind, error.effect) for error in errors] == [("lost", "unknown")]
    assert [name for name, _ in far.calls].count("slow") == 1


@requirement("CON-7")
async def test_a_server_that_loses_every_session_is_not_called_in_a_circle() -> None:
    far = Forgetful()

    async def handler(request: Request, reply: Reply) -> None:
        if request.rpc == "tools/call":
            far.known = "forgotten"
        await far(request, reply)

    async with connected(handler) as (connection, server):
        with pytest.raises(ServerFailed) as failed:
            await connection.call_tool("echo", {}, timeout=PATIENCE, safe_to_repeat=True)
    assert failed.value.kind == "lost"
    assert len(server.of("tools/call")) == 2
    assert len(server.of("initialize")) == 2


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("supervisor", "asking"):
        monkeypatch.setattr(f"interlock.connections.{module}.HTTP_PAUSES", (0.01, 0.01))


@pytest.mark.usefixtures("short_pauses")
@pytest.mark.parametrize("method", ["initialize", "tools/list"])
async def test_the_first_contact_and_the_listing_of_tools_are_tried_three_times(method: str) -> None:
    far, refused = Forgetful(), []

    async def handler(request: Request, reply: Reply) -> None:
        if request.rpc == method and len(refused) < 2:
            refused.append(method)
            await reply.respond(503, "busy")
        else:
            await far(request, reply)

    async with connected(handler) as (connection, server):
        assert len((await connection.list_tools(timeout=PATIENCE)).entries) == 1
    assert len(server.of(method)) == 3


@pytest.mark.usefixtures("short_pauses")
async def test_a_call_that_met_a_server_error_is_not_tried_again() -> None:
    far = Forgetful()

    async def handler(request: Request, reply: Reply) -> None:
        if request.rpc == "tools/call":
            await reply.respond(500, "boom")
        else:
            await far(request, reply)

    async with connected(handler) as (connection, server):
        with pytest.raises(ServerFailed, match="500"):
            await connection.call_tool("echo", {}, timeout=PATIENCE, safe_to_repeat=True)
        assert connection.report().status is ServerStatus.READY
    assert len(server.of("tools/call")) == 1


@requirement("CON-16")
async def test_a_server_that_wants_credentials_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(request: Request, reply: Reply) -> None:
        await reply.respond(401, "", WWW_Authenticate="Bearer")

    async with connected(handler) as (connection, _):
        with pytest.raises(ServerFailed) as failed:
            await connection.ready(PATIENCE)
        report = connection.report()
    assert failed.value.kind == "authentication"
    assert report.status is ServerStatus.AUTHENTICATION_REQUIRED


def header_tool(name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": name}}}
    return {"name": "deploy", "inputSchema": schema}


async def test_a_stateless_server_gets_the_headers_that_its_tool_asks_for() -> None:
    async def handler(request: Request, reply: Reply) -> None:
        match request.rpc:
            case "server/discover":
                result: dict[str, Any] = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            case "tools/list":
                result = {"tools": [header_tool("Region"), {**header_tool("not a token"), "name": "bad"}]}
            case _:
                result = {"content": [{"type": "text", "text": request.headers.get("mcp-param-region", "none")}]}
        await reply.result(request, {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result})

    async with serving(handler) as server, Pool(recovery=SLOW) as pool:
        connection = pool.acquire(configured(server.url), owner="a")
        listing = await connection.list_tools(timeout=PATIENCE)
        result = await connection.call_tool("deploy", {"region": "north"}, timeout=PATIENCE)
    assert [tool.name for tool in listing.entries] == ["deploy"]
    assert [entry.name for entry in listing.bad] == ["bad"]
    assert result.content[0]["text"] == "north"
