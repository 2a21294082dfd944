"""Waking all who wait for something to change.

Owns: the one event that those who wait now share.
Never: makes one when nobody waits, or remembers a ring: woken or not, read the owner's state again.
"""

import anyio


class Bell:
    """`next_ring` returns at the next `ring`, whoever waits. All on one event loop."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: anyio.Event | None = None

    def ring(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.set()

    async def next_ring(self) -> None:
        if self._waiting is None:
            self._waiting = anyio.Event()
        await self._waiting.wait()
