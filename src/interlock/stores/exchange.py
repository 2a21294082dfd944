"""Threads as lines of JSON, to be taken elsewhere and back.

Owns: the shape of a line: thread_id, sequence, at, kind, version, payload as in the store.
Never: reads a line that this version does not understand as something else.
"""

from typing import Any

from interlock.stores import json_text
from interlock.stores.codec import Row, decode, encode
from interlock.vocabulary.errors import InvalidRequest, StorageFailed
from interlock.vocabulary.event import StoredEvent

LINE_LIMIT = 64 * 1024 * 1024
"""Characters of one line; events are bounded far below."""


def to_line(stored: StoredEvent) -> str:
    """One event, without the newline."""
    row = encode(stored.event)
    place = {"thread_id": stored.thread_id, "sequence": stored.sequence, "at": stored.at}
    return json_text.dumps({**place, "kind": row.kind, "version": row.version, "payload": json_text.loads(row.payload)})


def from_line(line: str, number: int) -> StoredEvent:
    """The event of a line; `number` names it in errors.

    Raises:
        InvalidRequest: the line is not one of an export, or of a version that this one does not read.
    """
    if len(line) > LINE_LIMIT:
        raise InvalidRequest(f"cannot import line {number}: it has more than {LINE_LIMIT} characters")
    try:
        members = json_text.loads(line)
        return decode(_text(members, "thread_id"), _whole(members, "sequence"), _whole(members, "at"), _row(members))
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise InvalidRequest(f"cannot import line {number}: it is no line of an export ({error})") from error
    except StorageFailed as error:
        raise InvalidRequest(f"cannot import line {number}: {error.message}") from error


def _row(members: Any) -> Row:
    return Row(_text(members, "kind"), _whole(members, "version"), json_text.dumps(members["payload"]))


def _text(members: Any, name: str) -> str:
    if not isinstance(members[name], str):
        raise ValueError(f"member '{name}' is no text")
    return str(members[name])


def _whole(members: Any, name: str) -> int:
    if type(members[name]) is not int or not 0 <= members[name] < 2**63:
        raise ValueError(f"member '{name}' is no whole number")
    return int(members[name])
