"""A Thread as its events make it.

Owns: how each event changes turns, items, the model's history and what is still open.
Never: decides what happens next, waits, or refuses a stored event: odd history stays readable (HIS-8).

`Fold` is the mutable builder inside the Journal, one step per event; `ThreadState` is the frozen view
that others hold. The same events always make equal states (HIS-1), whether all of them were folded or the
last ones on top of a checkpoint.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from interlock.history.entries import Mark, ModelHistory
from interlock.vocabulary.conversation import CallEntry, Entry, Usage
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    EntriesRecorded,
    InputRequested,
    InputSent,
    MessageCompleted,
    QuestionAnswered,
    QuestionAsked,
    QuestionDeclined,
    QuestionWithdrawn,
    StepCaptured,
    StoredEvent,
    ThreadAnnotated,
    ThreadArchived,
    ThreadCompacted,
    ThreadNamed,
    ThreadRolledBack,
    ThreadStarted,
    TurnEnded,
    TurnStarted,
    UsageRecorded,
)
from interlock.vocabulary.item import ThreadItem
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.lazy import Lazy
from interlock.vocabulary.question import Question
from interlock.vocabulary.thread import (
    Compaction,
    HeldCall,
    KeptTurn,
    ThreadCheckpoint,
    ThreadState,
    TurnState,
    compaction_id,
)

__all__ = ["Fold", "ThreadState", "TurnState", "fold"]


class _Turn:
    """A Turn being built; its view is kept while nothing changes, so that old Turns cost nothing."""

    __slots__ = ("_facts", "_items", "_places", "_view", "mark")

    def __init__(self, mark: Mark, view: Lazy[TurnState]) -> None:
        self.mark = mark
        self._view: Lazy[TurnState] | None = view
        self._facts: TurnState | None = None
        self._items: list[ThreadItem] = []
        self._places: dict[str, int] = {}

    @property
    def facts(self) -> TurnState:
        """Everything but the items, which are kept apart while the Turn changes."""
        if self._facts is None:
            self._facts = self.view().get()
            self._items = list(self._facts.items)
            self._places = {item.id: place for place, item in enumerate(self._items)}
        return self._facts

    def put(self, item: ThreadItem) -> None:
        """Add an item, or replace the item of the same id."""
        self.know(self.facts)
        place = self._places.get(item.id)
        if place is None:
            self._places[item.id] = len(self._items)
            self._items.append(item)
        else:
            self._items[place] = item

    def compact(self, compaction_id: str) -> None:
        facts = self.facts
        compaction = Compaction(id=compaction_id, place=len(self._items))
        self.know(replace(facts, compactions=(*facts.compactions, compaction)))

    def know(self, facts: TurnState) -> None:
        self._facts, self._view = facts, None

    def view(self) -> Lazy[TurnState]:
        if self._view is None:
            self._view = Lazy.of(replace(self.facts, items=tuple(self._items)))
        return self._view


class Fold:
    """Builds a ThreadState event by event; each step costs the same however long the history is."""

    def __init__(self, thread_id: str, checkpoint: ThreadCheckpoint | None = None) -> None:
        """Begin with nothing, or after the events of `checkpoint`."""
        facts = checkpoint.facts if checkpoint is not None else ThreadState(thread_id=thread_id)
        self.last_sequence = facts.last_sequence
        self._facts = facts
        self._updated_at = facts.updated_at
        self._turns = {turn.turn_id: _kept(turn) for turn in checkpoint.turns} if checkpoint is not None else {}
        parts = checkpoint.parts if checkpoint is not None else ()
        self._history = ModelHistory(parts, facts.unanswered, facts.context_tokens)
        self._open_calls = {started.item.id: started for started in facts.open_calls}
        self._used_call_ids = set(facts.used_call_ids)
        self._held_calls = {held.call_id: held for held in facts.held_calls}
        self._open_questions: dict[str, Question] = {question.id: question for question in facts.open_questions}
        self._view: ThreadState | None = None

    @property
    def exists(self) -> bool:
        """Whether the Thread has any event yet."""
        return self.last_sequence > 0

    @property
    def open_turn(self) -> str | None:
        return self._facts.open_turn

    @property
    def name(self) -> str | None:
        return self._facts.name

    @property
    def model(self) -> str | None:
        return self._facts.model

    @property
    def turn_count(self) -> int:
        return len(self._turns)

    @property
    def turn_ids(self) -> tuple[str, ...]:
        """Those that were not rolled back, in the order in which they began."""
        return tuple(self._turns)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The model's history, without the work that `state` is."""
        return self._history.entries

    @property
    def unanswered(self) -> tuple[CallEntry, ...]:
        return self._history.unanswered

    @property
    def context_tokens(self) -> int:
        return self._history.tokens

    def turn(self, turn_id: str) -> TurnState | None:
        """The view of one Turn, without the work that `state` is; None: there is none."""
        turn = self._turns.get(turn_id)
        return None if turn is None else turn.view().get()

    def has_turn(self, turn_id: str) -> bool:
        return turn_id in self._turns

    def is_used(self, call_id: str) -> bool:
        return call_id in self._used_call_ids

    def is_open(self, call_id: str) -> bool:
        return call_id in self._open_calls

    @property
    def facts(self) -> ThreadState:
        """The state without turns and entries: what is still open, at no cost for what is long over."""
        return replace(
            self._facts,
            last_sequence=self.last_sequence,
            updated_at=self._updated_at,
            unanswered=self._history.unanswered,
            context_tokens=self._history.tokens,
            open_calls=tuple(self._open_calls.values()),
            held_calls=tuple(self._held_calls.values()),
            used_call_ids=frozenset(self._used_call_ids),
            open_questions=tuple(self._open_questions.values()),
        )

    @property
    def state(self) -> ThreadState:
        """The frozen view; made when asked for, and kept until the next event."""
        if self._view is None:
            turns = tuple([turn.view().get() for turn in self._turns.values()])
            self._view = replace(self.facts, turns=turns, entries=self._history.entries)
        return self._view

    def checkpoint(self, followers: Mapping[str, JsonObject] | None = None) -> ThreadCheckpoint:
        """What another Fold may begin with instead of all events so far."""
        turns = [
            KeptTurn(turn_id=turn_id, part=turn.mark.part, entries=turn.mark.entries, state=turn.view())
            for turn_id, turn in self._turns.items()
        ]
        return ThreadCheckpoint(
            facts=self.facts, turns=tuple(turns), parts=self._history.keep(), followers=followers or {}
        )

    def apply(self, stored: StoredEvent) -> None:
        self._view = None
        self.last_sequence, self._updated_at = stored.sequence, stored.at
        event = stored.event
        match event:
            case CallStarted():  # first, as most events are of calls
                self._start_call(event)
            case CallEnded():
                self._end_call(event)
            case ThreadStarted() | ThreadNamed() | ThreadArchived() | ThreadAnnotated():
                self._know(event, stored.at)
            case ThreadRolledBack():
                self._roll_back(event.turns)
            case ThreadCompacted():
                self._compact(event)
            case TurnStarted():
                self._start_turn(event, stored.at)
            case TurnEnded():
                self._end_turn(event, stored.at)
            case EntriesRecorded():
                self._history.record(event.entries)
            case MessageCompleted():
                self._turn(event.turn_id).put(event.item)
            case UsageRecorded():
                self._spend(event.turn_id, event.usage)
                self._history.sampled(event.usage)
            case InputRequested():
                self._held_calls[event.call_id] = HeldCall(requested=event)
            case InputSent():
                self._held_calls.pop(event.call_id, None)
            case QuestionAsked() | QuestionAnswered() | QuestionWithdrawn() | QuestionDeclined():
                self._question(event)
            case StepCaptured():
                pass  # what a Step saw explains calls; it changes nothing
            case _:
                assert_never(event)

    def _turn(self, turn_id: str) -> _Turn:
        """The Turn of that id; a stored event may speak of one whose start was never stored."""
        if turn_id not in self._turns:
            self._turns[turn_id] = _Turn(self._history.mark, Lazy.of(TurnState(turn_id=turn_id)))
        return self._turns[turn_id]

    def _know(self, event: ThreadStarted | ThreadNamed | ThreadArchived | ThreadAnnotated, at: int) -> None:
        match event:
            case ThreadStarted():
                self._facts = replace(
                    self._facts, name=event.name, model=event.model, forked_from=event.forked_from, created_at=at
                )
            case ThreadNamed():
                self._facts = replace(self._facts, name=event.name)
            case ThreadArchived():
                self._facts = replace(self._facts, archived=event.archived)
            case ThreadAnnotated():
                annotations = {**self._facts.annotations, event.key: event.value}
                self._facts = replace(self._facts, annotations=annotations)

    def _roll_back(self, count: int) -> None:
        dropped = list(self._turns)[max(0, len(self._turns) - count) :]
        if not dropped:
            return
        self._history.roll_back(self._turns[dropped[0]].mark)
        for turn_id in dropped:
            del self._turns[turn_id]
        if self._facts.open_turn in dropped:
            self._facts = replace(self._facts, open_turn=None)
        self._open_calls = {i: call for i, call in self._open_calls.items() if call.turn_id not in dropped}
        self._held_calls = {i: h for i, h in self._held_calls.items() if h.requested.turn_id not in dropped}
        self._open_questions = {i: q for i, q in self._open_questions.items() if q.turn_id not in dropped}

    def _compact(self, event: ThreadCompacted) -> None:
        if event.usage is not None:
            self._spend(event.turn_id, event.usage)
        if event.turn_id is not None:
            self._turn(event.turn_id).compact(compaction_id(event.turn_id, self.last_sequence))
        self._history.compact(event.entries)

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

    def _start_call(self, event: CallStarted) -> None:
        self._used_call_ids.add(event.item.id)
        self._open_calls[event.item.id] = event
        self._turn(event.turn_id).put(event.item)

    def _end_call(self, event: CallEnded) -> None:
        self._used_call_ids.add(event.item.id)
        self._open_calls.pop(event.item.id, None)
        self._held_calls.pop(event.item.id, None)
        self._turn(event.turn_id).put(event.item)

    def _question(self, event: QuestionAsked | QuestionAnswered | QuestionWithdrawn | QuestionDeclined) -> None:
        if isinstance(event, QuestionAsked):
            question_id = event.question.id
            self._open_questions[question_id] = event.question
        else:
            question_id = event.question_id
            self._open_questions.pop(question_id, None)
        for call_id, held in self._held_calls.items():
            if any(question.id == question_id for question in held.requested.questions):
                others = tuple(settled for settled in held.settled if settled.question_id != question_id)
                ends = () if isinstance(event, QuestionAsked) else (event,)
                self._held_calls[call_id] = replace(held, settled=(*others, *ends))

    def _spend(self, turn_id: str | None, usage: Usage) -> None:
        self._facts = replace(self._facts, usage=self._facts.usage + usage)
        if turn_id is not None:
            turn = self._turn(turn_id)
            turn.know(replace(turn.facts, usage=turn.facts.usage + usage))


def _kept(turn: KeptTurn) -> _Turn:
    return _Turn(Mark(turn.part, turn.entries), turn.state)


def fold(thread_id: str, events: Iterable[StoredEvent]) -> ThreadState:
    """The state after all of `events`, from the first."""
    folding = Fold(thread_id)
    for stored in events:
        folding.apply(stored)
    return folding.state
