"""The order of the events of a Thread as they go into a store and come out of it.

Owns: the numbers of new events; the check that nothing is missing between two; the refusal of one out of its place.
Never: repairs.
"""

from collections.abc import Iterable, Iterator, Sequence

from interlock.vocabulary.errors import StorageFailed
from interlock.vocabulary.event import Event, StoredEvent, ThreadRecord


def contiguous(thread_id: str, after: int, events: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
    """The events, as long as each has the number that follows; StorageFailed naming the first gap."""
    for expected, stored in enumerate(events, after + 1):
        if stored.sequence != expected:
            raise StorageFailed(
                f"cannot read thread '{thread_id}': its event {expected} is missing; restore the store from a copy",
                thread_id=thread_id,
                sequence=expected,
            )
        yield stored


def numbered(thread_id: str, after: int, at: int, events: Sequence[Event]) -> tuple[StoredEvent, ...]:
    """The events with their places: those that follow `after`."""
    if len(events) == 1:  # most appends
        return (StoredEvent(thread_id=thread_id, sequence=after + 1, at=at, event=events[0]),)
    return tuple(
        StoredEvent(thread_id=thread_id, sequence=sequence, at=at, event=event)
        for sequence, event in enumerate(events, after + 1)
    )


def moved_on(thread_id: str, after: int, last: int) -> StorageFailed:
    """The refusal of an append after `after` to a Thread whose last event is `last`."""
    return StorageFailed(
        f"cannot store event {after + 1} of thread '{thread_id}': its last stored event is {last},"
        " somebody else wrote it; open the thread again",
        thread_id=thread_id,
        last_sequence=last,
    )


def gone(thread_id: str, last: int) -> StorageFailed:
    """The refusal to copy the events up to `last` of a Thread that has not all of them."""
    return StorageFailed(
        f"cannot copy thread '{thread_id}': its events up to {last} are not stored any more; somebody has deleted it",
        thread_id=thread_id,
        last_sequence=last,
    )


def incomplete(record: ThreadRecord) -> StorageFailed:
    """The refusal to list a Thread whose events are not all there, or that is listed already."""
    return StorageFailed(
        f"cannot list thread '{record.thread_id}': not exactly its events 1 to {record.last_sequence} are stored, "
        "or it is listed already; store it again",
        thread_id=record.thread_id,
        last_sequence=record.last_sequence,
    )
