"""Work on what one server sent, in steps between which others may have their turn.

Owns: the shape of such work, and how it is done when nobody else waits.
Never: waits, or decides how long a turn is (`connections.slices` does).
"""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

Outcome = TypeVar("Outcome")

Sliced: TypeAlias = Generator[None, None, Outcome]
"""Yields after every step, an entry of a listing or so, that takes microseconds; returns the outcome."""


def at_once(work: Sliced[Outcome]) -> Outcome:
    """The outcome of `work`, where it has the event loop, or the process, to itself."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome
