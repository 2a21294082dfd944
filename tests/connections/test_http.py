"""Streamable HTTP: what goes wrong costs one request and is told; nothing is sent twice or to strangers."""

import asyncio
import datetime
import gc
import gzip
import itertools
import json
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from interlock.connections.http import HttpChannel
from interlock.connections.lines import MOST_TOGETHER
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.secret import Secret
from tests.connections.http_driver import (
    BOUND,
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
    """A forgotten response or session of aiohttp warns when it is collected, and warnings are errors."""
    yield
    gc.collect()


def answer(request: Request, result: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request.message["id"], "result": {} if result is None else result}


async def well_behaved(request: Request, reply: Reply) -> None:
    match request.method, request.rpc:
        case "POST", "initialize":
            await reply.result(request, Mcp_Session_Id="s-1")
        case "POST", method if method is not None and "id" in request.message:
            await reply.result(request, request.message["params"])
        case "POST", _:
            await reply.respond(202)
        case "DELETE", _:
            await reply.respond(200)
        case _:
            await reply.respond(405)


def only(rpc: str, handler: Handler) -> Handler:
    """`handler` for one JSON-RPC method, good behaviour for the rest."""

    async def handle(request: Request, reply: Reply) -> None:
        await (handler if request.rpc == rpc else well_behaved)(request, reply)

    return handle


def respond(*args: Any, **kwargs: Any) -> Handler:
    async def handle(_: Request, reply: Reply) -> None:
        await reply.respond(*args, **kwargs)

    return handle


@asynccontextmanager
async def conversation(handler: Handler, **settings: Any) -> AsyncIterator[Conversation]:
    async with serving(handler) as server, talking(HttpChannel(configured(server.url, **settings)), server) as far:
        yield far


async def calls_with(handler: Handler, **settings: Any) -> ServerFailed:
    """How a call fails against `handler` in the handshake era; the channel must have survived it."""
    async with conversation(only("tools/call", handler), **settings) as far:
        await far.handshake()
        error = await far.fails()
        assert (await far.ask("ping", n=1))["result"] == {"n": 1}
        assert far.arrivals.ends == []
        return error


# Requests and what goes with them


async def test_requests_are_in_flight_side_by_side() -> None:
    all_here, arrived = anyio.Event(), 0

    async def together(request: Request, reply: Reply) -> None:
        nonlocal arrived
        arrived += 1
        if arrived == 100:
            all_here.set()
        await all_here.wait()
        await reply.result(request)

    async with conversation(together) as far, anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(far.ask)
    assert len(far.server.requests) == 100


@requirement("CON-4")
async def test_the_session_and_the_version_go_with_everything_after_the_handshake() -> None:
    settings = {"headers": {"Authorization": Secret("Bearer token-1"), "accept": Secret("text/plain")}}
    async with conversation(well_behaved, **settings) as far:
        await far.handshake()
        await far.ask("tools/list")
    first, *others = far.server.requests
    assert "mcp-session-id" not in first.headers
    assert "mcp-protocol-version" not in first.headers
    assert {request.headers["mcp-session-id"] for request in others} == {"s-1"}
    assert {request.method for request in others} == {"POST", "GET", "DELETE"}
    for request in far.server.requests:
        assert request.headers["authorization"] == "Bearer token-1"
        if request.method != "DELETE":
            assert "text/event-stream" in request.headers["accept"]
    (listing,) = far.server.of("tools/list")
    assert listing.headers["accept"] == "application/json, text/event-stream"
    assert listing.headers["content-type"] == "application/json"
    assert listing.headers["mcp-method"] == "tools/list"
    assert {request.headers["mcp-protocol-version"] for request in (listing, *far.server.by("DELETE"))} == {
        "2025-11-25"
    }


@requirement("CON-4")
async def test_a_stateless_server_gets_neither_session_nor_stream_nor_goodbye() -> None:
    async with conversation(well_behaved) as far:
        await far.ask("server/discover")
        far.channel.adopted("stateless", "2026-07-28")
        await far.ask("tools/list")
    assert [request.method for request in far.server.requests] == ["POST", "POST"]
    assert not any("mcp-session-id" in request.headers for request in far.server.requests)


async def test_initialized_has_arrived_before_the_next_request_is_sent() -> None:
    let_go = anyio.Event()

    async def slowly(_: Request, reply: Reply) -> None:
        await let_go.wait()
        await reply.respond(202)

    async with (
        conversation(only("notifications/initialized", slowly)) as far,
        anyio.create_task_group() as group,
    ):
        await far.ask("initialize")
        group.start_soon(far.notify, "notifications/initialized")
        while not far.server.of("notifications/initialized"):
            await anyio.lowlevel.checkpoint()
        assert len(far.server.requests) == 2
        let_go.set()


@pytest.mark.parametrize("reply", [respond(200, "Accepted", "text/plain"), respond(202, '{"id": null}'), respond(204)])
async def test_any_success_will_do_for_a_notification(reply: Handler) -> None:
    async with conversation(only("notifications/initialized", reply)) as far:
        await far.handshake()
        assert (await far.ask("ping"))["result"] == {}


async def test_a_refused_notification_is_counted_and_a_refused_initialized_is_told() -> None:
    async def refuse(request: Request, reply: Reply) -> None:
        told = request.method == "POST" and "id" not in request.message
        await (reply.respond(500, "boom") if told else well_behaved(request, reply))

    async with conversation(refuse) as far:
        await far.ask("initialize")
        with pytest.raises(ServerFailed, match="500"):
            await far.notify("notifications/initialized")
        await far.notify("notifications/cancelled")
        await far.arrivals.until(lambda: far.arrivals.diagnostics)
        assert far.arrivals.diagnostics[0][0] == "not_delivered"


# Answers


async def test_a_batch_is_handed_on_message_by_message() -> None:
    async def batch(request: Request, reply: Reply) -> None:
        await reply.respond(200, json.dumps([{"jsonrpc": "2.0", "method": "note"}, answer(request)]))

    async with conversation(batch) as far:
        assert (await far.ask())["result"] == {}
        assert far.arrivals.messages == [{"jsonrpc": "2.0", "method": "note"}]


@requirement("CON-8")
async def test_a_batch_is_read_up_to_a_bound() -> None:
    async def batch(request: Request, reply: Reply) -> None:
        await reply.respond(200, json.dumps([*([{}] * MOST_TOGETHER), answer(request)]))

    async with conversation(batch) as far:
        with pytest.raises(ServerFailed, match="not the response to it"):
            await far.ask()
        assert len(far.arrivals.messages) == MOST_TOGETHER
        assert [kind for kind, _ in far.arrivals.diagnostics] == ["noise"]


async def test_compressed_and_oddly_typed_json_is_read() -> None:
    async def packed(request: Request, reply: Reply) -> None:
        body = gzip.compress(json.dumps(answer(request, {"text": "漢字"})).encode())
        await reply.respond(200, body, "Application/JSON ; Charset=UTF-8", Content_Encoding="gzip")

    async with conversation(packed) as far:
        assert (await far.ask())["result"] == {"text": "漢字"}


@requirement("CON-8")
async def test_invalid_utf8_costs_a_diagnostic() -> None:
    async def broken(request: Request, reply: Reply) -> None:
        await reply.respond(200, json.dumps(answer(request, "?")).encode().replace(b"?", b"\xff"))

    async with conversation(broken) as far:
        assert (await far.ask())["result"] == "\N{REPLACEMENT CHARACTER}"
        assert far.arrivals.diagnostics[0][0] == "invalid_utf8"


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_an_event_stream_brings_messages_in_order_and_the_answer(size: int) -> None:
    async def stream(request: Request, reply: Reply) -> None:
        await reply.head()
        notes = [b'data: {"jsonrpc":"2.0",\r\ndata: "method":"n","params":{"i":%d}}\r\n\r\n' % i for i in range(3)]
        odd = b": hi\r\n\r\nretry: 10\r\ndata:\n\nevent: ping\ndata: not json\n\n"
        text = odd + b"".join(notes) + b"data: " + json.dumps(answer(request)).encode() + b"\r\n\r\n"
        for place in range(0, len(text), size):
            await reply.raw(text[place : place + size])

    async with conversation(stream) as far:
        assert (await far.ask())["result"] == {}
        assert [message["params"]["i"] for message in far.arrivals.messages] == [0, 1, 2]
        assert far.arrivals.diagnostics == []


async def test_an_answer_counts_at_once_though_its_stream_stays_open() -> None:
    async def stays(request: Request, reply: Reply) -> None:
        await reply.head()
        await reply.event(answer(request))
        await reply.client_left()

    async with conversation(stays) as far:
        await far.ask()
        await far.server.all_closed()  # not for ever either


async def test_what_follows_the_answer_on_its_stream_is_not_lost() -> None:
    async def chatty(request: Request, reply: Reply) -> None:
        await reply.head()
        await reply.raw(f'data: {json.dumps(answer(request))}\n\ndata: {{"method": "same"}}\n\n'.encode())
        await asked.wait()
        await reply.event({"method": "later"})

    asked = anyio.Event()
    async with conversation(chatty) as far:
        await far.ask()
        asked.set()
        await far.arrivals.until(lambda: len(far.arrivals.messages) == 2)
        assert [message["method"] for message in far.arrivals.messages] == ["same", "later"]


async def test_a_connection_serves_again_after_an_event_stream() -> None:
    connections = set()

    async def stream(request: Request, reply: Reply) -> None:
        connections.add(reply.writer)
        event = f"data: {json.dumps(answer(request))}\n\n"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        await reply.raw(head + f"{len(event):x}\r\n{event}\r\n0\r\n\r\n".encode())
        reply.last = False

    async with conversation(stream) as far:
        for _ in range(5):
            await far.ask()
    assert len(connections) == 1


async def test_a_stream_may_lack_its_last_blank_line() -> None:
    async def hasty(request: Request, reply: Reply) -> None:
        await reply.head()
        await reply.raw(b"data: " + json.dumps(answer(request)).encode())

    async with conversation(hasty) as far:
        assert (await far.ask())["result"] == {}


# Resumption


async def test_a_cut_stream_is_resumed_after_its_newest_event_when_the_server_said() -> None:
    asked: list[float] = []

    async def cutting(request: Request, reply: Reply) -> None:
        asked.append(anyio.current_time())
        if request.rpc == "tools/call":
            await reply.head()
            await reply.raw(b"id: 7\nretry: 300\ndata:\n\nid: 8\ndata: {")
        elif request.method == "GET" and "last-event-id" in request.headers:
            await reply.head()
            await reply.event({"jsonrpc": "2.0", "id": 2, "result": {"resumed": True}})
        else:
            await well_behaved(request, reply)

    async with conversation(cutting) as far:
        await far.ask("initialize")
        assert (await far.ask())["result"] == {"resumed": True}
    resumption = far.server.by("GET")[0]
    assert resumption.headers["last-event-id"] == "7"
    assert resumption.headers["mcp-session-id"] == "s-1"
    assert asked[2] - asked[1] >= 0.3
    assert len(far.server.of("tools/call")) == 1


async def test_a_stateless_stream_is_not_resumed() -> None:
    async def cutting(_: Request, reply: Reply) -> None:
        await reply.head()
        await reply.raw(b"id: 7\nretry: 0\ndata:\n\n")

    async with conversation(only("tools/call", cutting)) as far:
        far.channel.adopted("stateless", "2026-07-28")
        error = await far.fails()
        assert (error.kind, error.effect) == ("lost", "unknown")
    assert far.server.by("GET") == []


async def test_resumption_that_the_server_refuses_or_that_brings_nothing_comes_to_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("interlock.connections.http_listening.SHORTEST_PAUSE", 0.01)

    async def cutting(request: Request, reply: Reply) -> None:
        if request.method == "GET" and request.headers.get("last-event-id") == "none":
            await reply.respond(405)
        elif request.rpc == "tools/call" or request.method == "GET":
            await reply.head()
            await reply.raw(b"id: %b\nretry: 0\ndata:\n\n" % ("none" if far.server.of("ping") else "7").encode())
        else:
            await well_behaved(request, reply)

    async with conversation(cutting) as far:
        await far.ask("initialize")
        assert (await far.fails()).kind == "lost"
        tries = len(far.server.by("GET"))
        assert 1 < tries <= 6
        await far.ask("ping")
        assert (await far.fails()).kind == "lost"
        assert len(far.server.by("GET")) == tries + 1


@pytest.mark.parametrize("end", [b"", b": bye\n\n", b"data: nonsense\n\n"])
async def test_a_stream_that_ends_without_the_answer_fails_that_request(end: bytes) -> None:
    async def ending(_: Request, reply: Reply) -> None:
        await reply.head()
        await reply.raw(end)

    error = await calls_with(ending)
    assert (error.kind, error.effect) == ("lost", "unknown")


# Failures of one request


@pytest.mark.parametrize(
    ("status", "kind", "effect"),
    [
        (400, "protocol", "none"),
        (404, "unavailable", "none"),
        (405, "protocol", "none"),
        (408, "protocol", "unknown"),
        (413, "protocol", "none"),
        (500, "unavailable", "unknown"),
        (502, "unavailable", "unknown"),
        (599, "unavailable", "unknown"),
        (300, "protocol", "none"),
    ],
)
async def test_a_status_fails_its_request_and_is_kept(status: int, kind: str, effect: str) -> None:
    async with conversation(only("tools/call", respond(status, "no such page", "text/plain"))) as far:
        far.channel.adopted("stateless", "2026-07-28")
        error = await far.fails()
        assert (error.kind, error.effect, error.facts["status"]) == (kind, effect, status)
        assert str(status) in error.message
        assert (await far.ask("ping"))["result"] == {}
    assert len(far.server.of("tools/call")) == 1


@pytest.mark.parametrize("status", [401, 403])
async def test_missing_credentials_keep_their_challenge_and_show_no_secret(status: int) -> None:
    challenge = 'Bearer resource_metadata="https://far.example/meta", scope="files"'
    refusal = respond(status, '{"error": "bad token token-1"}', WWW_Authenticate=challenge)
    error = await calls_with(refusal, headers={"Authorization": Secret("Bearer token-1")})
    assert (error.kind, error.effect, error.facts["status"]) == ("authentication", "none", status)
    assert error.facts["challenges"] == (challenge,)
    assert "token-1" not in f"{error!r} {error.facts}"


async def test_retry_after_is_told_in_seconds() -> None:
    assert (await calls_with(respond(429, "slow", Retry_After="7"))).facts["retry_after"] == 7
    past = await calls_with(respond(503, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"))
    assert past.facts["retry_after"] == 0
    assert "retry_after" not in (await calls_with(respond(503, Retry_After="soon"))).facts


@requirement("CON-4")
@pytest.mark.parametrize("beside", [{}, {"method": "x"}, {"result": {}}], ids=["alone", "method", "result"])
@pytest.mark.parametrize("request_id", [None, "server-error", "own"])
async def test_a_json_rpc_error_in_a_refusal_is_the_answer(request_id: str | None, beside: dict[str, Any]) -> None:
    async def refuse(request: Request, reply: Reply) -> None:
        number = request.message["id"] if request_id == "own" else request_id
        error = {"code": -32022, "message": "Unsupported", "data": {"supported": ["2026-07-28"]}}
        await reply.respond(400, json.dumps({"jsonrpc": "2.0", "id": number, "error": error} | beside))

    async with conversation(refuse) as far:
        assert (await far.ask("server/discover"))["error"]["data"] == {"supported": ["2026-07-28"]}
        assert far.arrivals.failures == {}


async def test_a_page_instead_of_an_answer_is_named_with_its_type_and_first_words() -> None:
    error = await calls_with(respond(200, "<html>Sign in" + "!" * 999, "text/html"))
    assert (error.kind, error.facts["content_type"]) == ("protocol", "text/html")
    assert "text/html" in error.message
    assert "<html>Sign in" in error.message
    assert len(error.message) < 500


@pytest.mark.parametrize(
    "reply",
    [
        respond(202),
        *(respond(200, body) for body in ("nonsense", "", "[]", "[" * 100_000)),
        respond(200, '{"jsonrpc":"2.0","id":"3","result":{}}'),
        respond(200, '{"jsonrpc":"2.0","id":2,"result":nan}'),
    ],
)
async def test_a_success_without_the_answer_fails_its_request(reply: Handler) -> None:
    error = await calls_with(reply)
    assert (error.kind, error.effect) == ("protocol", "unknown")


async def test_what_orjson_refuses_is_read_as_over_stdio() -> None:
    body = '{"jsonrpc":"2.0","id":ID,"result":{"v":[NaN,1e400,1' + "0" * 400 + ',"\\ud800"]}}'

    async def answer(request: Request, reply: Reply) -> None:
        await reply.respond(200, body.replace("ID", str(request.message["id"])))

    async with conversation(answer) as far:
        assert (await far.ask("tools/call"))["result"] == {"v": [None, None, None, "?"]}


@requirement("CON-8")
@pytest.mark.parametrize("framing", ["declared", "undeclared", "event"])
async def test_what_is_too_large_is_refused_without_reading_it_whole(framing: str) -> None:
    written = 0

    async def huge(_: Request, reply: Reply) -> None:
        nonlocal written
        await reply.head("text/event-stream" if framing == "event" else "application/json")
        if framing == "event":
            await reply.raw(b"data: ")
        for _count in range(400):
            await reply.raw(b"x" * 100_000)
            written += 100_000

    async def declared(_: Request, reply: Reply) -> None:
        await reply.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 40000000\r\n\r\n{")
        await reply.client_left()

    error = await calls_with(declared if framing == "declared" else huge, line_limit=1_000_000)
    assert error.kind == "protocol"
    assert "1000000 bytes" in error.message
    assert written < 40_000_000


@pytest.mark.parametrize("how", ["reset", "truncated", "closed", "gzip", "no http"])
async def test_a_broken_connection_fails_only_the_request_that_was_on_it(how: str) -> None:
    async def breaking(_: Request, reply: Reply) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n"
        match how:
            case "reset":
                await reply.raw(head + b"\r\n{")
                reply.cut()
            case "truncated":
                await reply.raw(head + b"\r\n{")
            case "gzip":
                await reply.respond(200, b"not compressed", Content_Encoding="gzip")
            case "no http":
                await reply.raw(b"SSH-2.0-dropbear\r\n\r\n")
            case _:
                pass

    error = await calls_with(breaking)
    assert (error.kind, error.effect) == ("protocol" if how == "no http" else "lost", "unknown")


async def test_one_broken_request_leaves_the_others_in_flight_alone() -> None:
    broken, started = anyio.Event(), anyio.Event()

    async def patient(request: Request, reply: Reply) -> None:
        if request.message["params"].get("patient"):
            started.set()
            await broken.wait()
            await reply.result(request, "late but whole")

    async with conversation(patient) as far:
        answers: list[Any] = []

        async def wait() -> None:
            answers.append((await far.ask(patient=True))["result"])

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await started.wait()
            assert (await far.fails()).kind == "lost"
            broken.set()
        assert answers == ["late but whole"]


async def test_a_server_that_is_away_costs_each_request_and_the_same_channel_works_when_it_is_back() -> None:
    place = socket.socket()
    place.bind(("127.0.0.1", 0))  # nobody else can take it while it does not listen
    port = place.getsockname()[1]
    async with talking(HttpChannel(configured(f"http://127.0.0.1:{port}/mcp?key=hidden"))) as far:
        error = await far.fails()
        assert (error.kind, error.effect) == ("unavailable", "none")
        assert "connection refused" in error.message
        assert "hidden" not in error.message
        async with serving(well_behaved, place=place):
            assert (await far.ask("ping"))["result"] == {}


# The session


def forgetting(status: int, body: str = "gone") -> Handler:
    return only("tools/call", respond(status, body))


NO_SESSION = '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}'


@requirement("CON-7")
@pytest.mark.parametrize("handler", [forgetting(404), forgetting(404, NO_SESSION), forgetting(400, NO_SESSION)])
async def test_a_forgotten_session_ends_the_channel_once_for_all_callers(handler: Handler) -> None:
    waiting = anyio.Event()

    async def handle(request: Request, reply: Reply) -> None:
        if request.rpc == "slow":
            waiting.set()
            await reply.client_left()
        else:
            await handler(request, reply)

    async with conversation(handle) as far:
        await far.handshake()
        async with anyio.create_task_group() as group:
            slow: list[ServerFailed] = []

            async def ask_slowly() -> None:
                slow.append(await far.fails("slow"))

            group.start_soon(ask_slowly)
            await waiting.wait()
            refused = await far.fails()
        with anyio.fail_after(BOUND):
            await far.over.wait()
        (end,) = far.arrivals.ends
        assert (refused.kind, refused.effect, refused.facts["session_lost"]) == ("lost", "none", True)
        assert (end.kind, end.effect, end.facts["session_lost"]) == ("lost", "unknown", True)
        assert slow == [end]
        with pytest.raises(ServerFailed, match="no longer knows the session"):
            await far.ask()
    assert far.server.by("DELETE") == []


@requirement("CON-7")
async def test_404_means_a_wrong_address_without_a_session_and_an_unknown_method_with_its_error() -> None:
    async def unknown(request: Request, reply: Reply) -> None:
        error = {"code": -32601, "message": "Method not found"}
        await reply.respond(404, json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "error": error}))

    async with conversation(only("tools/call", unknown)) as far:
        await far.handshake()
        assert (await far.ask())["error"]["code"] == -32601
        assert far.arrivals.ends == []


async def test_another_session_id_later_on_changes_nothing() -> None:
    async def changing(request: Request, reply: Reply) -> None:
        await reply.result(request, Mcp_Session_Id="s-2")

    async with conversation(only("tools/call", changing)) as far:
        await far.handshake()
        await far.ask()
        await far.ask("ping")
    assert far.server.of("ping")[0].headers["mcp-session-id"] == "s-1"


# The server's own stream


async def test_the_servers_own_stream_brings_messages_and_is_reopened_after_a_cut() -> None:
    async def streaming(request: Request, reply: Reply) -> None:
        if request.method != "GET":
            return await well_behaved(request, reply)
        await reply.head()
        await reply.raw(b"retry: 10\nid: %d\n" % len(far.server.by("GET")))
        await reply.event({"jsonrpc": "2.0", "method": "note", "params": {"n": len(far.server.by("GET"))}})
        if len(far.server.by("GET")) == 2:
            await reply.client_left()
        return None

    async with conversation(streaming) as far:
        await far.handshake()
        await far.arrivals.until(lambda: len(far.arrivals.messages) == 2)
        assert [message["params"]["n"] for message in far.arrivals.messages] == [1, 2]
    first, second = far.server.by("GET")
    assert "last-event-id" not in first.headers
    assert second.headers["last-event-id"] == "1"
    assert second.headers["mcp-session-id"] == "s-1"


@pytest.mark.parametrize("refusal", [respond(405), respond(400), respond(404), respond(200, "<html>", "text/html")])
async def test_a_server_without_its_own_stream_is_asked_once(refusal: Handler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.connections.http_listening.DEFAULT_RETRY", 0.0)
    seen = anyio.Event()

    async def refuse(request: Request, reply: Reply) -> None:
        if request.method != "GET":
            return await well_behaved(request, reply)
        await refusal(request, reply)
        seen.set()
        return None

    async with conversation(refuse) as far:
        await far.handshake()
        await seen.wait()
        for _ in range(20):
            await far.ask("ping")
        assert far.arrivals.ends == []
    assert len(far.server.by("GET")) == 1


@requirement("CON-7")
async def test_a_stream_that_was_open_and_now_is_404_says_that_the_session_is_lost() -> None:
    async def forgetful(request: Request, reply: Reply) -> None:
        if request.method != "GET":
            await well_behaved(request, reply)
        elif len(far.server.by("GET")) > 1:
            await reply.respond(404)
        else:
            await reply.head()
            await reply.raw(b"retry: 1\n\n")

    async with conversation(forgetful) as far:
        await far.handshake()
        await far.arrivals.until(lambda: far.arrivals.ends)
        assert far.arrivals.ends[0].facts["session_lost"] is True


# Redirects, credentials, addresses


async def test_a_redirect_on_the_same_origin_keeps_method_body_and_headers() -> None:
    async def moved(request: Request, reply: Reply) -> None:
        if request.target == "/mcp":
            await reply.respond(307, Location="/mcp/")
        else:
            await well_behaved(request, reply)

    async with conversation(moved, headers={"X-Key": Secret("abcd")}) as far:
        assert (await far.ask("ping", n=3))["result"] == {"n": 3}
        await far.ask("ping")
        assert [kind for kind, _ in far.arrivals.diagnostics] == ["redirected"]
    first, second, *_ = far.server.requests
    assert (first.body, first.headers) == (second.body, second.headers)


async def test_a_redirect_to_another_origin_is_refused_and_no_credential_goes_there() -> None:
    async with serving(well_behaved) as stranger:

        async def luring(_: Request, reply: Reply) -> None:
            await reply.respond(308, Location=stranger.url + "?token=abc")

        error = await calls_with(luring, headers={"X-Key": Secret("abcd")})
        assert (error.kind, error.effect, error.facts["status"]) == ("protocol", "none", 308)
        assert stranger.url in error.message
        assert "abc" not in error.message
    assert stranger.requests == []


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_drop_the_message_is_refused(status: int) -> None:
    error = await calls_with(respond(status, Location="/other"))
    assert (error.kind, error.effect, error.facts["status"]) == ("protocol", "none", status)


@pytest.mark.parametrize("location", ["/mcp", "", "http://[", "javascript:alert(1)"])
async def test_a_redirect_that_leads_nowhere_ends_soon(location: str) -> None:
    async with conversation(respond(307, Location=location)) as far:
        assert (await far.fails()).facts["status"] == 307
    assert len(far.server.requests) <= 5


async def test_user_and_password_of_the_url_become_a_header_and_are_not_shown() -> None:
    async with serving(respond(500)) as server:
        url = server.url.replace("://", "://ada:lovelace@") + "?key=hidden"
        async with talking(HttpChannel(configured(url))) as far:
            error = await far.fails()
    assert server.requests[0].headers["authorization"] == "Basic YWRhOmxvdmVsYWNl"
    assert server.requests[0].target == "/mcp?key=hidden"
    for secret in ("lovelace", "hidden", "YWRh"):
        assert secret not in repr(error)


@pytest.mark.parametrize("url", ["", "far.example", "ftp://far.example/x", "http://", "http://[", "/mcp"])
def test_an_address_that_is_none_is_refused_before_anything_happens(url: str) -> None:
    with pytest.raises(ServerFailed, match="not an http or https address"):
        HttpChannel(configured(url))


def test_a_header_with_a_line_break_is_refused_without_showing_it() -> None:
    value = Secret("abc\r\nX-Evil: 1", "environment variable TOKEN")
    with pytest.raises(ServerFailed, match="environment variable TOKEN") as caught:
        HttpChannel(configured("http://127.0.0.1/", headers={"X-Key": value}))
    assert "abc" not in caught.value.message


async def test_the_proxy_of_the_environment_is_used_but_never_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with serving(well_behaved) as proxy, serving(well_behaved) as local:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/mcp"))
        async with talking(HttpChannel(configured("http://far.invalid/mcp"))) as far:
            assert (await far.ask("ping"))["result"] == {}
        async with talking(HttpChannel(configured(local.url))) as near:
            assert (await near.ask("ping"))["result"] == {}
    assert [request.target for request in proxy.requests] == ["http://far.invalid/mcp"]
    assert len(local.requests) == 1


def self_signed(folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    start = datetime.datetime(2020, 1, 1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, start, start.replace(year=2999))
    (folder / "cert.pem").write_bytes(
        builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem")
    return context


async def test_a_certificate_that_cannot_be_verified_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    secure = self_signed(tmp_path)
    async with serving(well_behaved, ssl=secure) as server, talking(HttpChannel(configured(server.url))) as far:
        error = await far.fails()
    assert (error.kind, error.effect) == ("unavailable", "none")
    assert "certificate is not valid (self-signed certificate)" in error.message
    assert server.requests == []


async def test_a_server_without_tls_behind_a_secure_address_is_said_to_be_one() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    async with (
        server,
        talking(HttpChannel(configured(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))) as far,
    ):
        error = await far.fails()
    assert (error.kind, error.effect) == ("unavailable", "none")
    assert "no TLS connection came about (wrong version number)" in error.message
    assert "without TLS its address begins with http://" in error.message


@pytest.mark.parametrize(
    ("status", "way_out"),
    [
        (401, "set bearer_token_env_var or http_headers"),
        (403, "give it other credentials with bearer_token_env_var or http_headers, or use the address that it allows"),
        (421, "use the address that it allows"),
        (405, "many end in /mcp"),
        (429, "ask again later"),
        (500, "look into its log"),
    ],
)
async def test_a_refusal_ends_with_a_way_out_whatever_the_server_said(status: int, way_out: str) -> None:
    error = await calls_with(respond(status, "no; go away", "text/plain"))
    assert way_out in error.message.rpartition("; ")[2]


# Giving up and closing


@requirement("CON-10")
@pytest.mark.parametrize("era", ["stateless", "handshake"])
async def test_an_abandoned_request_loses_its_stream_which_is_the_cancellation_in_one_era_only(era: Any) -> None:
    begun, left = anyio.Event(), anyio.Event()

    async def silent(_: Request, reply: Reply) -> None:
        begun.set()
        await reply.client_left()
        left.set()

    async with conversation(only("tools/call", silent)) as far:
        far.channel.adopted(era, "any")
        await far.channel.send({"jsonrpc": "2.0", "id": "a", "method": "tools/call"})
        with anyio.fail_after(BOUND):
            await begun.wait()
            assert far.channel.abandon("a") is (era == "stateless")
            await left.wait()
        assert (await far.ask("ping"))["result"] == {}
        assert far.arrivals.failures == {}


async def test_comments_for_ever_do_not_answer_and_can_be_abandoned() -> None:
    left, waiting = anyio.Event(), anyio.CancelScope()

    async def chatter(_: Request, reply: Reply) -> None:
        await reply.head()
        try:
            for said in itertools.count():
                await reply.raw(b": ping\n\n")
                await anyio.sleep(0.01)
                if said == 10:
                    waiting.cancel()
        except ConnectionError:
            left.set()

    async with conversation(only("tools/call", chatter)) as far:
        with waiting:
            await far.ask()
        assert waiting.cancelled_caught
        far.channel.abandon(1)
        with anyio.fail_after(BOUND):
            await left.wait()


@requirement("CON-5")
async def test_closing_is_bounded_and_leaves_no_connection_whatever_the_server_does() -> None:
    begun = anyio.Event()

    async def never(request: Request, reply: Reply) -> None:
        if request.rpc == "initialize" or request.rpc == "notifications/initialized":
            return await well_behaved(request, reply)
        if request.rpc == "tools/call":
            begun.set()
        await reply.client_left()
        return None

    async with serving(never) as server:
        async with talking(HttpChannel(configured(server.url))) as far:
            await far.handshake()
            await far.channel.send({"jsonrpc": "2.0", "id": "a", "method": "tools/call"})
            await begun.wait()
            started = anyio.current_time()
        assert anyio.current_time() - started < BOUND
        assert len(server.by("DELETE")) == 1
        await server.all_closed()


async def test_a_closed_channel_refuses_to_send() -> None:
    async with serving(well_behaved) as server:
        channel = HttpChannel(configured(server.url))
        with pytest.raises(ServerFailed, match="closed"):
            await channel.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        async with talking(channel):
            assert repr(channel) == "<HttpChannel 'far': open, 0 requests in flight>"
        with pytest.raises(ServerFailed, match="closed"):
            await channel.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert server.requests == []
