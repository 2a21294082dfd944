"""A checkpoint as one value in a row.

Owns: its layout: the length of a header, the header (JSON: facts, places, lengths), then the JSON of every turn
and of every part of the model's history, one after another, each decoded only when somebody asks for it.
Never: is believed: a digest ties it to the event that it ends with, and what does not fit is not used.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from interlock.stores import json_text
from interlock.stores.codec import CALL_ITEM, ENTRY, KINDS, MESSAGE_ITEM, PART, USAGE, Row
from interlock.stores.question_shapes import QUESTION
from interlock.stores.shapes import BOOLEAN, INTEGER, OBJECT, TEXT, Many, OneOf, Record, Shape, Union
from interlock.vocabulary import conversation, item
from interlock.vocabulary.event import (
    CallStarted,
    InputRequested,
    QuestionAnswered,
    QuestionDeclined,
    QuestionWithdrawn,
)
from interlock.vocabulary.json import JsonValue
from interlock.vocabulary.lazy import Lazy
from interlock.vocabulary.thread import (
    Compaction,
    HeldCall,
    KeptPart,
    KeptTurn,
    ThreadCheckpoint,
    ThreadState,
    TurnState,
)

VERSION: Final = 3
"""Of this layout and of all shapes in it; a checkpoint of another version is made anew from the events."""

SIZE_LIMIT: Final = 256 * 1024 * 1024
"""Bytes; a larger checkpoint is not kept."""

T = TypeVar("T")
_LENGTH_BYTES: Final = 8


class _Ids:
    """A set of texts, written as a sorted array."""

    def write(self, value: Any) -> JsonValue:
        return sorted(value)

    def read(self, json: JsonValue) -> Any:
        return frozenset(Many(TEXT).read(json))


THREAD_ITEM: Final = Union(
    {
        item.McpToolCallItem: ("call", CALL_ITEM),
        item.UserMessageItem: MESSAGE_ITEM.record(item.UserMessageItem),
        item.AgentMessageItem: MESSAGE_ITEM.record(item.AgentMessageItem),
    }
)
TURN: Final = Record(
    TurnState,
    {
        "turn_id": TEXT,
        "status": OneOf(("in_progress", "completed", "failed", "interrupted")),
        "implicit": BOOLEAN,
        "input": Many(PART),
        "model": TEXT,
        "items": Many(THREAD_ITEM),
        "compactions": Many(Record(Compaction, {"id": TEXT, "place": INTEGER})),
        "usage": USAGE,
        "error": TEXT,
        "last_message": TEXT,
        "started_at": INTEGER,
        "ended_at": INTEGER,
    },
)
ENTRIES: Final = Many(ENTRY)
CALL_ENTRY: Final = Record(conversation.CallEntry, {"call_id": TEXT, "name": TEXT, "arguments": TEXT})
SETTLED: Final = Union(
    {
        type_: (KINDS[type_].name, KINDS[type_].record)
        for type_ in (QuestionAnswered, QuestionDeclined, QuestionWithdrawn)
    }
)
HELD_CALL: Final = Record(HeldCall, {"requested": KINDS[InputRequested].record, "settled": Many(SETTLED)})
FACTS: Final = Record(
    ThreadState,
    {
        "thread_id": TEXT,
        "last_sequence": INTEGER,
        "name": TEXT,
        "model": TEXT,
        "forked_from": TEXT,
        "created_at": INTEGER,
        "updated_at": INTEGER,
        "turns": Many(TURN),
        "entries": ENTRIES,
        "unanswered": Many(CALL_ENTRY),
        "usage": USAGE,
        "open_turn": TEXT,
        "open_calls": Many(KINDS[CallStarted].record),
        "held_calls": Many(HELD_CALL),
        "used_call_ids": _Ids(),
        "open_questions": Many(QUESTION),
        "context_tokens": INTEGER,
        "archived": BOOLEAN,
        "annotations": OBJECT,
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRow:
    """What is stored of a checkpoint besides its Thread."""

    sequence: int
    version: int
    digest: str
    payload: bytes


class _Encoded(Lazy[T]):
    """A value of a loaded checkpoint; as long as nothing changes it, its text is kept for the next one."""

    __slots__ = ("text",)

    def __init__(self, text: bytes, make: Callable[[], T]) -> None:
        super().__init__(make)
        self.text = text


def encode(checkpoint: ThreadCheckpoint, last: tuple[int, Row]) -> CheckpointRow:
    """The row of a checkpoint whose last event is stored as `last`, with its time. Takes time: call it in a thread."""
    turns = [_text(TURN, turn.state) for turn in checkpoint.turns]
    parts = [_text(ENTRIES, part.entries) for part in checkpoint.parts]
    kept = zip(checkpoint.turns, turns, strict=True)
    header = {
        "facts": FACTS.write(checkpoint.facts),
        "turns": [[turn.turn_id, turn.part, turn.entries, len(text)] for turn, text in kept],
        "parts": [[part.length, len(text)] for part, text in zip(checkpoint.parts, parts, strict=True)],
        "followers": checkpoint.followers,
    }
    text = json_text.dumps(header).encode()
    payload = b"".join((len(text).to_bytes(_LENGTH_BYTES, "big"), text, *turns, *parts))
    sequence = checkpoint.facts.last_sequence
    return CheckpointRow(sequence=sequence, version=VERSION, digest=_digest(payload, last), payload=payload)


def decode(thread_id: str, row: CheckpointRow, last: tuple[int, Row]) -> ThreadCheckpoint | None:
    """The checkpoint of a stored row; None when it does not fit the event or this version."""
    if row.version != VERSION or row.digest != _digest(row.payload, last):
        return None
    try:
        checkpoint = _read(memoryview(row.payload))
    except (ValueError, RecursionError):
        return None
    facts = checkpoint.facts
    return checkpoint if (facts.thread_id, facts.last_sequence) == (thread_id, row.sequence) else None


def _read(payload: memoryview) -> ThreadCheckpoint:
    start = _LENGTH_BYTES + int.from_bytes(payload[:_LENGTH_BYTES], "big")
    header = json_text.loads(str(payload[_LENGTH_BYTES:start], "utf-8"))
    lengths = [*(turn[-1] for turn in header["turns"]), *(part[-1] for part in header["parts"])]
    texts = _cut(payload, start, lengths)
    turns = tuple(
        KeptTurn(turn_id=turn_id, part=part, entries=entries, state=_encoded(TURN, next(texts)))
        for turn_id, part, entries, _ in header["turns"]
    )
    parts = tuple(KeptPart(length=length, entries=_encoded(ENTRIES, next(texts))) for length, _ in header["parts"])
    followers: Mapping[str, Any] = header["followers"]
    return ThreadCheckpoint(facts=FACTS.read(header["facts"]), turns=turns, parts=parts, followers=followers)


def _cut(payload: memoryview, start: int, lengths: list[int]) -> Iterator[bytes]:
    for length in lengths:
        yield bytes(payload[start : start + length])
        start += length


def _text(shape: Shape, value: Lazy[Any]) -> bytes:
    return value.text if isinstance(value, _Encoded) else json_text.dumps(shape.write(value.get())).encode()


def _encoded(shape: Shape, text: bytes) -> _Encoded[Any]:
    return _Encoded(text, lambda: shape.read(json_text.loads(text.decode())))


def _digest(payload: bytes, last: tuple[int, Row]) -> str:
    digest = hashlib.sha256(json_text.dumps([last[0], *last[1]]).encode())
    digest.update(payload)
    return digest.hexdigest()
