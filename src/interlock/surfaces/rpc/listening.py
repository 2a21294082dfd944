"""Where the app server listens.

Owns: reading `--listen`, opening its transport, accepting connections.
Never: listens beyond this machine without a token (RPC-6).
"""

import asyncio
import errno
import ipaddress
import logging
import os
import socket
import stat
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import anyio
import anyio.abc

from interlock.surfaces.rpc.serving import AppServer
from interlock.surfaces.rpc.streams import socket_streams, standard_streams
from interlock.surfaces.rpc.transport import FRAME_LIMIT
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.secret import Secret

BACKLOG: Final = 1024
"""Connections that wait to be accepted. Beyond it a client that connects to a Unix socket is refused."""

ACCEPT_AGAIN_AFTER: Final = 0.5
"""Seconds; as asyncio's own servers wait, or a little less."""
PASSING: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED})
"""What accept(2) says of a shortage, or of a client that left: the next attempt may well succeed."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stdio:
    """The standard streams: one connection."""


@dataclass(frozen=True, slots=True)
class UnixSocket:
    path: Path


@dataclass(frozen=True, slots=True)
class WebSocket:
    host: str
    port: int

    @property
    def loopback(self) -> bool:
        return ipaddress.ip_address(self.host).is_loopback


Place: TypeAlias = Stdio | UnixSocket | WebSocket


def read_place(text: str) -> Place:
    """The place that `--listen` names.

    Raises:
        InvalidRequest: it is none of stdio://, unix://PATH and ws://IP:PORT.
    """
    if text == "stdio://":
        return Stdio()
    if text.startswith("unix://") and len(text) > len("unix://"):
        return UnixSocket(Path(text.removeprefix("unix://")).absolute())
    if text.startswith("ws://"):
        return _read_address(text)
    raise InvalidRequest(f"cannot listen on {text!r}; use stdio://, unix://PATH or ws://IP:PORT")


def _read_address(text: str) -> WebSocket:
    wrong = InvalidRequest(f"cannot listen on {text!r}; use ws://IP:PORT, such as ws://127.0.0.1:4500")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise wrong from None
    if host is None or port is None or parts.path not in ("", "/") or parts.query or parts.username:
        raise wrong
    host = "127.0.0.1" if host == "localhost" else host
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise wrong from None
    return WebSocket(host, port)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """How to listen. `said` is called with the address once connections are taken."""

    place: Place
    token: Secret | None = None
    origins: frozenset[str] = frozenset()
    said: Callable[[str], None] = lambda address: None

    def refuse_if_unsafe(self) -> None:
        """Raises InvalidRequest where other machines could connect without a token."""
        if isinstance(self.place, WebSocket) and not self.place.loopback and self.token is None:
            raise InvalidRequest(
                f"cannot listen on {self.place.host} without a token: other machines reach that address; "
                "use --token-file, or a loopback address"
            )


async def listen(server: AppServer, listening: Listening) -> None:
    """Serve until the one connection of the standard streams ends, or until cancelled."""
    listening.refuse_if_unsafe()
    match listening.place:
        case Stdio():
            await server.serve(await standard_streams())
        case UnixSocket(path=path):
            await _listen_at_path(server, path, listening.said)
        case WebSocket() as place:
            await _listen_for_websockets(server, place, listening)


async def _listen_at_path(server: AppServer, path: Path, said: Callable[[str], None]) -> None:
    with closing(bound_socket(path)) as listener:
        try:
            async with anyio.create_task_group() as connections:
                said(f"unix://{path}")
                while True:
                    connection = await accepted(listener)
                    connections.start_soon(_serve_socket, server, connection)
        finally:
            _remove(path)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


async def accepted(listener: socket.socket) -> socket.socket:
    """The next connection. Without a descriptor left for it, it waits, and those that are served go on."""
    while True:
        try:
            connection, _ = await asyncio.get_running_loop().sock_accept(listener)
        except OSError as error:
            if error.errno not in PASSING:
                raise
            logger.warning("no connection can be taken just now: %s", error.strerror or error)
            await anyio.sleep(ACCEPT_AGAIN_AFTER)
        else:
            return connection


async def _serve_socket(server: AppServer, connection: socket.socket) -> None:
    """Serve it to its end; what goes wrong with it is no matter of the others."""
    try:
        await server.serve(await socket_streams(connection))
    except Exception:
        logger.exception("serving a connection failed")


def bound_socket(path: Path) -> socket.socket:
    """A listening socket that only this user can connect to (mode 0600), from its first moment on.

    Raises:
        InvalidRequest: somebody listens there, or the path cannot be used.
    """
    _remove_left_over(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        raise InvalidRequest(f"cannot listen at {path}: {error.strerror or error}") from error
    finally:
        os.umask(mask)
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def _remove_left_over(path: Path) -> None:
    """Remove the socket of a server that was killed; refuse to touch anything else."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise InvalidRequest(f"cannot listen at {path}: there is something that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        outcome = probe.connect_ex(str(path))
    if outcome == 0:
        raise InvalidRequest(f"cannot listen at {path}: another server listens there")
    if outcome in (errno.ECONNREFUSED, errno.ENOENT):
        path.unlink(missing_ok=True)


async def _listen_for_websockets(server: AppServer, place: WebSocket, listening: Listening) -> None:
    try:
        from websockets.asyncio.server import ServerConnection, serve  # optional, and heavy
    except ImportError as error:
        raise InvalidRequest(
            "cannot listen for WebSockets: the package websockets is not installed; "
            "run: pip install 'interlock[app-server]'"
        ) from error

    from interlock.surfaces.rpc.websocket import Door, WebSocketTransport, logger

    async def handle(connection: ServerConnection) -> None:
        await server.serve(WebSocketTransport(connection))

    door = Door(token=listening.token, origins=listening.origins)
    try:
        listener = await serve(
            handle,
            place.host,
            place.port,
            process_request=door.judge,
            backlog=BACKLOG,
            max_size=FRAME_LIMIT,
            compression=None,  # local or fast; it would cost 64 KiB and a copy for each connection
            logger=logger,
            server_header=None,
        )
    except OSError as error:
        raise InvalidRequest(f"cannot listen on {place.host}:{place.port}: {error.strerror or error}") from error
    async with listener:
        host, port = listener.sockets[0].getsockname()[:2]
        listening.said(f"ws://[{host}]:{port}" if ":" in host else f"ws://{host}:{port}")
        await listener.serve_forever()
