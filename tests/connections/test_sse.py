"""HTTP+SSE of 2024-11-05: one stream brings everything, POSTs go to the address that it names."""

import gc
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from interlock.connections.sse import SseChannel
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.secret import Secret
from tests.connections.http_driver import (
    BOUND,
    Arrivals,
    Conversation,
    Handler,
    Reply,
    Request,
    configured,
    serving,
    talking,
)
from tests.manifest import requirement

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def nothing_is_left_unclosed() -> Iterator[None]:
    yield
    gc.collect()


class OldServer:
    """Answers on its stream, which ends when `cut` is set."""

    def __init__(self, endpoint: str = "/messages?session=1") -> None:
        self.endpoint = endpoint
        self.stream: Reply | None = None
        self.cut = anyio.Event()

    async def __call__(self, request: Request, reply: Reply) -> None:
        if request.method == "GET":
            self.stream = reply
            await reply.head()
            await reply.raw(f"event: endpoint\r\ndata: {self.endpoint}\r\n\r\n".encode())
            async with anyio.create_task_group() as group:
                group.start_soon(self.until_cut, group.cancel_scope)
                await reply.client_left()
                group.cancel_scope.cancel()
            return
        await self.take(request, reply)

    async def until_cut(self, stream: anyio.CancelScope) -> None:
        await self.cut.wait()
        stream.cancel()

    async def take(self, request: Request, reply: Reply) -> None:
        await reply.respond(202, "Accepted", "text/plain")
        if "id" in request.message:
            await self.say({"jsonrpc": "2.0", "id": request.message["id"], "result": request.message["params"]})

    async def say(self, message: Any) -> None:
        assert self.stream is not None
        await self.stream.raw(b"event: message\n")
        await self.stream.event(message)


@asynccontextmanager
async def conversation(handler: Handler, **settings: Any) -> AsyncIterator[Conversation]:
    async with serving(handler) as server:
        url = server.url.replace("/mcp", "/sse")
        async with talking(SseChannel(configured(url, **settings)), server) as far:
            yield far


async def refusal(handler: Handler) -> ServerFailed:
    """How opening fails, which must leave nothing said to the receiver."""
    async with serving(handler) as server:
        arrivals = Arrivals()
        with pytest.raises(ServerFailed) as caught, anyio.fail_after(BOUND):
            await SseChannel(configured(server.url)).run(arrivals)
        assert arrivals == Arrivals(_changed=arrivals._changed)
        await server.all_closed()
        return caught.value


@requirement("CON-4")
async def test_requests_go_to_the_named_endpoint_and_answers_come_on_the_stream() -> None:
    settings = {"headers": {"Authorization": Secret("Bearer token-1")}}
    async with conversation(OldServer(), **settings) as far:
        await far.handshake("2024-11-05")
        assert (await far.ask("tools/list", n=1))["result"] == {"n": 1}
    get, *posts = far.server.requests
    assert (get.method, get.target, get.headers["accept"]) == ("GET", "/sse", "text/event-stream")
    assert {post.target for post in posts} == {"/messages?session=1"}
    assert {request.headers["authorization"] for request in far.server.requests} == {"Bearer token-1"}
    assert posts[-1].headers["mcp-protocol-version"] == "2024-11-05"


async def test_messages_of_the_server_are_handed_on() -> None:
    server = OldServer()
    async with conversation(server) as far:
        await server.say({"jsonrpc": "2.0", "id": "q", "method": "ping"})
        await far.arrivals.until(lambda: far.arrivals.messages)
        assert far.arrivals.messages == [{"jsonrpc": "2.0", "id": "q", "method": "ping"}]


async def test_an_absolute_endpoint_on_the_same_origin_is_fine() -> None:
    server = OldServer()

    async def handler(request: Request, reply: Reply) -> None:
        server.endpoint = f"http://{request.headers['host']}/elsewhere"
        await server(request, reply)

    async with conversation(handler) as far:
        await far.ask()
    assert far.server.requests[-1].target == "/elsewhere"


@pytest.mark.parametrize(
    "endpoint", ["http://127.0.0.1:1/messages", "//far.example/x", "https://127.0.0.1/x", "http://["]
)
async def test_an_endpoint_on_another_origin_is_refused(endpoint: str) -> None:
    error = await refusal(OldServer(endpoint))
    assert (error.kind, error.effect) == ("protocol", "none")
    assert "endpoint" in error.message


async def test_a_stream_that_ends_before_it_names_an_endpoint_is_no_server_of_this_kind() -> None:
    async def ending(_: Request, reply: Reply) -> None:
        await reply.head()
        await reply.raw(b": bye\n\n")

    assert (await refusal(ending)).kind == "protocol"


@pytest.mark.parametrize(("status", "kind"), [(404, "unavailable"), (405, "protocol"), (401, "authentication")])
async def test_a_refused_stream_fails_the_opening_with_its_status(status: int, kind: str) -> None:
    async def refuse(_: Request, reply: Reply) -> None:
        await reply.respond(status, "no")

    error = await refusal(refuse)
    assert (error.kind, error.effect, error.facts["status"]) == (kind, "none", status)


async def test_a_page_instead_of_the_stream_is_named() -> None:
    async def page(_: Request, reply: Reply) -> None:
        await reply.respond(200, "<html>", "text/html")

    error = await refusal(page)
    assert (error.kind, error.effect, error.facts["content_type"]) == ("protocol", "none", "text/html")


async def test_a_stream_that_never_names_an_endpoint_can_be_given_up() -> None:
    given_up = anyio.CancelScope()

    async def waiting(_: Request, reply: Reply) -> None:
        await reply.head()
        given_up.cancel()
        await reply.client_left()

    async with serving(waiting) as server:
        with given_up:
            await SseChannel(configured(server.url)).run(Arrivals())
        await server.all_closed()


async def test_a_refused_post_fails_only_its_request() -> None:
    class Refusing(OldServer):
        async def take(self, request: Request, reply: Reply) -> None:
            if request.rpc == "tools/call":
                await reply.respond(500, "boom")
            else:
                await super().take(request, reply)

    async with conversation(Refusing()) as far:
        error = await far.fails()
        assert (error.kind, error.effect, error.facts["status"]) == ("unavailable", "unknown", 500)
        assert (await far.ask("ping"))["result"] == {}


async def test_the_end_of_the_stream_ends_the_channel_and_everything_in_flight() -> None:
    class Silent(OldServer):
        async def take(self, request: Request, reply: Reply) -> None:
            await reply.respond(202)
            self.cut.set()

    async with conversation(Silent()) as far:
        error = await far.fails()
        assert (error.kind, error.effect) == ("lost", "unknown")
        with anyio.fail_after(BOUND):
            await far.over.wait()
        assert far.arrivals.ends == [error]
        with pytest.raises(ServerFailed, match="ended its event stream"):
            await far.ask()


async def test_giving_up_a_request_is_no_cancellation() -> None:
    begun, left = anyio.Event(), anyio.Event()

    class Slow(OldServer):
        async def take(self, request: Request, reply: Reply) -> None:
            begun.set()
            await reply.client_left()
            left.set()

    async with conversation(Slow()) as far:
        await far.channel.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call"})
        await begun.wait()
        assert far.channel.abandon(1) is False
        with anyio.fail_after(BOUND):
            await left.wait()
        assert far.arrivals.failures == {}


async def test_noise_on_the_stream_is_counted() -> None:
    server = OldServer()
    async with conversation(server) as far:
        assert server.stream is not None
        await server.stream.raw(b"data: {broken\n\nevent: other\ndata: x\n\ndata:\n\n")
        await server.stream.raw(b"event: endpoint\ndata: http://far.example/\n\n")
        assert (await far.ask("ping"))["result"] == {}
        assert far.arrivals.diagnostics == [("noise", "{broken")]


@requirement("CON-5")
async def test_closing_leaves_no_connection() -> None:
    class Silent(OldServer):
        async def take(self, request: Request, reply: Reply) -> None:
            begun.set()
            await reply.client_left()

    begun = anyio.Event()
    async with serving(Silent()) as server:
        async with talking(SseChannel(configured(server.url))) as far:
            await far.channel.send(json.loads('{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}'))
            await begun.wait()
            started = anyio.current_time()
        assert anyio.current_time() - started < BOUND
        assert repr(far.channel) == "<SseChannel 'far': closed>"


async def test_a_closed_channel_refuses_to_send() -> None:
    with pytest.raises(ServerFailed, match="closed"):
        await SseChannel(configured("http://127.0.0.1:1/sse")).send({"jsonrpc": "2.0", "method": "x"})
