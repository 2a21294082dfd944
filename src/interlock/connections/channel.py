"""The seam between a transport and the dispatcher.

Owns: the two Protocols by which JSON-RPC messages go out and come in.
Never: knows ids, deadlines or the meaning of a method; the dispatcher does.
"""

from collections.abc import Mapping
from typing import Protocol

import anyio.abc

from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject, JsonValue
from interlock.vocabulary.server import Era


class Receiver(Protocol):
    """What a channel tells its dispatcher. All methods are synchronous and never raise."""

    def message(self, message: JsonValue, within: int | str | None = None) -> None:
        """One decoded JSON-RPC message, in the order of arrival.

        `within`: it came on the stream that answers this request of ours, so what it asks belongs to that one.
        """
        ...

    def failed(self, request_id: int | str, error: ServerFailed) -> None:
        """One request came to nothing at the transport (HTTP: its POST failed); the others live on."""
        ...

    def ended(self, error: ServerFailed) -> None:
        """The channel is over for good: every request in flight fails with `error`. Said once."""
        ...

    def diagnostic(self, kind: str, text: str) -> None:
        """Something odd that costs nothing but a count (see vocabulary.server.Diagnostic)."""
        ...


class Channel(Protocol):
    """Carries JSON-RPC messages to one server and back: stdio, Streamable HTTP, HTTP+SSE."""

    sending_waits: bool
    """Whether `send` may wait for the server."""

    async def run(
        self, receiver: Receiver, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Open, call `task_status.started()`, deliver until the channel ends or the task is cancelled.

        Whatever was opened (process, streams, HTTP session) is closed, bounded, before it returns.

        Raises:
            ServerFailed: it could not be opened (effect none).
        """
        ...

    async def send(self, message: JsonObject, *, headers: Mapping[str, str] | None = None) -> None:
        """Take one message; `headers` are for HTTP. Returns once it is on its way or buffered within bounds.

        Raises:
            ServerFailed: it cannot be sent (effect none).
        """
        ...

    async def flush(self) -> None:
        """Return once what was taken and awaits no answer (notifications, responses) has left; the caller bounds it."""
        ...

    def abandon(self, request_id: int | str) -> bool:
        """The caller gave up on a request. True if that is told by closing its stream (2026-07-28 over HTTP),
        so that no notifications/cancelled may follow."""
        ...

    def adopted(self, era: Era, protocol_version: str) -> None:
        """Negotiation is over; HTTP channels act on it (session, GET stream, headers)."""
        ...

    @property
    def standard_error(self) -> str:
        """The newest lines of stderr, bounded; empty for HTTP."""
        ...

    @property
    def process_id(self) -> int | None: ...
