"""JSON-RPC over WebSocket: one message a frame.

Owns: who may connect: the token, the Origin and Host of a browser (RPC-6).
Never: logs a header, or compares a token in a time that tells anything of it.
"""

import hmac
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from interlock.surfaces.rpc.transport import TooLong
from interlock.vocabulary.secret import Secret

TRY_AGAIN_LATER: Final = 1013
"""Close code of RFC 6455's registry for a server that is overloaded."""
HEALTH: Final = frozenset({"/healthz", "/readyz"})
LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})

logger = logging.getLogger(__name__)
logger.setLevel(logging.INFO)  # at DEBUG the library writes headers, the token among them


class WebSocketTransport:
    """One accepted connection."""

    half_closes = False

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    async def frames(self) -> AsyncIterator[bytes | TooLong]:
        try:
            async for message in self._connection:
                yield message.encode("utf-8", "surrogatepass") if isinstance(message, str) else message
        except ConnectionClosed as error:
            raise ConnectionResetError(str(error)) from error

    async def send(self, frames: Sequence[bytes]) -> None:
        try:
            for frame in frames:
                await self._connection.send(frame, text=True)
        except ConnectionClosed as error:
            raise ConnectionResetError(str(error)) from error

    async def close(self, reason: str | None) -> None:
        if reason is None:
            await self._connection.close()
        else:
            await self._connection.close(TRY_AGAIN_LATER, reason[:120])


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Who may come in. `token` None: everybody who reaches a loopback address.

    A browser sends its page's Origin; it comes in only from `origins`. Without a token, the Host must be a loopback
    name: a page that has its own name point here is thereby kept out.
    """

    token: Secret | None = None
    origins: frozenset[str] = field(default_factory=frozenset)

    def judge(self, connection: ServerConnection, request: Request) -> Response | None:
        """None lets the connection in; a response is its refusal, or the answer to a question for health."""
        if request.path in HEALTH:
            return connection.respond(HTTPStatus.OK, "ok\n")
        headers = request.headers
        if not self.admits_origins(headers.get_all("Origin")):
            return connection.respond(HTTPStatus.FORBIDDEN, "pages of this origin may not connect\n")
        if self.token is None and not self.admits_hosts(headers.get_all("Host")):
            return connection.respond(HTTPStatus.FORBIDDEN, "connect to a loopback name\n")
        if not self.admits_credentials(headers.get_all("Authorization")):
            return connection.respond(HTTPStatus.UNAUTHORIZED, "send the token as `Authorization: Bearer TOKEN`\n")
        return None

    def admits_origins(self, origins: Sequence[str]) -> bool:
        return all(origin in self.origins for origin in origins)

    def admits_hosts(self, hosts: Sequence[str]) -> bool:
        return len(hosts) == 1 and self._is_loopback(hosts[0])

    def _is_loopback(self, host: str) -> bool:
        name, colon, port = host.rpartition(":")
        if not colon or not port.isdigit():
            name = host
        return name.lower() in LOOPBACK_NAMES

    def admits_credentials(self, credentials: Sequence[str]) -> bool:
        if self.token is None:
            return True
        if len(credentials) != 1:
            return False
        scheme, _, given = credentials[0].partition(" ")
        same = hmac.compare_digest(given.strip().encode(), self.token.reveal().encode())
        return same and scheme.lower() == "bearer"
