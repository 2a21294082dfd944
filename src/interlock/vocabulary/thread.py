"""A Thread as it is after some of its events, and what saves folding them again.

Owns: the shapes of a Turn's state, of a call that waits for people, of a Thread's state, and a checkpoint of them.
Never: makes one; `history.fold` does, from events and nothing else (HIS-1, HIS-5).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from interlock.vocabulary.conversation import CallEntry, Entry, Part, Usage
from interlock.vocabulary.event import (
    CallStarted,
    InputRequested,
    QuestionAnswered,
    QuestionDeclined,
    QuestionWithdrawn,
    TurnStatus,
)
from interlock.vocabulary.item import ThreadItem
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.lazy import Lazy
from interlock.vocabulary.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """The model's history was replaced by a summary after `place` items of a Turn (HIS-4); no item for itself."""

    id: str
    place: int


def compaction_id(turn_id: str, sequence: int) -> str:
    """Of the compaction that is stored under that number, in that turn."""
    return f"{turn_id}-{sequence}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnState:
    """One Turn: its items in the order in which they began. Times are milliseconds since the Unix epoch."""

    turn_id: str
    status: TurnStatus = "in_progress"
    implicit: bool = False
    input: tuple[Part, ...] = ()
    model: str | None = None
    items: tuple[ThreadItem, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    usage: Usage = field(default_factory=Usage)
    error: str | None = None
    last_message: str | None = None
    started_at: int = 0
    ended_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCall:
    """A call that waits for people and can be gone on with by any host (QST-9); `settled` are the ends of its questions
    so far."""

    requested: InputRequested
    settled: tuple[QuestionAnswered | QuestionDeclined | QuestionWithdrawn, ...] = ()

    @property
    def call_id(self) -> str:
        return self.requested.call_id


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadState:
    """A Thread after `last_sequence` events.

    `entries` is the model's history; `unanswered` are its function calls that have no output yet
    (a model accepts no history with such calls: after an interruption, outputs are recorded for
    them). `open_calls` are started and not ended; `open_turn` is the running Turn's id: both found at
    a start, they were interrupted (LIF-1), unless they are among the `held_calls`, which wait for people (QST-9).
    `used_call_ids` are all that ever began (LIF-8).
    `open_questions` were asked and neither answered nor withdrawn nor declined, oldest first (QST-9).
    `context_tokens` is about how many tokens the next sampling would take in. `usage` counts what was
    rolled back too: it was spent. `annotations` are what applications keep, by their keys.
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
    held_calls: tuple[HeldCall, ...] = ()
    used_call_ids: frozenset[str] = frozenset()
    open_questions: tuple[Question, ...] = ()
    context_tokens: int = 0
    archived: bool = False
    annotations: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])

    @property
    def exists(self) -> bool:
        return self.last_sequence > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTurn:
    """A Turn in a checkpoint. Where the model's history stood when it began: `part`, and entries of that part."""

    turn_id: str
    part: int
    entries: int
    state: Lazy[TurnState]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPart:
    """A part of the model's history, which a compaction ended or the present does; `length` in entries."""

    length: int
    entries: Lazy[tuple[Entry, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadCheckpoint:
    """All that the first `facts.last_sequence` events made; the others are folded on top.

    `facts` holds everything but turns and entries, which are kept apart so that they are made only when
    asked for. `followers` are the checkpoints of other owners' folds, by their names.
    """

    facts: ThreadState
    turns: tuple[KeptTurn, ...]
    parts: tuple[KeptPart, ...]
    followers: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
