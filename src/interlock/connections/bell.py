"""Waking all who wait for something to happen, or to change.

Owns: what happens once, with the futures of those who wait for it; the bell that rings again and again.
Never: makes a future when nobody waits, or remembers a ring: woken or not, read the owner's state again.

A cancel scope around an event waits just as well, and takes thirty calls more; a connection that opens waits often.
"""

import asyncio
from math import inf

from interlock.connections.callbacks import callback_context


class Once:
    """Something that happens once, and has happened from then on. All on one event loop."""

    __slots__ = ("_happened", "_waiting")

    def __init__(self) -> None:
        self._happened = False
        self._waiting: list[asyncio.Future[None]] | None = None

    def __repr__(self) -> str:
        return f"<Once {'happened' if self._happened else 'not yet'}>"

    def set(self) -> None:
        """It happens."""
        self._happened = True
        waiting, self._waiting = self._waiting, None
        for future in waiting or ():
            _wake(future)

    def is_set(self) -> bool:
        return self._happened

    async def wait(self, deadline: float = inf) -> None:
        """Return once it has happened, or at `deadline`, a time of the event loop's clock."""
        await first_of(self, deadline=deadline)

    def _join(self, future: "asyncio.Future[None]") -> None:
        if self._waiting is None:
            self._waiting = []
        self._waiting.append(future)

    def _leave(self, future: "asyncio.Future[None]") -> None:
        if self._waiting is not None:
            self._waiting.remove(future)


async def first_of(*awaited: Once, deadline: float = inf) -> None:
    """Return once one of them has happened, or at `deadline`; at once if one has happened already."""
    for one in awaited:
        if one.is_set():
            return
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    timer = None if deadline == inf else loop.call_at(deadline, _wake, future, context=callback_context())
    for one in awaited:
        one._join(future)
    try:
        await future
    finally:
        if timer is not None:
            timer.cancel()
        for one in awaited:
            one._leave(future)


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class Bell:
    """`next_ring` returns at the next `ring`, whoever waits. All on one event loop."""

    __slots__ = ("_ring",)

    def __init__(self) -> None:
        self._ring: Once | None = None

    def ring(self) -> None:
        ring, self._ring = self._ring, None
        if ring is not None:
            ring.set()

    async def next_ring(self, deadline: float = inf) -> None:
        """Return at the next ring, or at `deadline`, a time of the event loop's clock."""
        if self._ring is None:
            self._ring = Once()
        await self._ring.wait(deadline)
