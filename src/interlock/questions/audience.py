"""Those who can be asked.

Owns: who listens to the questions of a Thread, and which questions each listener has still to be shown.
Never: answers, or keeps a question open; a listener that is slow misses nothing and holds up nobody.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import anyio

from interlock.vocabulary.question import Question

Until = Literal["turn", "thread"]

STALE = 100
"""Questions that may stand in a listener's line before those that were settled unseen are taken out."""


class Listener(AsyncIterator[Question]):
    """The open questions, old and new, each once; iterate it in one task.

    It ends with the turn (`until` "turn": the one that runs, or the next) or with the Thread.
    """

    def __init__(self, until: Until, is_open: Callable[[str], bool]) -> None:
        self.until = until
        self._is_open = is_open
        self._line: deque[Question] = deque()
        self._tidy_at = STALE
        self._ended = False
        self._woken = anyio.Event()

    def __repr__(self) -> str:
        return f"<Listener until={self.until} waiting={self.waiting} ended={self._ended}>"

    @property
    def waiting(self) -> int:
        """Questions that have still to be shown, and a few that were settled meanwhile."""
        return len(self._line)

    def __aiter__(self) -> "Listener":
        return self

    async def __anext__(self) -> Question:
        while True:
            while self._line:
                question = self._line.popleft()
                if self._is_open(question.id):
                    return question
            if self._ended:
                raise StopAsyncIteration
            self._woken = anyio.Event()
            await self._woken.wait()

    def put(self, question: Question) -> None:
        if len(self._line) >= self._tidy_at:
            self._line = deque(waiting for waiting in self._line if self._is_open(waiting.id))
            self._tidy_at = max(STALE, 2 * len(self._line))  # else a long line of open ones is walked for each new one
        self._line.append(question)
        self._woken.set()

    def end(self) -> None:
        self._ended = True
        self._woken.set()


class Listeners:
    """All listeners of one Thread. `is_open` tells whether a question can still be answered."""

    def __init__(self, is_open: Callable[[str], bool]) -> None:
        self._is_open = is_open
        self._all: list[Listener] = []

    def __len__(self) -> int:
        return len(self._all)

    @contextmanager
    def listening(self, until: Until, already_open: tuple[Question, ...]) -> Iterator[Listener]:
        """Be one of those who can be asked while the block runs."""
        listener = Listener(until, self._is_open)
        for question in already_open:
            listener.put(question)
        self._all.append(listener)
        try:
            yield listener
        finally:
            self._all.remove(listener)

    def tell(self, question: Question) -> None:
        for listener in self._all:
            listener.put(question)

    def turn_ended(self) -> None:
        for listener in self._all:
            if listener.until == "turn":
                listener.end()

    def thread_ended(self) -> None:
        for listener in self._all:
            listener.end()
