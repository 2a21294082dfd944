"""One live incarnation of a connection: opened, negotiated, asked, ended.

Owns: the way from a configuration to a session, and the reason of its end.
Never: restarts a session that was ready, follows pages, or makes typed values of results; `connection` does.
"""

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from types import TracebackType
from typing import Any

import anyio

from interlock.connections.channel import Channel
from interlock.connections.clock import now
from interlock.connections.dispatcher import Dispatcher, OnNotification
from interlock.connections.masking import mask_of
from interlock.connections.negotiation import PROBE_TIMEOUT, DiedOnProbe, Negotiated, negotiate
from interlock.connections.serving import OnRequest, RequestRefused
from interlock.connections.stamping import Stamp
from interlock.connections.stdio import StdioChannel, last_words
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject, excerpt
from interlock.vocabulary.ports import OnProgress, Respondent
from interlock.vocabulary.server import Diagnostic, Era, HttpTransport, ServerConfig, ServerInfo, StdioTransport

__all__ = ["OnNotification", "OnRequest", "RequestRefused", "Session", "SessionHandlers", "open_session"]

CLIENT_ONLY_EXTENSIONS = frozenset({"openai/standard-form-input"})
"""Extensions between an application and its host, which no server is told of (CON-13)."""
END_PATIENCE = 0.5
"""Seconds to learn how a server ended that does not take our messages any more."""
RESULT_TYPES = (None, "complete", "input_required")
"""2026-07-28: absent means complete; a type that is not known must not be read as complete (basic/index)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHandlers:
    """What the owner of a session listens to, and what is advertised because of it (CON-12, CON-13).

    `on_request` maps methods (such as "elicitation/create") to their handlers; all others are answered with
    "method not found". `respondent` answers what belongs to none of our requests; with one, elicitation is
    advertised (and its handler is the connection's). `farewells` are the results, by method, of requests that are still
    open when we end the session (QST-5). `extensions` are capability settings by extension id, passed
    whole. `on_failing` hears why a start has failed while its process is still being ended, which may take seconds.
    """

    on_notification: OnNotification | None = None
    on_request: Mapping[str, OnRequest] = field(default_factory=dict[str, OnRequest])
    respondent: Respondent | None = None
    elicitation_modes: tuple[str, ...] = ("form", "url")
    farewells: Mapping[str, JsonObject] = field(default_factory=dict[str, Any])
    extensions: Mapping[str, JsonObject] = field(default_factory=dict[str, Any])
    on_failing: Callable[[ServerFailed], None] = lambda error: None

    def capabilities(self) -> JsonObject:
        """The client capabilities that a server is told; part of a connection's identity (CON-15)."""
        capabilities: dict[str, Any] = {}
        if self.respondent is not None or "elicitation/create" in self.on_request:
            capabilities["elicitation"] = {mode: {} for mode in self.elicitation_modes}
        extensions = {name: value for name, value in self.extensions.items() if name not in CLIENT_ONLY_EXTENSIONS}
        if extensions:
            capabilities["extensions"] = extensions
        return capabilities


class Session:
    """A negotiated session. Owned by the task that entered `open_session`; usable from any task of its loop."""

    def __init__(self, dispatcher: Dispatcher, negotiated: Negotiated, stamp: Stamp, server: str) -> None:
        self.era: Era = negotiated.era
        self.protocol_version = negotiated.protocol_version
        self.info: ServerInfo | None = negotiated.info
        self.capabilities = negotiated.capabilities
        self.instructions = negotiated.instructions
        self.ended = dispatcher.over
        """Set when the session is over for good; `failure` then says why."""
        self._dispatcher = dispatcher
        self._stamp = stamp
        self._server = server
        self._stateless = negotiated.era == "stateless"

    def __repr__(self) -> str:
        return f"<Session {self._server!r} {self.protocol_version} {self._dispatcher!r}>"

    @property
    def failure(self) -> ServerFailed | None:
        """Why the session is over. Facts: `exit_code` or `signal` (stdio, where known), `standard_error` (its newest
        lines), `session_lost` (HTTP, CON-7)."""
        return self._dispatcher.failure

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        timeout: float | None,
        on_progress: OnProgress | None = None,
        meta: JsonObject | None = None,
        input_schema: JsonObject | None = None,
        request_id: str | None = None,
        respondent: Respondent | None = None,
    ) -> JsonObject:
        """Ask the server and return its raw result object, `resultType` "input_required" included.

        `timeout` is seconds of active time (CON-11), None for a request that lasts (subscriptions/listen).
        `meta` is merged into `_meta`. `input_schema` of the tool being called gives its Mcp-Param headers.
        `request_id` replaces the counted id; it must not be a decimal number. `respondent` answers what an older
        server asks on the stream of this very request (HTTP).

        Raises:
            ServerFailed: kind deadline, lost, protocol, rejected (rpc_code, rpc_data) or unavailable.
        """
        stamp = self._stamp
        params = stamp.params(params, meta)
        result = await self._dispatcher.request(
            method,
            params,
            timeout=timeout,
            on_progress=on_progress,
            headers=stamp.headers(method, params, input_schema),
            request_id=request_id,
            respondent=respondent,
        )
        if self._stateless and (kind := result.get("resultType")) not in RESULT_TYPES:
            raise ServerFailed(
                f"server {self._server!r} answered {method} with a result of the unknown type {excerpt(kind, 100)}",
                server=self._server,
                kind="protocol",
                effect="unknown",
            )
        return result

    async def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Send a notification. ServerFailed if it cannot be sent."""
        stamped = self._stamp.params(params, None)
        await self._dispatcher.notify(method, stamped, headers=self._stamp.headers(method, stamped, None))

    def paused(self) -> AbstractContextManager[None]:
        """Within this context the deadlines of this session's requests stand still (CON-11). Nests."""
        return self._dispatcher.paused()

    def diagnostic(self, kind: str, text: str) -> None:
        """Count something odd."""
        self._dispatcher.diagnostic(kind, text)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self._dispatcher.diagnostics.report()

    @property
    def standard_error(self) -> str:
        """The newest lines of a stdio server's stderr, with secrets masked."""
        return self._dispatcher.channel.standard_error

    @property
    def process_id(self) -> int | None:
        return self._dispatcher.channel.process_id


def open_session(
    config: ServerConfig,
    *,
    timeout: float | None = None,
    era: Era | None = None,
    handlers: SessionHandlers | None = None,
    probe_timeout: float = PROBE_TIMEOUT,
) -> AbstractAsyncContextManager[Session]:
    """Start or reach the server, negotiate, and give the session; leaving ends it, bounded (CON-5).

    `timeout` is seconds for all of the start-up (default: config.startup_timeout). `era` is what worked last
    time; it is tried first and found out again when it fails. Enter and leave in one task.

    Raises:
        ServerFailed: the session did not come about (effect none).
    """
    limit = config.startup_timeout if timeout is None else timeout
    return _Opening(config, handlers or SessionHandlers(), limit, era, probe_timeout)


@dataclass(slots=True)
class _Opening:
    """The attempts to open one session: at most two, one after the other. `_running` is the one that lives."""

    config: ServerConfig
    handlers: SessionHandlers
    patience: float
    era: Era | None
    probe_timeout: float
    deadline: float = inf
    _running: AbstractAsyncContextManager[None] | None = None

    async def __aenter__(self) -> Session:
        self.deadline = now() + self.patience
        try:
            return await self._open(self.era)
        except BaseException:
            await self._leave(*sys.exc_info())
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._leave(kind, error, traceback)

    async def _leave(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> bool | None:
        running, self._running = self._running, None
        return None if running is None else await running.__aexit__(kind, error, traceback)

    async def _open(self, era: Era | None) -> Session:
        transport = self.config.transport
        try:
            if isinstance(transport, StdioTransport):
                return await self._open_process_or_tell(era)
            return await self._open_url(transport, era)
        except ServerFailed as error:
            error.effect = error.facts["effect"] = "none"  # no request of a caller was sent
            raise

    async def _open_process_or_tell(self, era: Era | None) -> Session:
        try:
            return await self._open_process(era)
        except ServerFailed as error:
            self.handlers.on_failing(error)
            raise

    async def _open_process(self, era: Era | None) -> Session:
        try:
            return await self._attempt(StdioChannel(self.config), self.config.protocol, era)
        except DiedOnProbe as died:
            await self._leave()
            first = died
        try:
            return await self._attempt(StdioChannel(self.config), self.config.protocol, "handshake")
        except ServerFailed as error:
            if first.slow and error.kind == "deadline":
                raise first.error from error  # how it ended tells more than that the rest of the time was too short
            raise

    async def _open_url(self, transport: HttpTransport, era: Era | None) -> Session:
        # aiohttp is heavy, and many hosts have stdio servers only.
        from interlock.connections.http import HttpChannel
        from interlock.connections.sse import SseChannel

        handshake_only: Era | None = "handshake" if self.config.protocol == "auto" else None
        if transport.legacy_sse is True:
            return await self._attempt(SseChannel(self.config), self.config.protocol, handshake_only)
        try:
            return await self._attempt(HttpChannel(self.config), self.config.protocol, era)
        except DiedOnProbe as died:
            await self._leave()
            raise died.error from died
        except ServerFailed as error:
            if transport.legacy_sse is False or not _may_be_legacy_sse(error):
                raise
            await self._leave()
            first = error
        try:
            return await self._attempt(SseChannel(self.config), self.config.protocol, handshake_only)
        except ServerFailed as error:
            raise first from error  # what the configured address said tells more than a guess that failed

    async def _attempt(self, channel: Channel, protocol: str, era: Era | None) -> Session:
        config, capabilities = self.config, self.handlers.capabilities()
        dispatcher = Dispatcher(
            channel,
            server=config.name,
            on_notification=self.handlers.on_notification,
            on_request=self.handlers.on_request,
            farewells=self.handlers.farewells,
            mask=mask_of(config.transport),
        )
        try:
            running = _running(dispatcher, self.deadline, config.name)
            await running.__aenter__()
            self._running = running
            negotiated = await negotiate(
                dispatcher,
                server=config.name,
                capabilities=capabilities,
                deadline=self.deadline,
                patience=self.patience,
                protocol=protocol,
                era=era,
                probe_timeout=self.probe_timeout,
            )
        except ServerFailed as error:
            cause = await _end_behind(error, dispatcher)
            seen = dispatcher.diagnostics.report()
            raise _with_last_words(cause, channel.standard_error, seen) from error.__cause__
        dispatcher.requests.enabled = negotiated.era == "handshake"
        channel.adopted(negotiated.era, negotiated.protocol_version)
        stamp = Stamp(negotiated, capabilities, http=isinstance(config.transport, HttpTransport))
        return Session(dispatcher, negotiated, stamp, config.name)


@asynccontextmanager
async def _running(dispatcher: Dispatcher, deadline: float, server: str) -> AsyncIterator[None]:
    """The dispatcher's task, from the opened channel to its bounded end.

    A group wraps what its body raises; here the body is our caller's, who shall see its own error.
    """
    raised: BaseException | None = None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(dispatcher.serve)
            await dispatcher.opened.wait(deadline)
            if not dispatcher.opened.is_set():
                raise ServerFailed(f"server {server!r} could not be opened in time", server=server, kind="deadline")
            try:
                yield
            finally:
                await dispatcher.flush()
                group.cancel_scope.cancel()
    except BaseExceptionGroup as several:
        raised = several.exceptions[0] if len(several.exceptions) == 1 else several
    if raised is not None:
        raise raised


def _may_be_legacy_sse(error: ServerFailed) -> bool:
    """A 4xx that is no word of a modern server: an HTTP+SSE server of 2024-11-05 refuses a POST to its stream
    (specification: Streamable HTTP, Backward Compatibility)."""
    status = error.facts.get("status")
    return isinstance(status, int) and 400 <= status < 500 and status not in (401, 403, 408, 429)


async def _end_behind(error: ServerFailed, dispatcher: Dispatcher) -> ServerFailed:
    """The end of the process, where a message could not be sent because of it: its exit status tells more."""
    if error.kind in ("unavailable", "lost"):
        await dispatcher.over.wait(now() + END_PATIENCE)
        return dispatcher.failure or error
    return error


def _with_last_words(error: ServerFailed, standard_error: str, seen: tuple[Diagnostic, ...]) -> ServerFailed:
    """A start-up error that shows what the server complained about, and what it printed instead of messages.

    Facts: `diagnostics`, for nobody else will know of them; `standard_error`.
    """
    message, facts = error.message, {"diagnostics": seen, **error.facts}
    if standard_error.strip() and "standard_error" not in facts:
        message += f"; its last words on stderr: {last_words(standard_error)}"
        facts["standard_error"] = standard_error
    noise = next((entry for entry in seen if entry.kind in ("noise", "invalid_utf8")), None)
    if noise is not None and error.kind not in ("rejected", "unsupported"):
        lines = "a line" if noise.count == 1 else f"{noise.count} lines, the last of them"
        message += f"; what it printed on stdout is no message, but {lines}: {noise.last}"
    facts = {name: value for name, value in facts.items() if name not in ("server", "kind", "effect")}
    return ServerFailed(
        message,
        server=error.server,
        kind=error.kind,
        effect=error.effect,
        rpc_code=error.rpc_code,
        rpc_data=error.rpc_data,
        **facts,
    )
