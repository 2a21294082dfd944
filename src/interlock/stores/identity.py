"""Thread ids that every database can hold.

Owns: the check of an id that came from a caller.
Never: knows which Threads exist.
"""

from functools import lru_cache

from interlock.stores.summary import storable
from interlock.vocabulary.errors import InvalidRequest

MAXIMUM_LENGTH = 200


@lru_cache(maxsize=1024)  # every append asks
def checked(thread_id: str) -> str:
    """The id itself; InvalidRequest when no store could hold it."""
    if not 0 < len(thread_id) <= MAXIMUM_LENGTH or storable(thread_id) != thread_id:
        raise InvalidRequest(
            f"cannot use {thread_id[:40]!r} as a thread id; use 1 to {MAXIMUM_LENGTH} characters of Unicode text",
            thread_id=thread_id[:40],
        )
    return thread_id
