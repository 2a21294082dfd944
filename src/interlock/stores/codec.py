"""Events as rows: kind, version, JSON payload.

Owns: the stored shape of every event and of what it holds; the versions of those shapes.
Never: drops what it does not know: an unknown kind, a newer version or a broken payload refuses the
event, names its place, and leaves the row alone.

A change of a shape raises the version of its kind, but for a new member that may be absent: what was stored before it
is read as before. Adding a kind needs no change elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from interlock.stores import json_text
from interlock.stores.question_shapes import HELD_REQUEST, QUESTION
from interlock.stores.shapes import ANY, BOOLEAN, INTEGER, OBJECT, OPTIONAL_TEXT, TEXT, Many, OneOf, Record, Union
from interlock.vocabulary import conversation, event, item
from interlock.vocabulary.errors import InvalidRequest, StorageFailed
from interlock.vocabulary.event import Event, StoredEvent
from interlock.vocabulary.tool import ToolResult


class Row(NamedTuple):
    """What is stored of an event besides its place."""

    kind: str
    version: int
    payload: str


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of event: its name in the store, the newest version of its shape, the shape."""

    name: str
    version: int
    record: Record[Any]


EFFECT = OneOf(("none", "done", "unknown"))
ANSWERER = OneOf(("user", "reviewer", "policy", "nobody"))
PART = Union(
    {
        conversation.TextPart: ("text", Record(conversation.TextPart, {"text": TEXT})),
        conversation.MediaPart: (
            "media",
            Record(
                conversation.MediaPart,
                {"kind": OneOf(("image", "audio", "file")), "data": TEXT, "mime_type": TEXT, "name": TEXT},
            ),
        ),
    }
)
ENTRY = Union(
    {
        conversation.UserEntry: ("user", Record(conversation.UserEntry, {"content": Many(PART)})),
        conversation.AssistantEntry: ("assistant", Record(conversation.AssistantEntry, {"text": TEXT})),
        conversation.CallEntry: (
            "call",
            Record(conversation.CallEntry, {"call_id": TEXT, "name": TEXT, "arguments": TEXT}),
        ),
        conversation.OutputEntry: (
            "output",
            Record(conversation.OutputEntry, {"call_id": TEXT, "content": Many(PART), "success": BOOLEAN}),
        ),
        conversation.OpaqueEntry: (
            "opaque",
            Record(conversation.OpaqueEntry, {"provider": TEXT, "payload": OBJECT}),
        ),
    }
)
USAGE = Record(
    conversation.Usage,
    {
        "input_tokens": INTEGER,
        "cached_input_tokens": INTEGER,
        "output_tokens": INTEGER,
        "reasoning_output_tokens": INTEGER,
    },
)
TOOL_RESULT = Record(
    ToolResult,
    {"content": Many(OBJECT), "structured_content": ANY, "is_error": BOOLEAN, "meta": OBJECT},
)
ITEM_ERROR = Record(item.ItemError, {"code": TEXT, "message": TEXT, "effect": EFFECT})
CALL_ITEM = Record(
    item.McpToolCallItem,
    {
        "id": TEXT,
        "server": TEXT,
        "tool": TEXT,
        "public_name": TEXT,
        "arguments": ANY,
        "status": OneOf(("in_progress", "completed", "failed")),
        "connector_id": TEXT,
        "link_id": TEXT,
        "mcp_app_resource_uri": TEXT,
        "app_name": TEXT,
        "action_name": TEXT,
        "plugin_id": TEXT,
        "read_only_hint": BOOLEAN,
        "result": TOOL_RESULT,
        "error": ITEM_ERROR,
        "duration": INTEGER,
    },
)
MESSAGE_ITEM = Union(
    {
        item.UserMessageItem: ("user", Record(item.UserMessageItem, {"id": TEXT, "content": Many(PART)})),
        item.AgentMessageItem: (
            "agent",
            Record(item.AgentMessageItem, {"id": TEXT, "text": TEXT, "citation": OBJECT, "plan": TEXT}),
        ),
    }
)
TURN_OPTIONS = Record(
    event.TurnOptions, {"instructions": TEXT, "output_schema": OBJECT, "plan_mode": BOOLEAN, "max_steps": INTEGER}
)

KINDS: Final[Mapping[type, Kind]] = {
    event.ThreadStarted: Kind(
        "thread_started", 1, Record(event.ThreadStarted, {"name": TEXT, "model": TEXT, "forked_from": TEXT})
    ),
    event.ThreadNamed: Kind("thread_named", 1, Record(event.ThreadNamed, {"name": OPTIONAL_TEXT})),
    event.ThreadArchived: Kind("thread_archived", 1, Record(event.ThreadArchived, {"archived": BOOLEAN})),
    event.ThreadAnnotated: Kind("thread_annotated", 1, Record(event.ThreadAnnotated, {"key": TEXT, "value": OBJECT})),
    event.ThreadRolledBack: Kind("thread_rolled_back", 1, Record(event.ThreadRolledBack, {"turns": INTEGER})),
    event.ThreadCompacted: Kind(
        "thread_compacted",
        1,
        Record(
            event.ThreadCompacted,
            {"summary": TEXT, "entries": Many(ENTRY), "origins": OBJECT, "turn_id": TEXT, "usage": USAGE},
        ),
    ),
    event.TurnStarted: Kind(
        "turn_started",
        1,
        Record(event.TurnStarted, {"turn_id": TEXT, "input": Many(PART), "model": TEXT, "implicit": BOOLEAN}),
    ),
    event.TurnEnded: Kind(
        "turn_ended",
        1,
        Record(
            event.TurnEnded,
            {
                "turn_id": TEXT,
                "status": OneOf(("in_progress", "completed", "failed", "interrupted")),
                "error": TEXT,
                "last_message": TEXT,
            },
        ),
    ),
    event.StepCaptured: Kind(
        "step_captured",
        1,
        Record(
            event.StepCaptured,
            {
                "turn_id": TEXT,
                "step_id": TEXT,
                "generation": INTEGER,
                "revision": INTEGER,
                "tools": Many(TEXT),
                "pending": Many(TEXT),
                "same_tools_as": TEXT,
            },
        ),
    ),
    event.EntriesRecorded: Kind(
        "entries_recorded", 1, Record(event.EntriesRecorded, {"turn_id": TEXT, "entries": Many(ENTRY)})
    ),
    event.MessageCompleted: Kind(
        "message_completed", 1, Record(event.MessageCompleted, {"turn_id": TEXT, "item": MESSAGE_ITEM})
    ),
    event.CallStarted: Kind(
        "call_started", 1, Record(event.CallStarted, {"turn_id": TEXT, "step_id": TEXT, "item": CALL_ITEM})
    ),
    event.CallEnded: Kind(
        "call_ended",
        1,
        Record(event.CallEnded, {"turn_id": TEXT, "step_id": TEXT, "item": CALL_ITEM, "effect": EFFECT}),
    ),
    event.UsageRecorded: Kind("usage_recorded", 1, Record(event.UsageRecorded, {"turn_id": TEXT, "usage": USAGE})),
    event.InputRequested: Kind(
        "input_requested",
        1,
        Record(
            event.InputRequested,
            {
                "turn_id": TEXT,
                "call_id": TEXT,
                "request": HELD_REQUEST,
                "questions": Many(QUESTION),
                "turn": TURN_OPTIONS,
            },
        ),
    ),
    event.InputSent: Kind("input_sent", 1, Record(event.InputSent, {"turn_id": TEXT, "call_id": TEXT})),
    event.QuestionAsked: Kind("question_asked", 1, Record(event.QuestionAsked, {"question": QUESTION})),
    event.QuestionAnswered: Kind(
        "question_answered",
        1,
        Record(
            event.QuestionAnswered,
            {
                "question_id": TEXT,
                "server": TEXT,
                "action": OneOf(("accept", "decline", "cancel")),
                "by": ANSWERER,
                "content": OBJECT,
                "remember": OneOf(("once", "session", "always")),
                "question": QUESTION,
            },
        ),
    ),
    event.QuestionWithdrawn: Kind(
        "question_withdrawn", 1, Record(event.QuestionWithdrawn, {"question_id": TEXT, "server": TEXT, "reason": TEXT})
    ),
    event.QuestionDeclined: Kind(
        "question_declined",
        1,
        Record(
            event.QuestionDeclined,
            {"question_id": TEXT, "server": TEXT, "by": ANSWERER, "reason": TEXT, "question": QUESTION},
        ),
    ),
}
"""Every kind of event, by its type."""

_BY_NAME: Final[Mapping[str, Kind]] = {kind.name: kind for kind in KINDS.values()}


def encode(event: Event) -> Row:
    """The stored form of an event; InvalidRequest when it holds what JSON cannot carry (NaN, say)."""
    kind = KINDS[type(event)]
    try:
        return Row(kind.name, kind.version, json_text.dumps(kind.record.write(event)))
    except ValueError as error:
        raise InvalidRequest(
            f"cannot store the event '{kind.name}': {error}; pass values that JSON can carry", kind=kind.name
        ) from error


def decode(thread_id: str, sequence: int, at: int, row: Row) -> StoredEvent:
    """The event of a stored row; StorageFailed naming the place when this version cannot read it."""
    try:
        return StoredEvent(thread_id=thread_id, sequence=sequence, at=at, event=_read(row))
    except ValueError as error:
        raise StorageFailed(
            f"cannot read event {sequence} of thread '{thread_id}': {error}; nothing was changed",
            thread_id=thread_id,
            sequence=sequence,
        ) from error


def _read(row: Row) -> Event:
    if row.kind not in _BY_NAME:
        raise ValueError(f"its kind '{row.kind}' is unknown here, open it with a newer interlock")
    kind = _BY_NAME[row.kind]
    if row.version != kind.version:
        raise ValueError(
            f"its kind '{row.kind}' has version {row.version} and this interlock reads version {kind.version},"
            " open it with the interlock that wrote it or a newer one"
        )
    try:
        read: Event = kind.record.read(json_text.loads(row.payload))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its payload is broken ({error}), restore the store from a copy") from error
    return read
