"""Serving one connection, from its first frame to its end.

Owns: the tasks of a connection: reading, writing, and one for each request that waits.
Never: lets a request go without its one answer, or a connection touch another (RPC-6).
"""

import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

import anyio
import anyio.abc
from pydantic import ValidationError

from interlock.surfaces.rpc.application import Application
from interlock.surfaces.rpc.client import Ask, Client
from interlock.surfaces.rpc.errors import Refusal, malformed, wire_error
from interlock.surfaces.rpc.method import After, Context, Method, Params
from interlock.surfaces.rpc.outgoing import BACKLOG_LIMIT, Outgoing
from interlock.surfaces.rpc.outgoing import FRAME_LIMIT as BACKLOG_FRAMES
from interlock.surfaces.rpc.peer import (
    BATCH_LIMIT,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    OVERLOADED,
    REQUEST_LIMIT,
    Answered,
    Notification,
    Peer,
    Reply,
    Request,
)
from interlock.surfaces.rpc.transport import FRAME_LIMIT, TooLong, Transport

logger = logging.getLogger(__name__)

LAST_WORDS_PATIENCE: Final = 2.0
"""Seconds that a slow reader has to take the sentence about its end."""
INITIALIZE: Final = "initialize"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one server bears. `requests` counts those of all connections, `own_requests` those of one."""

    requests: int = 4096
    own_requests: int = REQUEST_LIMIT
    batch: int = BATCH_LIMIT
    backlog_bytes: int = BACKLOG_LIMIT
    backlog_frames: int = BACKLOG_FRAMES


class AppServer:
    """Serves connections over one table of methods."""

    def __init__(
        self, application: Application, methods: Mapping[str, Method], *, limits: Limits | None = None
    ) -> None:
        self._application = application
        self._methods = methods
        self.limits = limits or Limits()
        self._open = 0

    def __repr__(self) -> str:
        return f"<AppServer open={self._open} {self._application!r}>"

    async def serve(self, transport: Transport) -> None:
        """Serve a connection to its end, and close it."""
        reason: str | None = None
        try:
            reason = await _Service(self, transport).run()
        except OSError as error:
            logger.debug("a connection broke: %s", error)
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(LAST_WORDS_PATIENCE):
                await transport.close(reason)

    # ---- for one connection

    @property
    def application(self) -> Application:
        return self._application

    def find(self, client: Client, request: Request) -> tuple[Method, Params]:
        """The method with its checked parameters. Refusal: there is none, or they are malformed."""
        method = self._methods.get(request.method)
        if method is None:
            raise Refusal(METHOD_NOT_FOUND, f"there is no method {request.method[:200]!r}")
        if not client.initialized and method.name != INITIALIZE:
            raise Refusal(INVALID_REQUEST, f"{method.name} came before initialize; send that first")
        try:
            return method, method.params.model_validate({} if request.params is None else request.params)
        except ValidationError as error:
            raise malformed(error, request.method) from None

    def enter(self) -> None:
        if self._open >= self.limits.requests:
            raise Refusal(OVERLOADED, f"the server is overloaded: {self._open} requests are open; retry later")
        self._open += 1

    def leave(self) -> None:
        self._open -= 1


class _Service:
    """One connection being served."""

    def __init__(self, server: AppServer, transport: Transport) -> None:
        self._server = server
        self._transport = transport
        limits = server.limits
        self._outgoing = Outgoing(
            server.application.budget, byte_limit=limits.backlog_bytes, frame_limit=limits.backlog_frames
        )
        self._peer: Peer[Ask] = Peer(batch_limit=limits.batch, request_limit=limits.own_requests)
        self._lines: dict[str, anyio.Lock] = {}
        self._broken = False
        self._slow = False

    async def run(self) -> str | None:
        """Return when the connection is over; a sentence when we end it."""
        async with AsyncExitStack() as stack:
            background = await stack.enter_async_context(anyio.create_task_group())
            client = Client(self._peer, self._outgoing, background)
            stack.callback(self._left, client)
            background.start_soon(self._write, background.cancel_scope)
            background.start_soon(self._watch, background.cancel_scope)
            await self._read(client)
            await self._finish(client)
            background.cancel_scope.cancel()
        return await self._last_words()

    # ---- in

    async def _read(self, client: Client) -> None:
        """Take all that comes; return when nothing comes any more and every request has been answered."""
        context = Context(self._server.application, client)
        async with anyio.create_task_group() as requests:
            try:
                async for frame in self._transport.frames():
                    self._hear(context, frame, requests)
            except OSError as error:
                logger.debug("a connection broke: %s", error)
                self._broken = True
            if not self._listens:
                requests.cancel_scope.cancel()

    @property
    def _listens(self) -> bool:
        """Whether the client may still read after it has stopped writing."""
        return self._transport.half_closes and not self._broken

    def _hear(self, context: Context, frame: bytes | TooLong, requests: anyio.abc.TaskGroup) -> None:
        if isinstance(frame, TooLong):
            self._outgoing.put(self._peer.too_long(frame.head, FRAME_LIMIT).frame)
            return
        for received in self._peer.receive(frame):
            match received:
                case Request():
                    self._take(context, received, requests)
                case Answered():
                    context.client.answered(received)
                case Reply(frame=reply):
                    self._outgoing.put(reply)
                case Notification():
                    pass  # `initialized` says nothing that we wait for

    def _take(self, context: Context, request: Request, requests: anyio.abc.TaskGroup) -> None:
        try:
            method, params = self._server.find(context.client, request)
            if method.waits:
                self._server.enter()
                requests.start_soon(self._run, context, request, method, params, name=method.name)
                return
            result = method.run(context, params)
        except Exception as error:
            context.client.fail(request, wire_error(error, request.method))
        else:
            _answer(context.client, request, result)

    async def _run(self, context: Context, request: Request, method: Method, params: Params) -> None:
        """The task of one request that waits."""
        try:
            async with AsyncExitStack() as stack:
                thread_id = getattr(params, "thread_id", None)
                if method.in_thread_order and thread_id is not None:
                    await stack.enter_async_context(self._lines.setdefault(thread_id, anyio.Lock()))
                    stack.callback(self._tidy, thread_id)
                if method.answers_first:
                    stack.enter_context(self._outgoing.holding())
                await self._settle(context.client, request, method.run(context, params))
        finally:
            self._server.leave()

    async def _settle(self, client: Client, request: Request, running: Any) -> None:
        try:
            result = await running
        except Exception as error:
            client.fail(request, wire_error(error, request.method))
        else:
            _answer(client, request, result)

    def _tidy(self, thread_id: str) -> None:
        """Forget the line of a thread in which nobody else stands."""
        line = self._lines.get(thread_id)
        if line is not None and not line.statistics().tasks_waiting:
            del self._lines[thread_id]

    # ---- out

    async def _write(self, scope: anyio.CancelScope) -> None:
        try:
            while True:
                frames = await self._outgoing.take()
                await self._transport.send(frames)
                self._outgoing.written()
        except OSError as error:
            logger.debug("a client stopped reading: %s", error)
            scope.cancel()

    async def _watch(self, scope: anyio.CancelScope) -> None:
        """End the connection of a client that reads too slowly."""
        await self._outgoing.overflowed.wait()
        self._slow = True
        scope.cancel()

    # ---- the end

    async def _finish(self, client: Client) -> None:
        """A client that only stopped writing still hears how its turns end."""
        if not self._listens:
            return
        followed = self._server.application.followed_by(client)
        for live in followed:
            live.stop_asking(client)
        for live in followed:
            await live.told_ends()
        await self._outgoing.flushed()

    def _left(self, client: Client) -> None:
        self._server.application.forget(client)
        client.leave()

    async def _last_words(self) -> str | None:
        if not self._slow:
            return None
        sentence = "this connection was ended because too much waited for it; read faster, or ask for less"
        frame = self._peer.notification("warning", {"threadId": None, "message": sentence})
        with anyio.move_on_after(LAST_WORDS_PATIENCE):
            await self._transport.send([frame])
        return sentence


def _answer(client: Client, request: Request, result: Any) -> None:
    if isinstance(result, After):
        client.respond(request, result.result)
        result.then()
    else:
        client.respond(request, result)
