"""The index of Threads, asked through SQLAlchemy: the same questions to SQLite and PostgreSQL.

Owns: the queries behind `find`, `threads`, `memory_uses` and `unlisted`.
Never: writes.
"""

from typing import Any

from sqlalchemy import Row, Select, func, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncEngine

from interlock.stores.schema import events
from interlock.stores.schema import memory_uses as uses
from interlock.stores.schema import threads as table
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.event import ThreadRecord
from interlock.vocabulary.memory import MemoryUse

MAXIMUM_PAGE = 1000


_LAST = select(func.max(events.c.sequence)).where(events.c.thread_id == table.c.thread_id).scalar_subquery()
_LINE: Select[Any] = select(
    *[column for column in table.c if column is not table.c.last_sequence],
    func.coalesce(_LAST, table.c.last_sequence).label("last_sequence"),
)
"""A line of the index as it is now: what moves no Thread in lists is in its events only (summary.Change.moves)."""

_UNLISTED = text("""
    WITH RECURSIVE ids (thread_id) AS (
        SELECT min(thread_id) FROM events UNION ALL
        SELECT (SELECT min(e.thread_id) FROM events AS e WHERE e.thread_id > ids.thread_id)
        FROM ids WHERE ids.thread_id IS NOT NULL)
    SELECT thread_id FROM ids WHERE thread_id IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM threads WHERE threads.thread_id = ids.thread_id)""")
"""From id to id by the events' key: a look for each Thread, and none for each event."""


async def find(engine: AsyncEngine, thread_id: str) -> ThreadRecord | None:
    async with engine.connect() as connection:
        row = (await connection.execute(_LINE.where(table.c.thread_id == thread_id))).one_or_none()
    return None if row is None else _record(row)


async def threads(
    engine: AsyncEngine, *, limit: int, before: int | None, before_id: str | None, archived: bool | None
) -> tuple[ThreadRecord, ...]:
    _check(limit)
    query = _page(before, before_id).limit(limit)
    if archived is not None:
        query = query.where(table.c.archived.is_(archived))
    async with engine.connect() as connection:
        rows = await connection.execute(query)
    return tuple(_record(row) for row in rows)


async def memory_uses(engine: AsyncEngine, *, limit: int) -> tuple[MemoryUse, ...]:
    _check(limit)
    query = select(uses).order_by(uses.c.uses.desc(), uses.c.last_used_at.desc(), uses.c.thread_id).limit(limit)
    async with engine.connect() as connection:
        rows = await connection.execute(query)
    return tuple(MemoryUse(**row._mapping) for row in rows)


async def unlisted(engine: AsyncEngine) -> tuple[str, ...]:
    async with engine.connect() as connection:
        return tuple(row[0] for row in await connection.execute(_UNLISTED))


def _check(limit: int) -> None:
    if not 1 <= limit <= MAXIMUM_PAGE:
        raise InvalidRequest(f"cannot list {limit} at once; ask for 1 to {MAXIMUM_PAGE}", limit=limit)


def _page(before: int | None, before_id: str | None) -> Select[Any]:
    query = _LINE.order_by(table.c.updated_at.desc(), table.c.thread_id.desc())
    if before is None:
        return query
    if before_id is None:
        return query.where(table.c.updated_at < before)
    return query.where(tuple_(table.c.updated_at, table.c.thread_id) < (before, before_id))


def _record(row: Row[Any]) -> ThreadRecord:
    return ThreadRecord(**row._mapping)
