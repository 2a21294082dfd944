"""The one rule by which a listing is read to its end.

Owns: which cursor is asked for next, when a listing is over, and its bounds (CAT-1).
Never: sends a request, looks into an entry, or keeps a deadline; the caller does.
"""

from dataclasses import dataclass, replace
from typing import Final

from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonValue

MAXIMUM_PAGES: Final = 100
MAXIMUM_ITEMS: Final = 100_000
MAXIMUM_CURSOR_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PageWalk:
    """A walk through the pages of one listing.

        walk = PageWalk(server="docs", method="resources/list")
        while not walk.done:
            page = ...                                    # ask for walk.cursor (None: the first page)
            walk = walk.fed(len(entries), page.get("nextCursor"))

    Only a missing or null cursor ends a listing; the empty string is a cursor like any other
    (specification: pagination), but servers exist that mean "no more" by it, so it is followed once
    and ends the listing when it comes back.
    """

    server: str
    method: str
    cursor: str | None = None
    done: bool = False
    pages: int = 0
    items: int = 0
    seen: frozenset[str] = frozenset()

    def fed(self, count: int, next_cursor: JsonValue) -> "PageWalk":
        """The walk after a page of `count` entries whose nextCursor was `next_cursor` (None: null or missing).

        Raises:
            ServerFailed: kind "protocol"; a bound was passed or a cursor came twice.
        """
        items = self.items + count
        if items > MAXIMUM_ITEMS:
            raise self._refused(f"it has more than {MAXIMUM_ITEMS:,} items")
        read = replace(self, pages=self.pages + 1, items=items)
        if next_cursor is None or (next_cursor == "" and "" in self.seen):
            return replace(read, cursor=None, done=True)
        cursor = self._checked(next_cursor)
        if read.pages >= MAXIMUM_PAGES:
            raise self._refused(f"it has more than {MAXIMUM_PAGES} pages")
        return replace(read, cursor=cursor, seen=self.seen | {cursor})

    def _checked(self, cursor: JsonValue) -> str:
        if not isinstance(cursor, str):
            raise self._refused("its nextCursor is not a string")
        if len(cursor.encode("utf-8", "surrogatepass")) > MAXIMUM_CURSOR_BYTES:
            raise self._refused("its nextCursor is longer than 64 KiB")
        if cursor in self.seen:
            raise self._refused("its nextCursor came twice, so it would never end")
        return cursor

    def _refused(self, reason: str) -> ServerFailed:
        return ServerFailed(
            f"cannot read {self.method} of server {self.server!r}: {reason}; the server must mend its paging",
            server=self.server,
            kind="protocol",
        )
