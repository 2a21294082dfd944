"""The order of the events of a Thread as they come out of a store.

Owns: the check that nothing is missing between two events; the refusal of an event out of its place.
Never: repairs.
"""

from collections.abc import Iterable, Iterator

from interlock.vocabulary.errors import StorageFailed
from interlock.vocabulary.event import StoredEvent


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


def moved_on(thread_id: str, after: int, last: int) -> StorageFailed:
    """The refusal of an append after `after` to a Thread whose last event is `last`."""
    return StorageFailed(
        f"cannot store event {after + 1} of thread '{thread_id}': its last stored event is {last},"
        " somebody else wrote it; open the thread again",
        thread_id=thread_id,
        last_sequence=last,
    )
