"""What may come next in a Thread.

Owns: the rules by which a new event contradicts the history (LIF-1, LIF-8, TRN-1, HIS-3).
Never: judges stored events; those are facts, however odd.
"""

from collections.abc import Iterable

from interlock.history.fold import Fold
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


def contradiction(folded: Fold, events: Iterable[Event]) -> str | None:
    """Why `events` cannot come next, in this order, or None."""
    coming = _Coming(folded)
    for event in events:
        reason = coming.take(event)
        if reason is not None:
            return reason
    return None


class _Coming:
    """The history as it would be after the events looked at so far: the fold, and what they add to it."""

    __slots__ = ("_ended", "_exists", "_folded", "_open_turn", "_started")

    def __init__(self, folded: Fold) -> None:
        self._folded = folded
        self._exists = folded.last_sequence > 0
        self._open_turn = folded.open_turn
        self._started: set[str] = set()
        self._ended: set[str] = set()

    def take(self, event: Event) -> str | None:
        if isinstance(event, ThreadStarted) == self._exists:
            return "it has started already" if self._exists else "it has not started; record its start first"
        self._exists = True
        match event:
            case CallStarted():  # first, as most events are of calls
                return self._start_call(event.item.id)
            case CallEnded():
                return self._end_call(event.item.id)
            case TurnStarted():
                return self._start_turn(event.turn_id)
            case TurnEnded():
                return self._end_turn(event.turn_id)
            case ThreadRolledBack():
                return self._roll_back(event.turns)
            case ThreadCompacted() if self._folded.unanswered:
                return f"call '{self._folded.unanswered[0].call_id}' has no output yet; record its output first"
            case _:
                return None

    def _start_turn(self, turn_id: str) -> str | None:
        if self._open_turn is not None:
            return f"turn '{self._open_turn}' is still running; end it first"
        if self._folded.has_turn(turn_id):
            return f"turn id '{turn_id}' has been used before; use another"
        self._open_turn = turn_id
        return None

    def _end_turn(self, turn_id: str) -> str | None:
        if self._open_turn != turn_id:
            return f"turn '{turn_id}' is not running; a turn ends once"
        self._open_turn = None
        return None

    def _roll_back(self, turns: int) -> str | None:
        if self._open_turn is not None:
            return f"turn '{self._open_turn}' is running, and only ended turns can be rolled back; interrupt it first"
        if not 1 <= turns <= self._folded.turn_count:
            return f"it has fewer turns ({self._folded.turn_count}) than shall be rolled back ({turns})"
        return None

    def _start_call(self, call_id: str) -> str | None:
        if self._folded.is_used(call_id) or call_id in self._started:
            return f"call id '{call_id}' has been used before; use another"
        self._started.add(call_id)
        return None

    def _end_call(self, call_id: str) -> str | None:
        began = self._folded.is_open(call_id) or call_id in self._started
        if not began or call_id in self._ended:
            return f"call '{call_id}' is not running; a call ends once"
        self._ended.add(call_id)
        return None
