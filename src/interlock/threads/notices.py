"""Notices of a Thread on their way to whoever listens.

Owns: the bounded queue of each subscriber.
Never: waits for a slow one, or stores anything: a notice only wakes people up (HIS-6).
"""

import weakref
from collections import deque

import anyio

from interlock.vocabulary.notice import LaggedNotice, Notice

QUEUE_LIMIT = 1024
"""Notices kept for one subscriber; what comes beyond is counted and told as LaggedNotice."""


class NoticeStream:
    """An async iterator over the notices published since it was made; ends when the Thread closes.

    Notices are lost for a subscriber who is too slow: it is then told how many, in their place.
    """

    def __init__(self, limit: int = QUEUE_LIMIT) -> None:
        self._queue: deque[Notice] = deque()
        self._limit = limit
        self._missed = 0
        self._ended = False
        self._changed = anyio.Event()

    def __repr__(self) -> str:
        return f"<NoticeStream waiting={len(self._queue)} missed={self._missed}>"

    def __aiter__(self) -> "NoticeStream":
        return self

    async def __anext__(self) -> Notice:
        while not self._queue and not self._missed:
            if self._ended:
                raise StopAsyncIteration
            await self._changed.wait()
        return self._next()

    def close(self) -> None:
        """End the iteration; what is queued is still delivered."""
        self._ended = True
        self._wake()

    def put(self, notice: Notice) -> None:
        if self._missed or len(self._queue) >= self._limit:
            self._missed += 1  # once lagging, nothing newer is queued before the gap is told
        else:
            self._queue.append(notice)
        self._wake()

    def _next(self) -> Notice:
        if self._queue:
            return self._queue.popleft()
        missed, self._missed = self._missed, 0
        return LaggedNotice(missed=missed)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class Notices:
    """Everybody who listens to one Thread. A stream that nobody holds any more is forgotten."""

    def __init__(self) -> None:
        self._streams: weakref.WeakSet[NoticeStream] = weakref.WeakSet()
        self._closed = False

    def __repr__(self) -> str:
        return f"<Notices subscribers={len(self._streams)}>"

    def subscribe(self, limit: int = QUEUE_LIMIT) -> NoticeStream:
        stream = NoticeStream(limit)
        if self._closed:
            stream.close()
        self._streams.add(stream)
        return stream

    def publish(self, notice: Notice) -> None:
        for stream in list(self._streams):
            stream.put(notice)

    def close(self) -> None:
        self._closed = True
        for stream in list(self._streams):
            stream.close()
