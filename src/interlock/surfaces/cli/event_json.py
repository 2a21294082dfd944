"""Stored events as JSON for programs.

Owns: the shape of an event on a line: type, thread_id, sequence, at, then the event's own members as they are stored.
Never: leaves a member out.
"""

import json
from typing import Any

from interlock.stores.codec import encode
from interlock.vocabulary.event import StoredEvent


def event_json(stored: StoredEvent) -> dict[str, Any]:
    """`at` is milliseconds since the Unix epoch; members that are None are absent, as in the store."""
    row = encode(stored.event)
    place = {"type": row.kind, "thread_id": stored.thread_id, "sequence": stored.sequence, "at": stored.at}
    members: dict[str, Any] = json.loads(row.payload)
    return place | members
