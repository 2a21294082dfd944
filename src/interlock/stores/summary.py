"""What a batch of events changes in a Thread's line of the index.

Owns: how name, preview, model, number of turns and being archived follow from events.
Never: reads or writes; both stores apply the same change with one statement.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from interlock.vocabulary.conversation import TextPart
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    Event,
    MessageCompleted,
    StoredEvent,
    ThreadArchived,
    ThreadNamed,
    ThreadRecord,
    ThreadRolledBack,
    ThreadStarted,
    TurnStarted,
)
from interlock.vocabulary.item import UserMessageItem

Text = TypeVar("Text", str, str | None)

PREVIEW_LIMIT = 200
"""Characters of the first user message (ThreadRecord.preview)."""


@dataclass(slots=True, kw_only=True)
class Change:
    """`named` tells a name taken away (None) from a name left alone. An empty preview changes nothing.

    `archived` None changes nothing either; a new Thread is not archived. `moves`: the Thread moves up in lists. The
    start and the end of a call do not move it by themselves, since they come in great number within a turn that does.
    """

    named: bool = False
    name: str | None = None
    model: str | None = None
    preview: str = ""
    turns: int = 0
    archived: bool | None = None
    moves: bool = False


def change_of(events: Sequence[Event]) -> Change:
    change = Change()
    for event in events:
        if not moves(event):
            continue
        change.moves = True
        match event:
            case ThreadStarted():
                change.named, change.name, change.model = True, storable(event.name), storable(event.model)
            case ThreadNamed():
                change.named, change.name = True, storable(event.name)
            case ThreadArchived():
                change.archived = event.archived
            case ThreadRolledBack():
                change.turns -= event.turns
            case TurnStarted():
                change.turns += 1
                change.model = storable(event.model) or change.model
                change.preview = change.preview or _preview(event.input)
            case MessageCompleted(item=UserMessageItem() as item):
                change.preview = change.preview or _preview(item.content)
            case _:
                pass
    return change


def record_after(record: ThreadRecord | None, events: Sequence[StoredEvent]) -> ThreadRecord:
    """The line after more events of its Thread, at least one; None: they are its first. As appends change it."""
    first, last = events[0], events[-1]
    if record is None:
        record = ThreadRecord(thread_id=first.thread_id, created_at=first.at, updated_at=first.at)
    change = change_of([stored.event for stored in events])
    return replace(
        record,
        updated_at=next((stored.at for stored in reversed(events) if moves(stored.event)), record.updated_at),
        name=change.name if change.named else record.name,
        preview=record.preview or change.preview,
        model=change.model or record.model,
        turns=record.turns + change.turns,
        last_sequence=last.sequence,
        archived=record.archived if change.archived is None else change.archived,
    )


def moves(event: Event) -> bool:
    """Whether the event moves its Thread up in lists (Change.moves)."""
    return not isinstance(event, CallStarted | CallEnded)


def _preview(content: Sequence[object]) -> str:
    """The first text, on one line."""
    text = next((part.text for part in content if isinstance(part, TextPart)), "")
    line = " ".join(text[: PREVIEW_LIMIT * 4].split())[:PREVIEW_LIMIT]
    return storable(line)


def storable(text: Text) -> Text:
    """The text as every database takes it in a column: NUL and lone surrogates, which it refuses, are replaced."""
    if text is None:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def line_of(record: ThreadRecord) -> tuple[str, int, int, str | None, str, str | None, int, int, bool]:
    """A whole line of the index: its columns in the order of the table."""
    return (
        record.thread_id,
        record.created_at,
        record.updated_at,
        storable(record.name),
        storable(record.preview),
        storable(record.model),
        record.turns,
        record.last_sequence,
        record.archived,
    )
