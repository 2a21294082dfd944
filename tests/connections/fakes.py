"""Sessions that a test holds in its hand: opened at a gate, answered by a function, ended on command.

The real `open_session` is used in the tests with subprocesses; these stand below the same seam.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio

from interlock.connections.bell import Once
from interlock.connections.session import OnNotification, Session, SessionHandlers
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.server import Diagnostic, Era, ServerConfig, ServerInfo, StdioTransport

PATIENCE = 60.0
Answer = Callable[["FakeSession", str, JsonObject], JsonObject | ServerFailed]
CAPABILITIES: JsonObject = {"tools": {}, "resources": {}}
TOOL = {"name": "echo", "inputSchema": {"type": "object"}}


def config(name: str = "zoo", **settings: Any) -> ServerConfig:
    return ServerConfig(name=name, transport=StdioTransport(command="fake", args=(name,)), **settings)


def lost(**facts: Any) -> ServerFailed:
    return ServerFailed("the connection broke", server="zoo", kind="lost", effect="unknown", **facts)


def answers(session: "FakeSession", method: str, params: JsonObject) -> JsonObject | ServerFailed:
    match method:
        case "tools/list":
            return {"tools": [TOOL]}
        case "resources/list":
            return {"resources": [{"uri": "zoo://a", "name": "a"}]}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"session {session.number}"}]}
    return ServerFailed("method not found", server="zoo", kind="rejected", rpc_code=-32601)


class FakeSession(Session):
    def __init__(self, server: "FakeServer", number: int, handlers: SessionHandlers) -> None:
        self.server, self.number, self.handlers = server, number, handlers
        self.era = server.era
        self.protocol_version = "2026-07-28" if server.era == "stateless" else "2025-11-25"
        self.info = ServerInfo(name="zoo", version="1")
        self.capabilities = CAPABILITIES
        self.instructions = "be kind"
        self.ended = Once()
        self._failure: ServerFailed | None = None
        self.noted: list[tuple[str, str]] = []
        self.asked: list[tuple[str, JsonObject]] = []

    @property
    def failure(self) -> ServerFailed | None:
        return self._failure

    async def request(self, method: str, params: JsonObject | None = None, **options: Any) -> JsonObject:
        self.asked.append((method, params or {}))
        with anyio.move_on_after(options.get("timeout")) as waiting:
            await self.server.arrived(method)
        if waiting.cancelled_caught:
            raise ServerFailed("no answer in time", server="zoo", kind="deadline", effect="unknown")
        if self.ended.is_set():
            raise self._failure or lost()
        result = self.server.answer(self, method, params or {})
        if isinstance(result, ServerFailed):
            raise result
        return result

    def diagnostic(self, kind: str, text: str) -> None:
        self.noted.append((kind, text))

    @contextmanager
    def paused(self) -> Iterator[None]:
        yield

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return (Diagnostic(kind="noise", count=1, last=f"session {self.number}"),)

    @property
    def standard_error(self) -> str:
        return f"stderr of session {self.number}\n"

    @property
    def process_id(self) -> int | None:
        return 1000 + self.number

    def die(self, failure: ServerFailed | None = None) -> None:
        self._failure = failure or lost()
        self.ended.set()

    async def notify_us(self, method: str, **params: Any) -> None:
        heard: OnNotification | None = self.handlers.on_notification
        assert heard is not None
        waiting = heard(method, params)
        if waiting is not None:
            await waiting


class FakeServer:
    """An opener. `refusals` are raised by the next openings; `held` methods wait until they are let go."""

    def __init__(self, *, era: Era = "handshake", answer: Answer = answers) -> None:
        self.era: Era = era
        self.answer = answer
        self.refusals: list[ServerFailed] = []
        self.opening: anyio.Event | None = None
        self.sessions: list[FakeSession] = []
        self.openings = 0
        self.closed = 0
        self.timeouts: list[float] = []
        self.eras_tried: list[Era | None] = []
        self.held: dict[str, anyio.Event] = {}
        self.arrivals: dict[str, anyio.Event] = {}

    def hold_openings(self) -> anyio.Event:
        self.opening = anyio.Event()
        return self.opening

    def hold(self, method: str) -> anyio.Event:
        self.held[method] = anyio.Event()
        self.arrivals[method] = anyio.Event()
        return self.held[method]

    async def arrived(self, method: str) -> None:
        if method in self.held:
            self.arrivals[method].set()
            await self.held[method].wait()
        else:
            await anyio.lowlevel.checkpoint()

    @property
    def alive(self) -> int:
        return len(self.sessions) - self.closed

    @asynccontextmanager
    async def __call__(
        self, config: ServerConfig, *, timeout: float, era: Era | None, handlers: SessionHandlers
    ) -> AsyncIterator[Session]:
        self.openings += 1
        self.timeouts.append(timeout)
        self.eras_tried.append(era)
        await anyio.lowlevel.checkpoint()
        if self.opening is not None:
            with anyio.move_on_after(timeout):
                await self.opening.wait()
            if not self.opening.is_set():
                raise ServerFailed("it did not start in time", server=config.name, kind="deadline")
        if self.refusals:
            raise self.refusals.pop(0)
        session = FakeSession(self, len(self.sessions) + 1, handlers)
        self.sessions.append(session)
        try:
            async with anyio.create_task_group():  # real sessions have one: scopes must nest
                yield session
        finally:
            session.die()
            self.closed += 1
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()


class Zoo:
    """An opener for many servers, by name."""

    def __init__(self, **servers: FakeServer) -> None:
        self.servers = servers

    def __call__(self, config: ServerConfig, **options: Any) -> Any:
        return self.servers.setdefault(config.name, FakeServer())(config, **options)

    def __getitem__(self, name: str) -> FakeServer:
        return self.servers.setdefault(name, FakeServer())


async def until(condition: Callable[[], bool]) -> None:
    """Let the event loop turn until `condition` holds; fails loudly after a bounded time."""
    with anyio.fail_after(PATIENCE):
        while not condition():
            await anyio.lowlevel.checkpoint()
