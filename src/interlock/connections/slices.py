"""How long the data of one server may hold the event loop.

Owns: the length of a turn, and the work that is under way in turns.
Never: knows what the work is, or hands it to a thread: what is slow here holds the interpreter's lock there too.

A server decides how many tools it lists; the other servers, cancellations and clients shall not wait for that.
"""

import time
from collections.abc import Callable
from typing import Final

import anyio.lowlevel

from interlock.connections.collector import REST
from interlock.vocabulary.slices import Outcome, Sliced

TURN: Final = 0.005
"""Seconds of the event loop that all work in slices takes together before the others have their turn."""


class Turns:
    """The work that is under way. The turns of works side by side are shorter, so that together they take one TURN."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._works = 0

    async def do(self, work: Sliced[Outcome]) -> Outcome:
        """The outcome of `work`. It ends early, between two steps, when the caller is cancelled."""
        self._works += 1
        large = False
        try:
            over = self._clock() + TURN / self._works
            while True:
                next(work)
                if self._clock() >= over:
                    if not large:
                        large = True
                        REST.begin()
                    await anyio.lowlevel.checkpoint()
                    over = self._clock() + TURN / self._works
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome
        finally:
            self._works -= 1
            if large:
                REST.end()
            work.close()


class Pace:
    """The turns of a loop that waits for bytes, and may find some every time without ever having waited."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._over = clock() + TURN

    async def step(self) -> None:
        """Between two rounds of the loop."""
        if self._clock() >= self._over:
            await anyio.lowlevel.checkpoint()
            self._over = self._clock() + TURN


TURNS: Final = Turns()
"""Those of this process: work of several event loops shares one interpreter anyway."""


async def in_slices(work: Sliced[Outcome]) -> Outcome:
    """The outcome of `work`, in turns with everything else that the event loop has to do."""
    return await TURNS.do(work)
