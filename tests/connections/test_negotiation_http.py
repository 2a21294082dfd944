"""Which era is found at a URL: Streamable HTTP of both eras, and HTTP+SSE behind it."""

import json
from dataclasses import replace
from typing import Any

import anyio
import pytest

from interlock.connections.session import open_session
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.server import HttpTransport, ServerConfig
from tests.clock import let_pass
from tests.connections.http_driver import Handler, Reply, Request, ScriptedServer, configured, serving
from tests.connections.servers import PATIENCE
from tests.connections.test_negotiation import DISCOVERED
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

INITIALIZED = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "far", "version": "1"}}


def at(server: ScriptedServer, legacy_sse: bool | None = None, **settings: Any) -> ServerConfig:
    config = configured(server.url, **settings)
    assert isinstance(config.transport, HttpTransport)
    return replace(config, transport=replace(config.transport, legacy_sse=legacy_sse))


def answering(**answers: Any) -> Handler:
    """Answers POSTs by JSON-RPC method: a result, or (status, body); what is not named is refused with 405."""

    async def handle(request: Request, reply: Reply) -> None:
        if request.method != "POST":
            await reply.respond(405)
        elif "id" not in request.message:
            await reply.respond(202)
        else:
            answer = answers.get((request.rpc or "").replace("/", "_"), {})
            if isinstance(answer, tuple):
                status, body = answer
                text = body if isinstance(body, str) else json.dumps(body | {"id": request.message["id"]})
                await reply.respond(status, text, "text/plain" if isinstance(body, str) else "application/json")
            else:
                await reply.result(request, answer)

    return handle


def rpc_methods(server: ScriptedServer) -> list[str | None]:
    return [request.rpc for request in server.requests if request.method == "POST"]


@requirement("CON-4")
async def test_a_stateless_server_is_found_by_one_request_with_its_headers() -> None:
    async with (
        serving(answering(server_discover=DISCOVERED)) as server,
        open_session(at(server), timeout=PATIENCE) as session,
    ):
        assert (session.era, session.protocol_version) == ("stateless", "2026-07-28")
        await session.request("tools/call", {"name": "x", "arguments": {}}, timeout=PATIENCE)
    assert rpc_methods(server) == ["server/discover", "tools/call"]
    call = server.of("tools/call")[0]
    assert call.headers["mcp-protocol-version"] == "2026-07-28"
    assert (call.headers["mcp-method"], call.headers["mcp-name"]) == ("tools/call", "x")
    assert call.message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"


@requirement("CON-4")
@pytest.mark.parametrize(
    "refusal",
    [
        (400, "Bad Request: no session"),
        (404, "Not Found"),
        (500, "boom"),
        (200, "<html>hello</html>"),
        (400, {"jsonrpc": "2.0", "error": {"code": -32000, "message": "not initialized"}}),
        (200, {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}}),
    ],
)
async def test_a_refused_probe_without_a_modern_error_leads_to_initialize(refusal: Any) -> None:
    async with (
        serving(answering(server_discover=refusal, initialize=INITIALIZED)) as server,
        open_session(at(server), timeout=PATIENCE) as session,
    ):
        assert (session.era, session.protocol_version) == ("handshake", "2025-11-25")
        await session.request("ping", {}, timeout=PATIENCE)
    assert rpc_methods(server) == ["server/discover", "initialize", "notifications/initialized", "ping"]
    for request in server.of("notifications/initialized") + server.of("ping"):
        assert request.headers["mcp-protocol-version"] == "2025-11-25"


@requirement("CON-4")
async def test_a_modern_error_in_a_400_is_no_reason_to_fall_back() -> None:
    error = {"code": -32021, "message": "Missing required client capability: sampling"}
    async with serving(answering(server_discover=(400, {"jsonrpc": "2.0", "error": error}))) as server:
        with pytest.raises(ServerFailed, match="sampling") as caught:
            async with open_session(at(server), timeout=PATIENCE):
                pass
    assert caught.value.rpc_code == -32021
    assert rpc_methods(server) == ["server/discover"]


@pytest.mark.parametrize("status", [401, 403])
async def test_missing_credentials_end_the_negotiation_at_once(status: int) -> None:
    async with serving(answering(server_discover=(status, "who are you?"))) as server:
        with pytest.raises(ServerFailed) as caught:
            async with open_session(at(server), timeout=PATIENCE):
                pass
    assert (caught.value.kind, caught.value.effect) == ("authentication", "none")
    assert [request.method for request in server.requests] == ["POST"]


async def test_an_address_where_nobody_listens_is_asked_once() -> None:
    async with serving(answering()) as server:
        pass
    with pytest.raises(ServerFailed) as caught:
        async with open_session(at(server), timeout=PATIENCE):
            pass
    assert (caught.value.kind, caught.value.effect) == ("unavailable", "none")


@requirement("CON-4")
@pytest.mark.parametrize("found", ["stateless", "handshake"])
async def test_a_probe_that_is_answered_late_decides_and_no_request_is_left_open(found: str) -> None:
    """A function that is started on demand may take longer than the probe is waited for."""
    asked, left = anyio.Event(), anyio.Event()

    async def handle(request: Request, reply: Reply) -> None:
        slow = "server/discover" if found == "stateless" else "initialize"
        if request.method != "POST" or "id" not in request.message:
            await reply.respond(202 if request.method == "POST" else 405)
        elif request.rpc == slow:
            await asked.wait()
            await reply.result(request, DISCOVERED if found == "stateless" else INITIALIZED)
        elif request.rpc in ("server/discover", "initialize"):
            asked.set()
            await reply.client_left()
            left.set()

    async with serving(handle) as server:
        if found == "handshake":
            asked.set()
        async with open_session(at(server), timeout=PATIENCE, probe_timeout=0.1) as session:
            assert session.era == found
            with anyio.fail_after(PATIENCE):
                await left.wait()
            assert session.diagnostics() == ()


class OldServer:
    """HTTP+SSE of 2024-11-05: refuses POST at its stream's address, answers on the stream."""

    def __init__(self) -> None:
        self.stream: Reply | None = None

    async def __call__(self, request: Request, reply: Reply) -> None:
        if request.method == "GET":
            self.stream = reply
            await reply.head()
            await reply.raw(b"event: endpoint\ndata: /messages\n\n")
            await reply.client_left()
        elif request.target != "/messages" or self.stream is None:
            await reply.respond(405)
        else:
            await reply.respond(202)
            if "id" in request.message:
                result = INITIALIZED if request.rpc == "initialize" else {}
                await self.stream.event({"jsonrpc": "2.0", "id": request.message["id"], "result": result})


@requirement("CON-4")
@pytest.mark.parametrize("legacy_sse", [None, True])
async def test_a_server_of_http_sse_is_found_behind_the_refused_post_or_named(legacy_sse: bool | None) -> None:
    async with serving(OldServer()) as server:
        async with open_session(at(server, legacy_sse), timeout=PATIENCE) as session:
            assert session.era == "handshake"
            assert await session.request("ping", {}, timeout=PATIENCE) == {}
        await server.all_closed()
    refused = [request for request in server.requests if request.method == "POST" and request.target == "/mcp"]
    assert len(refused) == (2 if legacy_sse is None else 0)


async def test_http_sse_is_not_tried_when_it_is_switched_off() -> None:
    async with serving(OldServer()) as server:
        with pytest.raises(ServerFailed, match="405"):
            async with open_session(at(server, legacy_sse=False), timeout=PATIENCE):
                pass
    assert server.by("GET") == []


async def test_when_nothing_works_the_first_refusal_is_told() -> None:
    async with serving(answering(server_discover=(404, "no such page"), initialize=(404, "no such page"))) as server:
        with pytest.raises(ServerFailed, match="404") as caught:
            async with open_session(at(server), timeout=PATIENCE):
                pass
    assert caught.value.facts["status"] == 404


@requirement("CON-10")
async def test_a_stateless_request_over_http_is_taken_back_by_closing_its_stream() -> None:
    class Slow:
        async def __call__(self, request: Request, reply: Reply) -> None:
            if request.rpc == "tools/call":
                let_pass(PATIENCE)
                await reply.client_left()
            else:
                await reply.result(request, DISCOVERED)

    async with serving(Slow()) as server:
        async with open_session(at(server), timeout=PATIENCE) as session:
            with pytest.raises(ServerFailed) as caught:
                await session.request("tools/call", {"name": "x"}, timeout=PATIENCE)
        await server.all_closed()
    assert caught.value.kind == "deadline"
    assert rpc_methods(server) == ["server/discover", "tools/call"]


@requirement("CON-10")
async def test_a_handshake_request_over_http_is_taken_back_by_a_notification() -> None:
    class Slow:
        async def __call__(self, request: Request, reply: Reply) -> None:
            if request.rpc == "tools/call":
                let_pass(PATIENCE)
                await reply.client_left()
            else:
                await answering(initialize=INITIALIZED)(request, reply)

    async with serving(Slow()) as server, open_session(at(server), timeout=PATIENCE, era="handshake") as session:
        with pytest.raises(ServerFailed):
            await session.request("tools/call", {"name": "x"}, timeout=PATIENCE)
        await session.request("ping", {}, timeout=PATIENCE)
    cancelled = server.of("notifications/cancelled")
    assert [request.message["params"]["requestId"] for request in cancelled] == [2]
