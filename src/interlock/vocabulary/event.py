"""The stored facts of a Thread.

Owns: the kinds of events and the envelope in which they are stored.
Never: encodes them (the codec lives in `stores`) or orders them (the Journal does).

Every event belongs to one Thread and has a sequence number there, from 1 without a gap. History,
items, origins and usage are folds of events and nothing else (HIS-1, HIS-5).
"""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from interlock.vocabulary.construction import quickly_made
from interlock.vocabulary.conversation import Entry, Part, Usage
from interlock.vocabulary.errors import Effect
from interlock.vocabulary.item import AgentMessageItem, McpToolCallItem, UserMessageItem
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.question import Answerer, HeldRequest, Question, Remember

TurnStatus = Literal["in_progress", "completed", "failed", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadStarted:
    """First event of every Thread."""

    name: str | None = None
    model: str | None = None
    forked_from: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadNamed:
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadArchived:
    """The Thread was put away, or taken back; nothing else changes."""

    archived: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadAnnotated:
    """What an application keeps with the Thread under a key of its own, in place of what it kept there before.

    The host never looks into it. A rollback leaves it; a fork takes along what was kept until then.
    """

    key: str
    value: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRolledBack:
    """The last `turns` Turns do not count any more: their items, entries and origins are gone (HIS-3, ORI-6).

    What was compacted in or after them is as it was before the first of them. Call ids stay used.
    """

    turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadCompacted:
    """From here on `entries` are the model's history; items stay (HIS-4).

    `summary` is the model's own, raw. `origins` is the checkpoint of the origins as JSON (ORI-7). `turn_id`: the
    turn in which it happened; None between two turns. `usage` is what the summary took.
    """

    summary: str
    entries: tuple[Entry, ...]
    origins: JsonObject = field(default_factory=dict[str, Any])
    turn_id: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """A Turn began. `implicit`: opened by a Step outside any Turn (bring your own loop)."""

    turn_id: str
    input: tuple[Part, ...] = ()
    model: str | None = None
    implicit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
    """A Turn ended, once (TRN-1). `error` is a sentence when it failed."""

    turn_id: str
    status: TurnStatus
    error: str | None = None
    last_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCaptured:
    """What a Step saw: the generation, the catalogue's revision, its public names and the servers still starting.

    `same_tools_as`: the id of an earlier Step of the Thread that saw the same names; `tools` is empty then, so that ten
    thousand names are not stored with each sampling. `history.shown` tells the names of each.
    """

    turn_id: str
    step_id: str
    generation: int
    revision: int
    tools: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    same_tools_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesRecorded:
    """Entries appended to the model's history, in order."""

    turn_id: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCompleted:
    """A message that people see is finished: the user's or the model's."""

    turn_id: str
    item: UserMessageItem | AgentMessageItem


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """Stored before the call's request is sent (LIF-4); `item.status` is in_progress."""

    turn_id: str
    step_id: str
    item: McpToolCallItem


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """Exactly one for every CallStarted (LIF-1); `item` is whole again, completed or failed."""

    turn_id: str
    step_id: str
    item: McpToolCallItem
    effect: Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRecorded:
    """Tokens of one sampling."""

    turn_id: str
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOptions:
    """What a Turn was begun with besides its input and its model."""

    instructions: str = ""
    output_schema: JsonObject | None = None
    plan_mode: bool = False
    max_steps: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequested:
    """A server of 2026-07-28 wants answers before it goes on with a call; any host can give them (QST-9).

    `questions` belong to `request.keys`, in order. Until the InputSent or the end of the call, the call waits for
    people and for nothing else.
    """

    turn_id: str
    call_id: str
    request: HeldRequest
    questions: tuple[Question, ...]
    turn: TurnOptions = field(default_factory=TurnOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSent:
    """All answers of the call's last InputRequested are there; stored before they go out with the request (LIF-4)."""

    turn_id: str
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked:
    """Stored before the audience is told; the question is open until one of the other three names it (QST-9).

    Stored again where a host ended before an answer, whose content is not stored, had reached the server.
    """

    question: Question


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswered:
    """An answer was accepted and goes to whoever asked. `question`: set where no people were asked before.

    `content` of an accepted form is None unless the policy stores it (Policy.store_answers).
    """

    question_id: str
    server: str
    action: Literal["accept", "decline", "cancel"]
    by: Answerer
    content: JsonObject | None = None
    remember: Remember = "once"
    question: Question | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionWithdrawn:
    """An open question is no longer needed; `reason` is a sentence (QST-5)."""

    question_id: str
    server: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionDeclined:
    """Declined without anybody's answer: by policy, because a reviewer failed, or because nobody listens (QST-2,
    QST-4). `question`: set where no people were asked before."""

    question_id: str
    server: str
    by: Answerer
    reason: str
    question: Question | None = None


Event: TypeAlias = (
    ThreadStarted
    | ThreadNamed
    | ThreadArchived
    | ThreadAnnotated
    | ThreadRolledBack
    | ThreadCompacted
    | TurnStarted
    | TurnEnded
    | StepCaptured
    | EntriesRecorded
    | MessageCompleted
    | CallStarted
    | CallEnded
    | UsageRecorded
    | InputRequested
    | InputSent
    | QuestionAsked
    | QuestionAnswered
    | QuestionWithdrawn
    | QuestionDeclined
)


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    """An event with its place: `at` is milliseconds since the Unix epoch."""

    thread_id: str
    sequence: int
    at: int
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRecord:
    """What the store's index says of a Thread; made from its events, for lists.

    `updated_at` is the time of its newest event, where that is not the start or the end of a call; in between it is
    that time or the one of the newest event before. `last_sequence` is always that of the newest event.
    """

    thread_id: str
    created_at: int
    updated_at: int
    name: str | None = None
    preview: str = ""
    """The beginning of the first user message, at most 200 characters."""
    model: str | None = None
    turns: int = 0
    last_sequence: int = 0
    archived: bool = False
