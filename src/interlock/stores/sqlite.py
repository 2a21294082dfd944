"""The store in one SQLite file.

Owns: the file, its connections, the streaming of events out of it.
Never: writes but through its one writer.

Readers use plain connections in worker threads: a row through SQLAlchemy's async layer costs several
times what it costs here, and a Thread is resumed by reading all of its rows.
"""

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from interlock.stores import checkpoint as checkpoints
from interlock.stores import codec, sqlite_file
from interlock.stores.claim_file import claim_file
from interlock.stores.identity import checked
from interlock.stores.sequence import contiguous, numbered
from interlock.stores.sqlite_failures import storage_failed
from interlock.stores.sqlite_writer import SqliteWriter
from interlock.stores.sqlite_writes import (
    COUNT_USE,
    DELETE,
    INSERT_EVENT,
    SAVE_CHECKPOINT,
    Append,
    Copy,
    ListThread,
    Statements,
)
from interlock.stores.summary import change_of, moves, storable
from interlock.vocabulary.event import Event, StoredEvent, ThreadRecord, ThreadStarted
from interlock.vocabulary.memory import MemoryUse
from interlock.vocabulary.thread import ThreadCheckpoint

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

BUSY_TIMEOUT = 5.0
"""Seconds that a statement waits for another process's lock."""

PAGE_ROWS, PAGE_CHARACTERS = 500, 1024 * 1024
"""One page of `read`: whichever bound is met first ends it."""

MAXIMUM_READERS = 4

_UNKNOWN = -1
"""The sequence of no event."""

_PAGE = """SELECT sequence, at, kind, version, payload FROM events
    WHERE thread_id = ? AND sequence > ? ORDER BY sequence"""

_EVENT = "SELECT at, kind, version, payload FROM events WHERE thread_id = ? AND sequence = ?"
_CHECKPOINT = "SELECT sequence, version, digest, payload FROM checkpoints WHERE thread_id = ?"


@asynccontextmanager
async def open_sqlite(path: Path, *, busy_timeout: float = BUSY_TIMEOUT) -> AsyncIterator["SqliteStore"]:
    """The store in the file `path`, made and migrated as needed; a Store. StorageFailed if it cannot be used."""
    connection = await anyio.to_thread.run_sync(sqlite_file.prepare, path, busy_timeout)
    store = SqliteStore(path, SqliteWriter(path, connection), busy_timeout)
    try:
        yield store
    finally:
        with anyio.CancelScope(shield=True):
            await store.close()


class SqliteStore:
    """A Store (see vocabulary.ports). Made by `open_sqlite`."""

    def __init__(self, path: Path, writer: SqliteWriter, busy_timeout: float) -> None:
        self._path = path
        self._writer = writer
        self._busy_timeout = busy_timeout
        self._readers = sqlite_file.Readers(path, busy_timeout)
        self._reading = anyio.CapacityLimiter(MAXIMUM_READERS)
        self._engine: AsyncEngine | None = None
        self._last: dict[str, int] = {}  # the sequence of the last event of each Thread that is claimed here

    def __repr__(self) -> str:
        return f"<SqliteStore {self._path}>"

    async def append(self, thread_id: str, events: Sequence[Event], *, after: int, at: int) -> tuple[StoredEvent, ...]:
        if not events:
            return ()
        rows = [codec.encode(event) for event in events]
        # Most events are the start or the end of a call. Nobody else writes a Thread that is claimed here: that the
        # event before is stored is known, and that this one is not, the primary key tells.
        follows = len(rows) == 1 and self._last.get(thread_id) == after and not moves(events[0])
        row = (thread_id, after + 1, at, *rows[0])
        if not (follows and self._writer.execute_now(INSERT_EVENT, row, len(rows[0].payload))):
            append = Append(checked(thread_id), after, at, rows, change_of(events))
            if not self._writer.write_now(append):
                await self._writer.write_in_turn(append)
        if thread_id in self._last:
            self._last[thread_id] = after + len(events)
        return numbered(thread_id, after, at, events)

    async def read(self, thread_id: str, *, after: int = 0) -> AsyncGenerator[StoredEvent, None]:
        more = True
        while more:
            question = partial(self._page, checked(thread_id), after)
            page, more = await anyio.to_thread.run_sync(question, limiter=self._reading)
            for stored in contiguous(thread_id, after, page):
                after = stored.sequence
                yield stored

    def claim(self, thread_id: str) -> AbstractAsyncContextManager[None]:
        return self._claim(checked(thread_id))

    @asynccontextmanager
    async def _claim(self, thread_id: str) -> AsyncIterator[None]:
        with claim_file(sqlite_file.claims_folder(self._path), thread_id):
            self._last[thread_id] = _UNKNOWN
            try:
                yield
            finally:
                del self._last[thread_id]

    async def find(self, thread_id: str) -> ThreadRecord | None:
        from interlock.stores import index

        with sqlite_file.translated("look into", self._path):
            return await index.find(self._index(), checked(thread_id))

    async def threads(
        self,
        *,
        limit: int = 50,
        before: int | None = None,
        before_id: str | None = None,
        archived: bool | None = None,
    ) -> tuple[ThreadRecord, ...]:
        from interlock.stores import index

        with sqlite_file.translated("list the threads of", self._path):
            return await index.threads(
                self._index(), limit=limit, before=before, before_id=before_id, archived=archived
            )

    async def count_memory_uses(self, thread_ids: Sequence[str], *, at: int) -> None:
        ids = sorted({storable(thread_id) for thread_id in thread_ids})
        await self._writer.write(Statements((COUNT_USE, [(at, one) for one in ids])))

    async def memory_uses(self, *, limit: int = 50) -> tuple[MemoryUse, ...]:
        from interlock.stores import index

        with sqlite_file.translated("look into", self._path):
            return await index.memory_uses(self._index(), limit=limit)

    async def delete_thread(self, thread_id: str) -> None:
        place = [(checked(thread_id),)]
        await self._writer.write(Statements(*[(statement, place) for statement in DELETE]))

    async def copy_thread(self, source: str, birth: ThreadStarted, record: ThreadRecord) -> None:
        checked(record.thread_id)
        await self._writer.write(Copy(checked(source), codec.encode(birth), record))

    async def store_unlisted(self, events: Sequence[StoredEvent]) -> None:
        rows = [(checked(one.thread_id), one.sequence, one.at, *codec.encode(one.event)) for one in events]
        await self._writer.write(Statements((INSERT_EVENT, rows)))

    async def list_thread(self, record: ThreadRecord) -> None:
        await self._writer.write(ListThread(record))

    async def unlisted(self) -> tuple[str, ...]:
        from interlock.stores import index

        with sqlite_file.translated("look into", self._path):
            return await index.unlisted(self._index())

    async def save_checkpoint(self, checkpoint: ThreadCheckpoint) -> None:
        row = await anyio.to_thread.run_sync(self._encode, checkpoint, limiter=self._reading)
        if row is not None:
            columns = (row.sequence, row.version, row.digest, row.payload, checkpoint.facts.thread_id)
            await self._writer.write(Statements((SAVE_CHECKPOINT, [columns])))

    async def load_checkpoint(self, thread_id: str) -> ThreadCheckpoint | None:
        return await anyio.to_thread.run_sync(self._decode, checked(thread_id), limiter=self._reading)

    async def close(self) -> None:
        """Store what waits, then let the file go."""
        await anyio.to_thread.run_sync(self._writer.close)
        self._readers.close()
        if self._engine is not None:
            await self._engine.dispose()

    def _page(self, thread_id: str, after: int) -> tuple[list[StoredEvent], bool]:
        """The next events and whether there may be more; runs in a worker thread."""
        page, size = list[StoredEvent](), 0
        try:
            with (
                self._readers.connection() as connection,
                closing(connection.execute(_PAGE, (thread_id, after))) as cursor,
            ):
                for sequence, at, *row in cursor:
                    page.append(codec.decode(thread_id, sequence, at, codec.Row(*row)))
                    size += len(row[-1])
                    if len(page) == PAGE_ROWS or size >= PAGE_CHARACTERS:
                        return page, True
        except sqlite3.Error as error:
            raise storage_failed("read events from", self._path, error) from error
        return page, False

    def _encode(self, checkpoint: ThreadCheckpoint) -> checkpoints.CheckpointRow | None:
        """Runs in a worker thread, as `_decode` does."""
        with sqlite_file.translated("read events from", self._path), self._readers.connection() as connection:
            place = (checkpoint.facts.thread_id, checkpoint.facts.last_sequence)
            last = connection.execute(_EVENT, place).fetchone()
        if last is None:
            return None
        row = checkpoints.encode(checkpoint, (last[0], codec.Row(*last[1:])))
        return row if len(row.payload) <= checkpoints.SIZE_LIMIT else None

    def _decode(self, thread_id: str) -> ThreadCheckpoint | None:
        with sqlite_file.translated("read events from", self._path), self._readers.connection() as connection:
            found = connection.execute(_CHECKPOINT, (thread_id,)).fetchone()
            last = connection.execute(_EVENT, (thread_id, found[0])).fetchone() if found is not None else None
        if found is None or last is None:
            return None
        row = checkpoints.CheckpointRow(sequence=found[0], version=found[1], digest=found[2], payload=found[3])
        return checkpoints.decode(thread_id, row, (last[0], codec.Row(*last[1:])))

    def _index(self) -> "AsyncEngine":
        """Made when first asked for: its import takes longer than opening the store."""
        if self._engine is None:
            self._engine = sqlite_file.index_engine(self._path, self._busy_timeout)
        return self._engine
