"""The store in a PostgreSQL database.

Owns: the statements of appends and reads there.
Never: stores an event twice: an append whose outcome was lost is looked for before it is refused.

Appends go through one session with the plain driver; everything else through SQLAlchemy.
Sessions are used with their locks: a pooler must work by session, not by transaction.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress

import anyio
import anyio.to_thread
import asyncpg  # type: ignore[import-untyped] # it ships no types
from sqlalchemy import Connection as SyncConnection
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from interlock.stores import checkpoint as checkpoints
from interlock.stores import codec, index
from interlock.stores.codec import Row
from interlock.stores.identity import checked
from interlock.stores.postgres_failures import shown, storage_failed
from interlock.stores.postgres_session import CONNECT_SECONDS, RETRY_SECONDS, Connection, PostgresSession
from interlock.stores.revision import HEAD
from interlock.stores.sequence import contiguous, gone, incomplete, moved_on, numbered
from interlock.stores.summary import Change, change_of, line_of, storable
from interlock.vocabulary.errors import InterlockError, InvalidRequest, StorageFailed
from interlock.vocabulary.event import Event, StoredEvent, ThreadRecord, ThreadStarted
from interlock.vocabulary.memory import MemoryUse
from interlock.vocabulary.thread import ThreadCheckpoint

PAGE_ROWS, PAGE_BYTES = 200, 1024 * 1024
"""One page of `read`: whichever bound is met first ends it."""

MAXIMUM_READERS = 4
MIGRATION_LOCK = 0x1E7E_10C4
"""The advisory lock under which the schema is changed."""

_STORE = """
    WITH moved AS ({moved} RETURNING 1)
    INSERT INTO events (thread_id, sequence, at, kind, version, payload)
    SELECT $1::text, $2::bigint + number, $3::bigint, kind, version, payload
    FROM unnest($5::text[], $6::int[], $7::text[]) WITH ORDINALITY AS batch (kind, version, payload, number)
    WHERE EXISTS (SELECT FROM moved)"""
_STORE_FIRST = _STORE.format(
    moved="""INSERT INTO threads
    (thread_id, created_at, updated_at, name, preview, model, turns, last_sequence, archived)
    VALUES ($1::text, $3::bigint, $3::bigint, $9::text, $11::text, $10::text, $8::int, $4::bigint,
    coalesce($12::bool, false))
    ON CONFLICT DO NOTHING"""
)
_STORE_NEXT = _STORE.format(
    moved="""UPDATE threads SET updated_at = $3::bigint, last_sequence = $4::bigint,
    turns = turns + $8::int, name = CASE WHEN $12::bool THEN $9::text ELSE name END,
    model = coalesce($10::text, model), preview = CASE WHEN preview = '' THEN $11::text ELSE preview END,
    archived = coalesce($13::bool, archived)
    WHERE thread_id = $1::text AND last_sequence = $2::bigint"""
)
_STORED = """SELECT at, kind, version, payload FROM events
    WHERE thread_id = $1 AND sequence > $2 AND sequence <= $3 ORDER BY sequence"""
_LAST_SEQUENCE = "SELECT last_sequence FROM threads WHERE thread_id = $1"
_COUNT_USES = """INSERT INTO memory_uses (thread_id, uses, last_used_at)
    SELECT thread_id, 1, $2::bigint FROM threads WHERE thread_id = ANY($1::text[])
    ON CONFLICT (thread_id) DO UPDATE SET uses = memory_uses.uses + 1, last_used_at = excluded.last_used_at"""
_DELETE = """WITH a AS (DELETE FROM checkpoints WHERE thread_id = $1),
    b AS (DELETE FROM memory_uses WHERE thread_id = $1),
    c AS (DELETE FROM events WHERE thread_id = $1) DELETE FROM threads WHERE thread_id = $1"""
_COPY = """WITH copied AS (SELECT sequence, at, kind, version, payload FROM events
        WHERE thread_id = $13 AND sequence <= $8::bigint
    ), born AS (INSERT INTO threads
        (thread_id, created_at, updated_at, name, preview, model, turns, last_sequence, archived)
        SELECT $1::text, $2::bigint, $3::bigint, $4::text, $5::text, $6::text, $7::int, $8::bigint, $9::bool
        WHERE (SELECT count(*) FROM copied) = $8::bigint RETURNING 1)
    INSERT INTO events (thread_id, sequence, at, kind, version, payload)
    SELECT $1::text, * FROM (
        SELECT 1::bigint, $2::bigint, $10::text, $11::int, $12::text UNION ALL
        SELECT * FROM copied WHERE sequence > 1) AS all_events
    WHERE EXISTS (SELECT FROM born)"""
_STORE_UNLISTED = """INSERT INTO events (thread_id, sequence, at, kind, version, payload)
    SELECT $1::text, * FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::int[], $6::text[])"""
_LIST_THREAD = """INSERT INTO threads
    (thread_id, created_at, updated_at, name, preview, model, turns, last_sequence, archived)
    SELECT $1::text, $2, $3, $4, $5, $6, $7, $8::bigint, $9
    WHERE (SELECT count(*) FROM events WHERE thread_id = $1::text AND sequence <= $8::bigint) = $8::bigint
    AND NOT EXISTS (SELECT FROM events WHERE thread_id = $1::text AND sequence > $8::bigint)
    ON CONFLICT DO NOTHING"""
_EVENT = "SELECT at, kind, version, payload FROM events WHERE thread_id = $1 AND sequence = $2"
_SAVE_CHECKPOINT = """INSERT INTO checkpoints (thread_id, sequence, version, digest, payload)
    SELECT thread_id, $2::bigint, $3::int, $4::text, $5::bytea FROM threads WHERE thread_id = $1
    ON CONFLICT (thread_id) DO UPDATE SET sequence = excluded.sequence, version = excluded.version,
    digest = excluded.digest, payload = excluded.payload"""
_CHECKPOINT = text("""SELECT c.sequence, c.version, c.digest, c.payload, e.at, e.kind, e.version, e.payload
    FROM checkpoints AS c JOIN events AS e USING (thread_id, sequence) WHERE thread_id = :thread_id""")
_PAGE = text("""
    SELECT sequence, at, kind, version, payload FROM (
        SELECT page.*, sum(octet_length(payload)) OVER (ORDER BY sequence) - octet_length(payload) AS before
        FROM (SELECT sequence, at, kind, version, payload FROM events
              WHERE thread_id = :thread_id AND sequence > :after ORDER BY sequence LIMIT :rows) AS page
    ) AS measured WHERE before < :bytes ORDER BY sequence""")


@asynccontextmanager
async def open_postgres(url: str, *, retry_seconds: float = RETRY_SECONDS) -> AsyncIterator["PostgresStore"]:
    """The store at a postgresql:// URL, migrated as needed; a Store. StorageFailed if it cannot be used."""
    url = "postgresql://" + url.partition("://")[2]
    database = shown(url)
    engine = _engine(url)
    try:
        with _translated("open", database):
            await _migrate(engine, database)
        session = PostgresSession(url, database, retry_seconds=retry_seconds)
        async with _running(session):
            yield PostgresStore(database, session, engine)
    finally:
        with anyio.CancelScope(shield=True):
            await engine.dispose()


class PostgresStore:
    """A Store (see vocabulary.ports). Made by `open_postgres`."""

    def __init__(self, database: str, session: PostgresSession, engine: AsyncEngine) -> None:
        self._database = database
        self._session = session
        self._engine = engine

    def __repr__(self) -> str:
        return f"<PostgresStore {self._database}>"

    async def append(self, thread_id: str, events: Sequence[Event], *, after: int, at: int) -> tuple[StoredEvent, ...]:
        if not events:
            return ()
        rows = [codec.encode(event) for event in events]
        change, thread_id = change_of(events), checked(thread_id)

        async def store(connection: Connection, repeated: bool) -> None:
            self._session.check_claim(thread_id)
            if not await _store(connection, thread_id, after, at, rows, change):
                await _explain(connection, thread_id, after, at, rows, repeated)

        await self._session.perform("store an event in", store, grouped=True)
        return numbered(thread_id, after, at, events)

    async def read(self, thread_id: str, *, after: int = 0) -> AsyncGenerator[StoredEvent, None]:
        while page := await self._page(checked(thread_id), after):
            for stored in contiguous(thread_id, after, page):
                after = stored.sequence
                yield stored

    def claim(self, thread_id: str) -> AbstractAsyncContextManager[None]:
        return self._claim(checked(thread_id))

    @asynccontextmanager
    async def _claim(self, thread_id: str) -> AsyncIterator[None]:
        await self._session.claim(thread_id)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True), suppress(StorageFailed):  # a lost session has freed it already
                await self._session.release(thread_id)

    async def find(self, thread_id: str) -> ThreadRecord | None:
        with _translated("look into", self._database):
            return await index.find(self._engine, checked(thread_id))

    async def threads(
        self,
        *,
        limit: int = 50,
        before: int | None = None,
        before_id: str | None = None,
        archived: bool | None = None,
    ) -> tuple[ThreadRecord, ...]:
        with _translated("list the threads of", self._database):
            return await index.threads(self._engine, limit=limit, before=before, before_id=before_id, archived=archived)

    async def count_memory_uses(self, thread_ids: Sequence[str], *, at: int) -> None:
        ids = [storable(thread_id) for thread_id in thread_ids]
        # Not tried again: nobody knows whether a lost attempt counted, and no use may count twice.
        await self._session.perform(
            "count uses in", lambda connection, _: connection.execute(_COUNT_USES, ids, at), retry=False
        )

    async def memory_uses(self, *, limit: int = 50) -> tuple[MemoryUse, ...]:
        with _translated("look into", self._database):
            return await index.memory_uses(self._engine, limit=limit)

    async def delete_thread(self, thread_id: str) -> None:
        place = checked(thread_id)
        await self._session.perform("delete a thread in", lambda connection, _: connection.execute(_DELETE, place))

    async def copy_thread(self, source: str, birth: ThreadStarted, record: ThreadRecord) -> None:
        line, first, origin = line_of(record), codec.encode(birth), checked(source)
        checked(record.thread_id)

        async def copy(connection: Connection, _: bool) -> None:
            if await connection.execute(_COPY, *line, *first, origin) != f"INSERT 0 {record.last_sequence}":
                raise gone(source, record.last_sequence)

        await self._session.perform("copy a thread in", copy, retry=False)

    async def store_unlisted(self, events: Sequence[StoredEvent]) -> None:
        if not events:
            return
        thread_id = checked(events[0].thread_id)
        columns = zip(*[(one.sequence, one.at, *codec.encode(one.event)) for one in events], strict=True)
        values = [thread_id, *columns]

        async def store(connection: Connection, _: bool) -> None:
            self._session.check_claim(thread_id)
            await connection.execute(_STORE_UNLISTED, *values)

        # Not tried again, as with all that is done for one who can begin anew: nobody has seen anything of it.
        await self._session.perform("store an event in", store, retry=False)

    async def list_thread(self, record: ThreadRecord) -> None:
        line = line_of(record)

        async def put(connection: Connection, _: bool) -> None:
            self._session.check_claim(record.thread_id)
            if await connection.execute(_LIST_THREAD, *line) != "INSERT 0 1":
                raise incomplete(record)

        await self._session.perform("list a thread in", put, retry=False)

    async def unlisted(self) -> tuple[str, ...]:
        with _translated("look into", self._database):
            return await index.unlisted(self._engine)

    async def save_checkpoint(self, checkpoint: ThreadCheckpoint) -> None:
        place = (checkpoint.facts.thread_id, checkpoint.facts.last_sequence)

        async def save(connection: Connection, _: bool) -> None:
            last = await connection.fetchrow(_EVENT, *place)
            if last is None:
                return
            ended = (last[0], Row(*last[1:]))
            row = await anyio.to_thread.run_sync(checkpoints.encode, checkpoint, ended)
            if len(row.payload) <= checkpoints.SIZE_LIMIT:
                await connection.execute(_SAVE_CHECKPOINT, *place, row.version, row.digest, row.payload)

        # Not tried again: it is kept while a Thread closes, and nothing is lost without it.
        await self._session.perform("keep a checkpoint in", save, retry=False)

    async def load_checkpoint(self, thread_id: str) -> ThreadCheckpoint | None:
        with _translated("read events from", self._database):
            async with self._engine.connect() as connection:
                found = (await connection.execute(_CHECKPOINT, {"thread_id": checked(thread_id)})).one_or_none()
        if found is None:
            return None
        sequence, version, digest, payload, at, *row = found
        kept = checkpoints.CheckpointRow(sequence=sequence, version=version, digest=digest, payload=bytes(payload))
        return await anyio.to_thread.run_sync(checkpoints.decode, thread_id, kept, (at, Row(*row)))

    async def _page(self, thread_id: str, after: int) -> list[StoredEvent]:
        bounds = {"thread_id": thread_id, "after": after, "rows": PAGE_ROWS, "bytes": PAGE_BYTES}
        with _translated("read events from", self._database):
            async with self._engine.connect() as connection:
                rows = (await connection.execute(_PAGE, bounds)).all()
        return [codec.decode(thread_id, sequence, at, Row(*row)) for sequence, at, *row in rows]


async def _store(
    connection: Connection, thread_id: str, after: int, at: int, rows: Sequence[Row], change: Change
) -> bool:
    """Store in one statement, which is one transaction; False when the Thread does not stand at `after`."""
    place = (thread_id, after, at, after + len(rows))
    line = (change.turns, change.name, change.model, change.preview)
    columns = zip(*rows, strict=True)  # kinds, versions, payloads
    if after == 0:
        status = await connection.execute(_STORE_FIRST, *place, *columns, *line, change.archived)
    else:
        status = await connection.execute(_STORE_NEXT, *place, *columns, *line, change.named, change.archived)
    return bool(status == f"INSERT 0 {len(rows)}")


async def _explain(
    connection: Connection, thread_id: str, after: int, at: int, rows: Sequence[Row], repeated: bool
) -> None:
    """Return when it was an earlier attempt of this very append that moved the Thread; else StorageFailed."""
    if repeated:
        found = await connection.fetch(_STORED, thread_id, after, after + len(rows))
        if [tuple(row) for row in found] == [(at, *row) for row in rows]:
            return
    last = await connection.fetchval(_LAST_SEQUENCE, thread_id) or 0
    raise moved_on(thread_id, after, last)


@asynccontextmanager
async def _running(session: PostgresSession) -> AsyncIterator[None]:
    """The session's task, for as long as the block lasts; the block's own error comes out as it is, not in a group."""
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.run)
        try:
            yield
        except BaseException as error:
            failure = error
        finally:
            session.close()
    if failure is not None:
        raise failure


def _engine(url: str) -> AsyncEngine:
    async def connect() -> Connection:
        try:
            return await asyncpg.connect(url, timeout=CONNECT_SECONDS)
        except ValueError as error:  # not quoted: it may hold the password
            raise InvalidRequest(f"cannot open the database {shown(url)}: its URL is malformed") from error

    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,  # the driver reads the URL itself: it knows sslmode and the rest
        pool_size=MAXIMUM_READERS,
        max_overflow=0,
        pool_pre_ping=True,
    )


async def _migrate(engine: AsyncEngine, database: str) -> None:
    async with engine.begin() as connection:
        await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
        noted = (await connection.execute(text("SELECT to_regclass('alembic_version')"))).scalar()
        found = (await connection.execute(text("SELECT version_num FROM alembic_version"))).scalar() if noted else None
        if found != HEAD:
            await connection.run_sync(_upgrade, database)


def _upgrade(connection: SyncConnection, database: str) -> None:
    from interlock.stores.migrating import upgrade

    upgrade(connection, database)


@contextmanager
def _translated(action: str, database: str) -> Iterator[None]:
    try:
        yield
    except InterlockError:
        raise
    except Exception as error:
        raise storage_failed(action, database, error) from error
