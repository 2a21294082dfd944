"""What the HTTP tests are made of: a server that a test scripts to the byte, and the end where messages arrive.

Owns: real sockets on the loopback interface, for the length of one `with`.
Never: behaves by itself; each request is answered by the test's own function.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc

from interlock.connections.channel import Channel
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.server import HttpTransport, ServerConfig

BOUND = 60.0


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request that the server got."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def message(self) -> Any:
        return json.loads(self.body)

    @property
    def rpc(self) -> str | None:
        """The JSON-RPC method, None for what is no message."""
        return str(self.message.get("method")) if self.body else None


@dataclass(kw_only=True)
class Reply:
    """The way back to the client of one request."""

    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader
    last: bool = True
    """Whether the connection ends with it."""

    async def respond(
        self, status: int = 200, body: bytes | str = b"", content_type: str = "application/json", **headers: str
    ) -> None:
        data = body.encode() if isinstance(body, str) else body
        lines = [f"HTTP/1.1 {status} Said", f"Content-Type: {content_type}", f"Content-Length: {len(data)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.last = False
        await self.raw(("\r\n".join(lines) + "\r\n\r\n").encode() + data)

    async def result(self, request: Request, result: Any = None, **headers: str) -> None:
        answer = {"jsonrpc": "2.0", "id": request.message["id"], "result": {} if result is None else result}
        await self.respond(200, json.dumps(answer), **headers)

    async def head(self, content_type: str = "text/event-stream", **headers: str) -> None:
        """Begin a body that ends with the connection."""
        lines = ["HTTP/1.1 200 OK", f"Content-Type: {content_type}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw(("\r\n".join(lines) + "\r\n\r\n").encode())

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def event(self, message: Any) -> None:
        await self.raw(f"data: {json.dumps(message)}\n\n".encode())

    def cut(self) -> None:
        """A TCP reset, as of a process that was killed."""
        self.writer.transport.abort()

    async def client_left(self) -> None:
        """Wait until the client closed this connection."""
        with suppress(ConnectionError):
            while await self.reader.read(1000):
                pass


Handler = Callable[[Request, Reply], Awaitable[None]]


@dataclass(kw_only=True)
class ScriptedServer:
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    connections: set[asyncio.Task[None]] = field(default_factory=set)
    refused: list[BaseException] = field(default_factory=list)

    def of(self, rpc: str) -> list[Request]:
        return [request for request in self.requests if request.rpc == rpc]

    def by(self, method: str) -> list[Request]:
        return [request for request in self.requests if request.method == method]

    async def all_closed(self) -> None:
        """Wait until no client holds a connection any more."""
        with anyio.fail_after(BOUND):
            while self.connections:
                await asyncio.wait(self.connections)


@asynccontextmanager
async def serving(
    handler: Handler, *, place: socket.socket | None = None, ssl: Any = None
) -> AsyncIterator[ScriptedServer]:
    """Serve on 127.0.0.1; `handler` answers each request. Without an answer the connection is closed.

    `place`: a socket that is bound already; None: one on a free port.
    """
    script = ScriptedServer()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        script.connections.add(task)
        try:
            while (request := await _read(reader)) is not None:
                script.requests.append(request)
                reply = Reply(writer=writer, reader=reader)
                await handler(request, reply)
                if reply.last:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            return  # the end of the test
        except BaseException as error:
            script.refused.append(error)
        finally:
            writer.close()
            script.connections.discard(task)

    if place is None:
        place = socket.create_server(("127.0.0.1", 0))
    server = await asyncio.start_server(connection, sock=place, ssl=ssl)
    scheme = "https" if ssl else "http"
    script.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    try:
        yield script
    finally:
        server.close()
        tasks = list(script.connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert script.refused == [], script.refused


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    method, target, _ = first.split(" ")
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method=method, target=target, headers=headers, body=body)


@dataclass(kw_only=True)
class Arrivals:
    """A Receiver that keeps everything, and hands answers to those who wait for them."""

    messages: list[Any] = field(default_factory=list)
    """All but the answers that somebody waited for."""
    failures: dict[Any, ServerFailed] = field(default_factory=dict)
    ends: list[ServerFailed] = field(default_factory=list)
    diagnostics: list[tuple[str, str]] = field(default_factory=list)
    _waiting: dict[Any, asyncio.Future[Any]] = field(default_factory=dict)
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def message(self, message: Any, within: int | str | None = None) -> None:
        waiter = None
        if isinstance(message, dict) and "method" not in message:
            waiter = self._waiting.pop(message.get("id"), None)
        if waiter is None:
            self.messages.append(message)
        else:
            waiter.set_result(message)
        self._wake()

    def failed(self, request_id: int | str, error: ServerFailed) -> None:
        self.failures[request_id] = error
        if (waiter := self._waiting.pop(request_id, None)) is not None:
            waiter.set_exception(error)
        self._wake()

    def ended(self, error: ServerFailed) -> None:
        self.ends.append(error)
        for waiter in self._waiting.values():
            waiter.set_exception(error)
        self._waiting.clear()
        self._wake()

    def diagnostic(self, kind: str, text: str) -> None:
        self.diagnostics.append((kind, text))
        self._wake()

    def waiter(self, request_id: int | str) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        return future

    async def until(self, condition: Callable[[], object]) -> None:
        with anyio.fail_after(BOUND):
            while not condition():
                await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


@dataclass(kw_only=True)
class Conversation:
    """An open channel and what came of it."""

    channel: Channel
    server: ScriptedServer
    arrivals: Arrivals = field(default_factory=Arrivals)
    over: anyio.Event = field(default_factory=anyio.Event)
    """Set when the channel's run() has returned."""
    _count: int = 0

    async def ask(self, method: str = "tools/call", **params: Any) -> Any:
        """The whole answer, or the ServerFailed."""
        self._count += 1
        waiter = self.arrivals.waiter(self._count)
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        await self.channel.send(message, headers={"Mcp-Method": method})
        with anyio.fail_after(BOUND):
            return await waiter

    async def notify(self, method: str) -> None:
        await self.channel.send({"jsonrpc": "2.0", "method": method})

    async def handshake(self, version: str = "2025-11-25") -> None:
        await self.ask("initialize", protocolVersion=version)
        await self.notify("notifications/initialized")
        self.channel.adopted("handshake", version)

    async def fails(self, method: str = "tools/call") -> ServerFailed:
        try:
            answer = await self.ask(method)
        except ServerFailed as error:
            return error
        raise AssertionError(f"no failure, but {answer}")


def configured(url: str, **settings: Any) -> ServerConfig:
    transport = {name: settings.pop(name) for name in ("headers",) if name in settings}
    return ServerConfig(name="far", transport=HttpTransport(url=url, **transport), **settings)


@asynccontextmanager
async def talking(channel: Channel, server: ScriptedServer | None = None) -> AsyncIterator[Conversation]:
    """Run the channel; leaving cancels it, as its owner would."""
    conversation = Conversation(channel=channel, server=server or ScriptedServer())

    async def run(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        try:
            await channel.run(conversation.arrivals, task_status=task_status)
        finally:
            conversation.over.set()

    async with anyio.create_task_group() as group:
        with anyio.fail_after(BOUND):
            await group.start(run)
        yield conversation
        group.cancel_scope.cancel()
