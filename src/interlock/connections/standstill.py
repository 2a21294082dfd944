"""Time that does not count.

Owns: the spans in which the deadlines of one Thread's calls stand still (CON-11), and deadlines that mind them.
Never: waits, or knows why time stands still.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from interlock.connections.clock import now
from interlock.vocabulary.ports import Standstill


class Spans:
    """The port Standstill. Belongs to one event loop."""

    def __init__(self) -> None:
        self._open = 0
        self._began = 0.0
        self._past = 0.0
        self._waiting: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<Spans open={self._open}>"

    @property
    def seconds(self) -> float:
        return self._past + (now() - self._began if self._open else 0.0)

    def at_end(self, then: Callable[[], None]) -> bool:
        if self._open:
            self._waiting.append(then)
        return self._open > 0

    def span(self) -> "Span":
        """Time stands still while the block runs; blocks may overlap."""
        return Span(self)

    def begin(self) -> None:
        if not self._open:
            self._began = now()
        self._open += 1

    def end(self) -> None:
        self._open -= 1
        if not self._open:
            self._past += now() - self._began
            waiting, self._waiting = self._waiting, []
            for then in waiting:
                then()


class Span:
    """A block in which time stands still. No generator: one that is dropped with its event loop must do nothing."""

    __slots__ = ("_spans",)

    def __init__(self, spans: Spans) -> None:
        self._spans = spans

    def __enter__(self) -> None:
        self._spans.begin()

    def __exit__(self, *error: object) -> None:
        self._spans.end()


class Deadline:
    """A moment that moves on by what does not count. `at` is on anyio's clock."""

    __slots__ = ("_at", "_standstill", "_stood")

    def __init__(self, at: float, standstill: Standstill | None) -> None:
        self._at = at
        self._standstill = standstill
        self._stood = 0.0 if standstill is None else standstill.seconds

    def __repr__(self) -> str:
        return f"<Deadline in {self.remaining():.3f} s>"

    def remaining(self) -> float:
        """Seconds from now on, if nothing stands still from now on."""
        return self._at - now() + self._owed()

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """The time that the block takes does not count."""
        began, owed = now(), self._owed()
        try:
            yield
        finally:
            self._at += now() - began - (self._owed() - owed)  # what stood still anyhow counts once

    def _owed(self) -> float:
        return 0.0 if self._standstill is None else self._standstill.seconds - self._stood
