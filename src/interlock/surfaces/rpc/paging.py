"""Pages of lists that are at hand.

Owns: what a cursor means: the identity of an entry, and whether the page begins with it or after it.
Never: keeps a list between two pages; entries that came or went meanwhile do not shift the rest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from interlock.vocabulary.errors import InvalidRequest

DEFAULT_LIMIT: Final = 25
MAXIMUM_LIMIT: Final = 100

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice(Generic[Entry]):
    """One page. `backwards` leads back over the page when it is read in the other direction, its first included."""

    entries: tuple[Entry, ...]
    next_cursor: str | None
    backwards: str | None


def slice_of(
    entries: Sequence[Entry],
    identity: Callable[[Entry], str],
    *,
    cursor: str | None,
    limit: int | None,
    maximum: int = MAXIMUM_LIMIT,
) -> Slice[Entry]:
    """The page of `entries` at `cursor`, in the order in which they are given. A limit of 0 counts as 1.

    Raises:
        InvalidRequest: the cursor names no entry.
    """
    start = 0 if cursor is None else _place(entries, identity, cursor)
    size = min(max(1, DEFAULT_LIMIT if limit is None else limit), maximum)
    page = tuple(entries[start : start + size])
    more = start + size < len(entries)
    return Slice(
        entries=page,
        next_cursor=f"after:{identity(page[-1])}" if more else None,
        backwards=f"from:{identity(page[0])}" if page else None,
    )


def _place(entries: Sequence[Entry], identity: Callable[[Entry], str], cursor: str) -> int:
    kind, _, wanted = cursor.partition(":")
    if kind in ("after", "from"):
        for index, entry in enumerate(entries):
            if identity(entry) == wanted:
                return index + (kind == "after")
    raise InvalidRequest(f"invalid cursor {cursor[:200]!r}: it names nothing in this list (any more)")
