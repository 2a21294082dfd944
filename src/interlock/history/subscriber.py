"""One listener of a Journal.

Owns: the bounded queue between the Thread and one subscriber, and the count of what it missed.
Never: makes the Thread wait (HIS-6).
"""

from collections import deque

import anyio

from interlock.vocabulary.event import StoredEvent
from interlock.vocabulary.notice import LaggedNotice

QUEUE_LIMIT = 1024
"""Events that wait for a subscriber. One more, and all of them are dropped for one LaggedNotice."""


class Subscriber:
    """An async iterator for one reader. `tell` and `end` are called by the Journal and never wait."""

    def __init__(self) -> None:
        self._queue: deque[StoredEvent] = deque()
        self._missed = 0
        self._ended = False
        self._news = anyio.Event()

    def tell(self, stored: StoredEvent) -> None:
        if len(self._queue) >= QUEUE_LIMIT:
            self._missed += len(self._queue)
            self._queue.clear()
        self._queue.append(stored)
        self._news.set()

    def end(self) -> None:
        self._ended = True
        self._news.set()

    def __aiter__(self) -> "Subscriber":
        return self

    async def __anext__(self) -> StoredEvent | LaggedNotice:
        while not self._queue:  # events are missed only when newer ones wait
            if self._ended:
                raise StopAsyncIteration
            self._news = anyio.Event()
            await self._news.wait()
        if self._missed:
            missed, self._missed = self._missed, 0
            return LaggedNotice(missed=missed)
        return self._queue.popleft()
