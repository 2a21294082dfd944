"""Work on what one server sent, in steps between which others may have their turn.

Owns: the shape of such work, and how it is done when nobody else waits.
Never: waits, or decides how long a turn is (`connections.slices` does).
"""

from collections.abc import Callable, Generator, Iterable
from typing import TypeAlias, TypeVar

Entry = TypeVar("Entry")
Outcome = TypeVar("Outcome")

Sliced: TypeAlias = Generator[None, None, Outcome]
"""Yields after every step, an entry of a listing or so, that takes microseconds; returns the outcome."""


def each(function: Callable[[Entry], Outcome], entries: Iterable[Entry]) -> Sliced[list[Outcome]]:
    """What `function` makes of every entry."""
    made: list[Outcome] = []
    for entry in entries:
        made.append(function(entry))
        yield
    return made


def at_once(work: Sliced[Outcome]) -> Outcome:
    """The outcome of `work`, where it has the event loop, or the process, to itself."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome
