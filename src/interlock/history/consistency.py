"""What may come next in a Thread.

Owns: the rules by which a new event contradicts the history (LIF-1, LIF-8, TRN-1, HIS-3).
Never: judges stored events; those are facts, however odd.
"""

from collections.abc import Sequence
from typing import Protocol

from interlock.history.fold import Fold
from interlock.vocabulary.conversation import CallEntry
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    Event,
    ThreadCompacted,
    ThreadRolledBack,
    ThreadStarted,
    TurnEnded,
    TurnStarted,
)


def contradiction(folded: Fold, events: Sequence[Event]) -> str | None:
    """Why `events` cannot come next, in this order, or None."""
    if len(events) == 1:
        return _objection(folded, events[0])
    coming = _Coming(folded)
    for event in events:
        reason = _objection(coming, event)
        if reason is not None:
            return reason
        coming.take(event)
    return None


class _Past(Protocol):
    """What the rules ask of the history before an event."""

    @property
    def exists(self) -> bool: ...

    @property
    def open_turn(self) -> str | None: ...

    @property
    def turn_count(self) -> int: ...

    @property
    def unanswered(self) -> tuple[CallEntry, ...]: ...

    def has_turn(self, turn_id: str) -> bool: ...

    def is_used(self, call_id: str) -> bool: ...

    def is_open(self, call_id: str) -> bool: ...


def _objection(past: _Past, event: Event) -> str | None:
    """Why `event` cannot come after `past`, or None."""
    if isinstance(event, ThreadStarted) == past.exists:
        return "it has started already" if past.exists else "it has not started; record its start first"
    match event:
        case CallStarted():  # first, as most events are of calls; nothing that follows is asked of them
            return (
                f"call id '{event.item.id}' has been used before; use another" if past.is_used(event.item.id) else None
            )
        case CallEnded():
            return None if past.is_open(event.item.id) else f"call '{event.item.id}' is not running; a call ends once"
        case TurnStarted() if past.open_turn is not None:
            return f"turn '{past.open_turn}' is still running; end it first"
        case TurnStarted() if past.has_turn(event.turn_id):
            return f"turn id '{event.turn_id}' has been used before; use another"
        case TurnEnded() if past.open_turn != event.turn_id:
            return f"turn '{event.turn_id}' is not running; a turn ends once"
        case ThreadRolledBack():
            return _objection_to_roll_back(past, event.turns)
        case ThreadCompacted() if past.unanswered:
            return f"call '{past.unanswered[0].call_id}' has no output yet; record its output first"
        case _:
            return None


def _objection_to_roll_back(past: _Past, turns: int) -> str | None:
    if past.open_turn is not None:
        return f"turn '{past.open_turn}' is running, and only ended turns can be rolled back; interrupt it first"
    if not 1 <= turns <= past.turn_count:
        return f"it has fewer turns ({past.turn_count}) than shall be rolled back ({turns})"
    return None


class _Coming:
    """The history as it would be after the events taken so far: the fold, and what they add to it."""

    __slots__ = ("_ended", "_folded", "_started", "exists", "open_turn")

    def __init__(self, folded: Fold) -> None:
        self._folded = folded
        self.exists = folded.exists
        self.open_turn = folded.open_turn
        self._started: set[str] = set()
        self._ended: set[str] = set()

    @property
    def turn_count(self) -> int:
        return self._folded.turn_count

    @property
    def unanswered(self) -> tuple[CallEntry, ...]:
        return self._folded.unanswered

    def has_turn(self, turn_id: str) -> bool:
        return self._folded.has_turn(turn_id)

    def is_used(self, call_id: str) -> bool:
        return self._folded.is_used(call_id) or call_id in self._started

    def is_open(self, call_id: str) -> bool:
        return (self._folded.is_open(call_id) or call_id in self._started) and call_id not in self._ended

    def take(self, event: Event) -> None:
        self.exists = True
        match event:
            case CallStarted():
                self._started.add(event.item.id)
            case CallEnded():
                self._ended.add(event.item.id)
            case TurnStarted():
                self.open_turn = event.turn_id
            case TurnEnded():
                self.open_turn = None
            case _:
                pass
