"""The deadlines of the requests of one connection, most of which never come.

Owns: one timer for all of them, set to the earliest.
Never: knows what is waited for, or takes the timer back when a request is answered: the next one finds it set.

A timer of its own for each request costs a call as much as writing its message does.
"""

import asyncio
from math import inf
from typing import Final, Protocol

from interlock.connections.callbacks import callback_context

TICK: Final = 0.001
"""Seconds between two looks at the deadlines; so much later may one be told, however many there are."""


class Expiring(Protocol):
    def look(self) -> None:
        """Called once, when the time is over."""
        ...


class Deadlines:
    """Times are on the clock of `loop`, in seconds. All on that loop."""

    __slots__ = ("_due", "_loop", "_timer", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[Expiring, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due = inf

    def __repr__(self) -> str:
        return f"<Deadlines waiting={len(self._waiting)} due={self._due}>"

    def __contains__(self, waiter: Expiring) -> bool:
        return waiter in self._waiting

    def put(self, waiter: Expiring, deadline: float) -> None:
        """Have `waiter` look at `deadline`, in place of an earlier wish of its."""
        self._waiting[waiter] = deadline
        if deadline < self._due:
            self._set(deadline)

    def take(self, waiter: Expiring) -> bool:
        """Forget `waiter`; whether it was waiting."""
        return self._waiting.pop(waiter, None) is not None

    def close(self) -> None:
        """Let go of the timer."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._due = None, inf

    def _set(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._loop.call_at(due, self._ring, context=callback_context())

    def _ring(self) -> None:
        now = max(self._loop.time(), self._due)  # the loop is early by up to the resolution of its clock
        self._timer, self._due = None, inf
        for waiter in [waiter for waiter, deadline in self._waiting.items() if deadline <= now]:
            if self.take(waiter):
                waiter.look()
        if self._waiting:
            self._set(max(min(self._waiting.values()), now + TICK))
