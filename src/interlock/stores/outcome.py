"""Waiting for something that is carried out whether or not anybody waits.

Owns: the one place where a cancellation is put off until an outcome is known, and then delivered.
Never: starts or stops the work.
"""

import asyncio
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


class Outcome(Generic[T]):
    """A result or an error that is set once and waited for once, on one event loop.

    A cancel scope of anyio is shielded off while waiting. A bare `task.cancel()` (asyncio.timeout,
    a TaskGroup of asyncio) is caught, counted back, and given again once the outcome is known: the
    waiter learns what became of its request and is cancelled at its next wait.
    """

    __slots__ = ("_error", "_loop", "_result", "_settled", "_waiter")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._settled = False
        self._result: T | None = None
        self._error: Exception | None = None

    def settle_from_thread(self, result: T | Exception) -> None:
        self._loop.call_soon_threadsafe(self.settle, result)

    def settle(self, result: T | Exception) -> None:
        if isinstance(result, Exception):
            self._error = result
        else:
            self._result = result
        self._settled = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self) -> T:
        with anyio.CancelScope(shield=True):
            interrupted = await self._wait_through_cancellation()
        if interrupted:
            _cancel_again()
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value] # settled without an error: a T

    async def _wait_through_cancellation(self) -> bool:
        interrupted = False
        while not self._settled:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            except asyncio.CancelledError:
                interrupted = True
        return interrupted


def _cancel_again() -> None:
    """Cancel the running task at its next wait, without adding to the count that asyncio.timeout compares."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
        task.cancel()
