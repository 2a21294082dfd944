"""Newline-delimited JSON over a pair of byte streams: standard input and output, or a Unix socket.

Owns: lines to frames and back, for pipes, sockets and plain files.
Never: holds more of a line than its limit.
"""

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Final

import anyio.to_thread

from interlock.connections.lines import LineSplitter, LongLine
from interlock.surfaces.rpc.transport import FRAME_LIMIT, TooLong

CHUNK: Final = 256 * 1024

Read = Callable[[], Awaitable[bytes]]
Write = Callable[[bytes], Awaitable[None]]


class LineTransport:
    """`read` gives bytes, none of them at the end; `write` returns once all of its bytes have left.

    `end` closes both and forgets what has not left: whoever was to have it has been waited for.
    """

    half_closes = True

    def __init__(self, read: Read, write: Write, end: Callable[[], None], *, limit: int = FRAME_LIMIT) -> None:
        self._read = read
        self._write = write
        self._end = end
        self._splitter = LineSplitter(limit)

    async def frames(self) -> AsyncIterator[bytes | TooLong]:
        while chunk := await self._read():
            for line in self._splitter.feed(chunk):
                if not isinstance(line, LongLine):
                    yield line
                elif line.tail is None:  # told when it passes the limit, and again at its end
                    yield TooLong(line.head)
        rest = self._splitter.rest()
        if rest:
            yield rest

    async def send(self, frames: Sequence[bytes]) -> None:
        await self._write(b"\n".join((*frames, b"")))

    async def close(self, reason: str | None) -> None:
        self._end()


async def standard_streams() -> LineTransport:
    """The process's own standard input and output.

    Output gets a descriptor of its own and descriptor 1 becomes standard error: nothing that prints by accident
    gets between two frames.
    """
    output = os.dup(1)
    os.dup2(2, 1)
    read = await _reading(0)
    write, end = await _writing(output)
    return LineTransport(read, write, end)


async def socket_streams(connection: socket.socket) -> LineTransport:
    """A connected socket."""
    reader, writer = await asyncio.open_connection(sock=connection, limit=CHUNK)
    _without_buffer(writer)
    return LineTransport(partial(reader.read, CHUNK), partial(_send, writer), partial(_cut_off, writer))


def _can_be_watched(descriptor: int) -> bool:
    """Whether the event loop can wait for it; plain files and some devices it cannot."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


async def _reading(descriptor: int) -> Read:
    if not _can_be_watched(descriptor):
        return partial(anyio.to_thread.run_sync, partial(os.read, descriptor, CHUNK), abandon_on_cancel=True)
    reader = asyncio.StreamReader(limit=CHUNK)
    pipe = os.fdopen(descriptor, "rb", buffering=0, closefd=False)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return partial(reader.read, CHUNK)


async def _writing(descriptor: int) -> tuple[Write, Callable[[], None]]:
    if not _can_be_watched(descriptor):
        return partial(_write_file, descriptor), partial(os.close, descriptor)
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(descriptor, "wb", buffering=0)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    _without_buffer(writer)
    return partial(_send, writer), partial(_cut_off, writer)


def _without_buffer(writer: asyncio.StreamWriter) -> None:
    """Have `drain` return once all has left: what lies in a buffer when the process ends, nobody ever reads."""
    writer.transport.set_write_buffer_limits(high=0)


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    if writer.is_closing():
        raise ConnectionResetError("the other side is gone")
    writer.write(data)
    await writer.drain()


def _cut_off(writer: asyncio.StreamWriter) -> None:
    if not writer.is_closing():
        writer.transport.abort()


async def _write_file(descriptor: int, data: bytes) -> None:
    await anyio.to_thread.run_sync(_write_all, descriptor, data)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
