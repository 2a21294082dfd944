"""A Thread as its events make it.

Owns: how each event changes turns, items, the model's history and what is still open.
Never: decides what happens next, waits, or refuses a stored event: odd history stays readable (HIS-8).

`Fold` is the mutable builder inside the Journal, one step per event; `ThreadState` is the frozen view
that others hold. The same events always make equal states (HIS-1).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import assert_never

from interlock.vocabulary.conversation import CallEntry, Entry, OutputEntry, Part, Usage
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    EntriesRecorded,
    MessageCompleted,
    QuestionAnswered,
    QuestionAsked,
    QuestionDeclined,
    QuestionWithdrawn,
    StepCaptured,
    StoredEvent,
    ThreadNamed,
    ThreadStarted,
    TurnEnded,
    TurnStarted,
    TurnStatus,
    UsageRecorded,
)
from interlock.vocabulary.item import ThreadItem
from interlock.vocabulary.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnState:
    """One Turn: its items in the order in which they began. Times are milliseconds since the Unix epoch."""

    turn_id: str
    status: TurnStatus = "in_progress"
    implicit: bool = False
    input: tuple[Part, ...] = ()
    model: str | None = None
    items: tuple[ThreadItem, ...] = ()
    usage: Usage = field(default_factory=Usage)
    error: str | None = None
    last_message: str | None = None
    started_at: int = 0
    ended_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadState:
    """A Thread after `last_sequence` events.

    `entries` is the model's history; `unanswered` are its function calls that have no output yet
    (a model accepts no history with such calls: after an interruption, outputs are recorded for
    them). `open_calls` are started and not ended; `open_turn` is the running Turn's id: both found at
    a start, they were interrupted (LIF-1). `used_call_ids` are all that ever began (LIF-8).
    `open_questions` were asked and neither answered nor withdrawn nor declined, oldest first (QST-9).
    """

    thread_id: str
    last_sequence: int = 0
    name: str | None = None
    model: str | None = None
    forked_from: str | None = None
    created_at: int | None = None
    updated_at: int | None = None
    turns: tuple[TurnState, ...] = ()
    entries: tuple[Entry, ...] = ()
    unanswered: tuple[CallEntry, ...] = ()
    usage: Usage = field(default_factory=Usage)
    open_turn: str | None = None
    open_calls: tuple[CallStarted, ...] = ()
    used_call_ids: frozenset[str] = frozenset()
    open_questions: tuple[Question, ...] = ()

    @property
    def exists(self) -> bool:
        return self.last_sequence > 0


class _Turn:
    """A Turn being built; its view is kept while nothing changes, so that old Turns cost nothing."""

    __slots__ = ("_items", "_places", "_view", "facts")

    def __init__(self, turn_id: str) -> None:
        self.facts = TurnState(turn_id=turn_id)
        self._items: list[ThreadItem] = []
        self._places: dict[str, int] = {}
        self._view: TurnState | None = None

    def put(self, item: ThreadItem) -> None:
        """Add an item, or replace the item of the same id."""
        place = self._places.get(item.id)
        if place is None:
            self._places[item.id] = len(self._items)
            self._items.append(item)
        else:
            self._items[place] = item
        self._view = None

    def know(self, facts: TurnState) -> None:
        self.facts = facts
        self._view = None

    def view(self) -> TurnState:
        if self._view is None:
            self._view = replace(self.facts, items=tuple(self._items))
        return self._view


class Fold:
    """Builds a ThreadState event by event; each step costs the same however long the history is."""

    def __init__(self, thread_id: str) -> None:
        self.last_sequence = 0
        self._facts = ThreadState(thread_id=thread_id)
        self._updated_at: int | None = None
        self._turns: dict[str, _Turn] = {}
        self._entries: list[Entry] = []
        self._unanswered: dict[str, CallEntry] = {}
        self._open_calls: dict[str, CallStarted] = {}
        self._used_call_ids: set[str] = set()
        self._open_questions: dict[str, Question] = {}
        self._view: ThreadState | None = None

    @property
    def open_turn(self) -> str | None:
        return self._facts.open_turn

    def has_turn(self, turn_id: str) -> bool:
        return turn_id in self._turns

    def is_used(self, call_id: str) -> bool:
        return call_id in self._used_call_ids

    def is_open(self, call_id: str) -> bool:
        return call_id in self._open_calls

    @property
    def state(self) -> ThreadState:
        """The frozen view; made when asked for, and kept until the next event."""
        if self._view is None:
            self._view = replace(
                self._facts,
                last_sequence=self.last_sequence,
                updated_at=self._updated_at,
                turns=tuple([turn.view() for turn in self._turns.values()]),
                entries=tuple(self._entries),
                unanswered=tuple(self._unanswered.values()),
                open_calls=tuple(self._open_calls.values()),
                used_call_ids=frozenset(self._used_call_ids),
                open_questions=tuple(self._open_questions.values()),
            )
        return self._view

    def apply(self, stored: StoredEvent) -> None:
        self._view = None
        self.last_sequence, self._updated_at = stored.sequence, stored.at
        event = stored.event
        match event:
            case ThreadStarted():
                self._start(event, stored.at)
            case ThreadNamed():
                self._facts = replace(self._facts, name=event.name)
            case TurnStarted():
                self._start_turn(event, stored.at)
            case TurnEnded():
                self._end_turn(event, stored.at)
            case EntriesRecorded():
                self._add_entries(event.entries)
            case MessageCompleted():
                self._turn(event.turn_id).put(event.item)
            case CallStarted():
                self._start_call(event)
            case CallEnded():
                self._end_call(event)
            case UsageRecorded():
                self._add_usage(event)
            case QuestionAsked():
                self._open_questions[event.question.id] = event.question
            case QuestionAnswered() | QuestionWithdrawn() | QuestionDeclined():
                self._open_questions.pop(event.question_id, None)
            case StepCaptured():
                pass  # what a Step saw explains calls; it changes nothing
            case _:
                assert_never(event)

    def _turn(self, turn_id: str) -> _Turn:
        """The Turn of that id; a stored event may speak of one whose start was never stored."""
        if turn_id not in self._turns:
            self._turns[turn_id] = _Turn(turn_id)
        return self._turns[turn_id]

    def _start(self, event: ThreadStarted, at: int) -> None:
        self._facts = replace(
            self._facts, name=event.name, model=event.model, forked_from=event.forked_from, created_at=at
        )

    def _start_turn(self, event: TurnStarted, at: int) -> None:
        turn = self._turn(event.turn_id)
        turn.know(replace(turn.facts, implicit=event.implicit, input=event.input, model=event.model, started_at=at))
        self._facts = replace(self._facts, open_turn=event.turn_id, model=event.model or self._facts.model)

    def _end_turn(self, event: TurnEnded, at: int) -> None:
        turn = self._turn(event.turn_id)
        turn.know(
            replace(turn.facts, status=event.status, error=event.error, last_message=event.last_message, ended_at=at)
        )
        if self._facts.open_turn == event.turn_id:
            self._facts = replace(self._facts, open_turn=None)

    def _add_entries(self, entries: tuple[Entry, ...]) -> None:
        self._entries.extend(entries)
        for entry in entries:
            match entry:
                case CallEntry():
                    self._unanswered[entry.call_id] = entry
                case OutputEntry():
                    self._unanswered.pop(entry.call_id, None)
                case _:
                    pass

    def _start_call(self, event: CallStarted) -> None:
        self._used_call_ids.add(event.item.id)
        self._open_calls[event.item.id] = event
        self._turn(event.turn_id).put(event.item)

    def _end_call(self, event: CallEnded) -> None:
        self._used_call_ids.add(event.item.id)
        self._open_calls.pop(event.item.id, None)
        self._turn(event.turn_id).put(event.item)

    def _add_usage(self, event: UsageRecorded) -> None:
        turn = self._turn(event.turn_id)
        turn.know(replace(turn.facts, usage=turn.facts.usage + event.usage))
        self._facts = replace(self._facts, usage=self._facts.usage + event.usage)


def fold(thread_id: str, events: Iterable[StoredEvent]) -> ThreadState:
    """The state after all of `events`, from the first."""
    folding = Fold(thread_id)
    for stored in events:
        folding.apply(stored)
    return folding.state
