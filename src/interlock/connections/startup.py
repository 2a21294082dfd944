"""Which states a server may pass through, and when a failed one is tried again.

Owns: the state table (BEHAVIOUR section 3), the backoff and the circuit breaker, as frozen values.
Never: reads a clock, rolls dice or starts anything; times (seconds, any one origin) and random numbers are passed in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from interlock.vocabulary.server import ServerStatus

MOVES: Final[Mapping[ServerStatus, frozenset[ServerStatus]]] = MappingProxyType(
    {
        ServerStatus.NOT_STARTED: frozenset({ServerStatus.STARTING, ServerStatus.CLOSED}),
        ServerStatus.STARTING: frozenset(
            {
                ServerStatus.READY,
                ServerStatus.FAILED,
                ServerStatus.CANCELLED,
                ServerStatus.AUTHENTICATION_REQUIRED,
            }
        ),
        ServerStatus.READY: frozenset({ServerStatus.FAILED, ServerStatus.CLOSED}),
        ServerStatus.FAILED: frozenset({ServerStatus.STARTING, ServerStatus.CLOSED}),
        ServerStatus.AUTHENTICATION_REQUIRED: frozenset({ServerStatus.STARTING, ServerStatus.CLOSED}),
        ServerStatus.CANCELLED: frozenset(),
        ServerStatus.CLOSED: frozenset(),
        ServerStatus.DISABLED: frozenset(),
    }
)


class IllegalMove(ValueError):
    """A state was to be left for one that the table does not allow; nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where a server is, since when, and why. `reason` is a sentence for people."""

    status: ServerStatus = ServerStatus.NOT_STARTED
    reason: str | None = None
    since: float = 0.0

    def moved(self, status: ServerStatus, *, at: float, reason: str | None = None) -> "State":
        """The state after a move.

        Raises:
            IllegalMove: the table does not allow it.
        """
        if status not in MOVES[self.status]:
            raise IllegalMove(f"a server cannot go from {self.status.value} to {status.value}")
        return State(status=status, reason=reason, since=at)

    @property
    def over(self) -> bool:
        """Whether nothing can follow."""
        return not MOVES[self.status]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How long to wait before the next try: `first` seconds, doubling up to `limit`, jittered."""

    first: float = 0.5
    limit: float = 30.0

    def delay(self, attempt: int, randomness: float) -> float:
        """Seconds before try number `attempt` (from 0); `randomness` is in [0, 1).

        Half of the delay is certain, half is random: servers that died together come back apart.
        """
        doublings = min(attempt, 64)  # beyond, the limit holds for any first delay above a nanosecond
        whole = min(self.limit, self.first * 2.0**doublings)
        return whole * (0.5 + 0.5 * randomness)


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """Stops the tries of a server that fails again and again.

    Opens after `threshold` failures within `window` seconds; `rest` seconds later it is half open:
    one try is allowed, and its failure opens it again at once.
    """

    threshold: int = 5
    window: float = 60.0
    rest: float = 60.0
    failures: tuple[float, ...] = ()
    opened_at: float | None = None

    def failed(self, at: float) -> "Breaker":
        """After a failure. A half-open breaker opens again, whatever the count."""
        recent = (*(time for time in self.failures if at - time < self.window), at)[-self.threshold :]
        tripped = self.opened_at is not None or len(recent) >= self.threshold
        return replace(self, failures=recent, opened_at=at if tripped else None)

    def recovered(self) -> "Breaker":
        """After a server has proved to be stable: nothing is held against it."""
        return replace(self, failures=(), opened_at=None)

    def wait(self, now: float) -> float:
        """Seconds until a try is allowed; 0 when closed or half open."""
        if self.opened_at is None:
            return 0.0
        return max(0.0, self.opened_at + self.rest - now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """When a failing server is tried again: the backoff and the breaker together.

    `attempts` counts failures in a row. A life of at least the breaker's window ends the row: a server that completes
    its handshake and dies at once is failing, not recovering.
    """

    backoff: Backoff = Backoff()
    breaker: Breaker = Breaker()
    attempts: int = 0

    def failed(self, at: float, *, lived: float = 0.0) -> "Recovery":
        """After a start that failed, or the end of a server that had been ready for `lived` seconds."""
        stable = lived >= self.breaker.window
        breaker = (self.breaker.recovered() if stable else self.breaker).failed(at)
        return replace(self, breaker=breaker, attempts=1 if stable else self.attempts + 1)

    def delay(self, now: float, randomness: float) -> float:
        """Seconds from `now` until the next try."""
        if self.attempts == 0:
            return 0.0
        return max(self.breaker.wait(now), self.backoff.delay(self.attempts - 1, randomness))

    @property
    def given_up(self) -> bool:
        """Whether the breaker is what holds the next try back."""
        return self.breaker.opened_at is not None
