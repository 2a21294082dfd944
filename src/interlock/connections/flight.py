"""One question under way, one answer for all who have it.

Owns: the operation that is under way, and who joins it.
Never: gives an answer to somebody who came after it went out of date, or lets one caller's end be another's.
"""

from collections.abc import Awaitable, Callable
from math import inf
from typing import Generic, TypeVar

from interlock.connections.bell import Once

Answer = TypeVar("Answer")


class Flight(Generic[Answer]):
    """Callers of `join` share one run of an operation; whoever comes first runs it in its own task.

    If that one is cancelled or fails, the next one runs the operation again: an error belongs to the deadline and the
    cancellation of the caller that met it.
    """

    def __init__(self) -> None:
        self._landed: Once | None = None
        self._answers: dict[Once, Answer] = {}
        self._waiting: dict[Once, int] = {}

    def outdated(self) -> None:
        """Who comes from now on does not join what is under way."""
        self._landed = None

    async def join(self, operation: Callable[[], Awaitable[Answer]], *, deadline: float = inf) -> Answer:
        """The answer of the run that is under way, or of an own one.

        Raises:
            TimeoutError: the run of somebody else was not over by `deadline`, a time of the event loop's clock. An own
                run keeps its deadline itself.
        """
        while (landed := self._landed) is not None:
            self._waiting[landed] = self._waiting.get(landed, 0) + 1
            try:
                await landed.wait(deadline)
                if not landed.is_set():
                    raise TimeoutError
                if landed in self._answers:
                    return self._answers[landed]
            finally:
                self._left(landed)
        return await self._lead(operation)

    async def _lead(self, operation: Callable[[], Awaitable[Answer]]) -> Answer:
        landed = self._landed = Once()
        try:
            answer = await operation()
            if landed in self._waiting:
                self._answers[landed] = answer
            return answer
        finally:
            if self._landed is landed:
                self._landed = None
            landed.set()

    def _left(self, landed: Once) -> None:
        self._waiting[landed] -= 1
        if not self._waiting[landed]:
            del self._waiting[landed]
            self._answers.pop(landed, None)
