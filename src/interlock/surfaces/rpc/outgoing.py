"""What waits to be sent to one connection.

Owns: the order and the bound of frames between the server and a slow reader (RPC-6).
Never: makes whoever sends wait, or lets one connection's backlog cost another its place.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import anyio

BACKLOG_LIMIT: Final = 64 * 1024 * 1024
"""Bytes that wait for one connection. A single frame may be larger when nothing else waits."""
FRAME_LIMIT: Final = 20_000
"""Frames that wait for one connection."""
GLOBAL_LIMIT: Final = 512 * 1024 * 1024
"""Bytes that wait for all connections together."""


class Budget:
    """What waits for all connections; beyond the limit, the one with the largest backlog loses."""

    def __init__(self, limit: int = GLOBAL_LIMIT) -> None:
        self._limit = limit
        self._queues: set[Outgoing] = set()

    def __repr__(self) -> str:
        return f"<Budget {self.used} of {self._limit} bytes, {len(self._queues)} connections>"

    @property
    def used(self) -> int:
        return sum(queue.backlog for queue in self._queues)

    def join(self, queue: "Outgoing") -> None:
        self._queues.add(queue)

    def leave(self, queue: "Outgoing") -> None:
        self._queues.discard(queue)

    def make_room(self, size: int) -> None:
        """Have the slowest readers fall behind until `size` more bytes may wait."""
        while self.used + size > self._limit:
            largest = max(self._queues, key=lambda queue: queue.backlog)
            if not largest.backlog or largest.overflowed.is_set():
                return
            largest.overflow()


class Outgoing:
    """A queue that is put into at once and taken from by one writer."""

    def __init__(
        self, budget: Budget | None = None, *, byte_limit: int = BACKLOG_LIMIT, frame_limit: int = FRAME_LIMIT
    ) -> None:
        self._budget = budget or Budget()
        self._budget.join(self)
        self._byte_limit = byte_limit
        self._frame_limit = frame_limit
        self._waiting: deque[bytes] = deque()
        self._held: deque[bytes] = deque()
        self._holders = 0
        self._queued = 0
        self._in_flight = 0
        self._news = anyio.Event()
        self._idle = anyio.Event()
        self.overflowed = anyio.Event()
        """Set once more was to be sent than may wait; what waited is forgotten, and nothing is taken any more."""

    def __repr__(self) -> str:
        return f"<Outgoing frames={len(self._waiting) + len(self._held)} bytes={self.backlog}>"

    @property
    def backlog(self) -> int:
        """Bytes that were put and not yet written."""
        return self._queued + self._in_flight

    def put(self, frame: bytes, *, first: bool = False) -> None:
        """Queue a frame. `first`: before what is held back, as an answer goes before the news that it makes."""
        if self.overflowed.is_set():
            return
        if self.backlog and self._is_full(len(frame)):
            self.overflow()
            return
        self._budget.make_room(len(frame))
        if self.overflowed.is_set():
            return
        self._queued += len(frame)
        if self._holders and not first:
            self._held.append(frame)
        else:
            self._waiting.append(frame)
            self._news.set()

    @contextmanager
    def holding(self) -> Iterator[None]:
        """While the block runs, everything but answers waits: the answer reaches the client first."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            if not self._holders and self._held:
                self._waiting.extend(self._held)
                self._held.clear()
                self._news.set()

    async def take(self) -> list[bytes]:
        """All that waits, once something does; to be told to `written` when it was."""
        while not self._waiting:
            self._news = anyio.Event()
            await self._news.wait()
        frames = list(self._waiting)
        self._waiting.clear()
        size = sum(map(len, frames))
        self._queued -= size
        self._in_flight += size
        return frames

    def written(self) -> None:
        """What was taken has left."""
        self._in_flight = 0
        if not self.backlog:
            self._idle.set()
            self._idle = anyio.Event()

    async def flushed(self) -> None:
        """Return once nothing waits any more."""
        while self.backlog:
            await self._idle.wait()

    def overflow(self) -> None:
        self._waiting.clear()
        self._held.clear()
        self._queued = 0
        self._idle.set()
        self.overflowed.set()

    def close(self) -> None:
        """Nobody will read what waits."""
        self.overflow()
        self._budget.leave(self)

    def _is_full(self, size: int) -> bool:
        return self.backlog + size > self._byte_limit or len(self._waiting) + len(self._held) >= self._frame_limit
