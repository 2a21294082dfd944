"""One live incarnation of a connection: opened, negotiated, asked, ended.

Owns: the way from a configuration to a session, the stamping of its requests, and the reason of its end.
Never: restarts anything, follows pages, or makes typed values of results; `connection` does.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio

from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.ports import OnProgress
from interlock.vocabulary.server import Diagnostic, Era, ServerConfig, ServerInfo

OnNotification: TypeAlias = Callable[[str, JsonObject], Awaitable[None] | None]
"""Called with method and params of a notification, one at a time, in order; list_changed storms come folded."""

OnRequest: TypeAlias = Callable[[JsonObject], Awaitable[JsonObject]]
"""Answers a server's request: params in, result out. Cancelled when the server takes the request back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHandlers:
    """What the owner of a session listens to, and what is advertised because of it (CON-12, CON-13).

    `on_request` maps methods (such as "elicitation/create") to their handlers; all others are answered with
    "method not found". `extensions` are capability settings by extension id, passed whole.
    """

    on_notification: OnNotification | None = None
    on_request: Mapping[str, OnRequest] = field(default_factory=dict[str, OnRequest])
    elicitation_modes: tuple[str, ...] = ("form", "url")
    extensions: Mapping[str, JsonObject] = field(default_factory=dict[str, Any])

    def capabilities(self) -> JsonObject:
        """The client capabilities that a server is told; part of a connection's identity (CON-15)."""
        raise NotImplementedError


class Session:
    """A negotiated session. Owned by the task that entered `open_session`; usable from any task of its loop."""

    era: Era
    protocol_version: str
    info: ServerInfo | None
    capabilities: JsonObject
    instructions: str | None
    ended: anyio.Event
    """Set when the session is over for good; `failure` then says why."""
    failure: ServerFailed | None
    """facts: `exit_code` or `signal` (stdio, where known) and `standard_error` (its newest lines)."""

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
    ) -> JsonObject:
        """Ask the server and return its raw result object, `resultType` "input_required" included.

        `timeout` is seconds of active time (CON-11), None for a request that lasts (subscriptions/listen).
        `meta` is merged into `_meta`. `input_schema` of the tool being called gives its Mcp-Param headers.
        `request_id` replaces the counted id; it must not be a decimal number.

        Raises:
            ServerFailed: kind deadline, lost, protocol, rejected (rpc_code, rpc_data) or unavailable.
        """
        raise NotImplementedError

    async def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Send a notification. ServerFailed if it cannot be sent."""
        raise NotImplementedError

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Within this context the deadlines of this session's requests stand still (CON-11). Nests."""
        raise NotImplementedError

    def diagnostic(self, kind: str, text: str) -> None:
        """Count something odd."""
        raise NotImplementedError

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        raise NotImplementedError

    @property
    def standard_error(self) -> str:
        raise NotImplementedError

    @property
    def process_id(self) -> int | None:
        raise NotImplementedError


@asynccontextmanager
async def open_session(
    config: ServerConfig,
    *,
    timeout: float | None = None,
    era: Era | None = None,
    handlers: SessionHandlers | None = None,
    probe_timeout: float = 3.0,
) -> AsyncIterator[Session]:
    """Start or reach the server, negotiate, and yield the session; leaving ends it, bounded (CON-5).

    `timeout` is seconds for all of the start-up (default: config.startup_timeout). `era` is what worked last
    time; it is tried first and found out again when it fails. Enter and leave in one task.

    Raises:
        ServerFailed: the session did not come about (effect none).
    """
    raise NotImplementedError
    yield
