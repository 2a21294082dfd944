"""Small writes at once, on the event loop's own thread: when, and when not."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from interlock.stores import sqlite_inline
from interlock.stores.sqlite import SqliteStore, open_sqlite
from interlock.stores.sqlite_inline import COPY_AFTER, LARGEST, LONGEST_LOG, Done, InlineWriter
from interlock.stores.sqlite_writer import SqliteWriter
from interlock.vocabulary.errors import StorageFailed
from interlock.vocabulary.event import Event, ThreadNamed, ThreadStarted
from tests.stores.test_store import call, stored_in

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def a_machine_that_is_never_slow(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "slow" not in request.node.name:
        monkeypatch.setattr(sqlite_inline, "SLOW", 60.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "interlock.db"


def named(name: str) -> Event:
    return ThreadNamed(name=name)


def commits_of_the_thread(store: SqliteStore) -> Callable[[], int]:
    statements: list[str] = []
    store._writer._connection.set_trace_callback(statements.append)
    return lambda: statements.count("COMMIT")


def sizes(path: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in path.parent.iterdir()}


async def test_a_small_event_is_stored_without_the_thread_and_a_large_one_with_it(path: Path) -> None:
    async with open_sqlite(path) as store:
        commits = commits_of_the_thread(store)
        await store.append("a", [ThreadStarted()], after=0, at=0)
        assert commits() == 0
        await store.append("a", [named("x" * LARGEST)], after=1, at=0)
        assert commits() == 1
        await store.append("a", [named("small")], after=2, at=0)
        assert commits() == 1
        assert [stored.sequence for stored in await stored_in(store, "a")] == [1, 2, 3]


async def test_an_event_waits_in_the_thread_for_another_process_that_holds_the_lock(path: Path) -> None:
    async with open_sqlite(path) as store:
        commits = commits_of_the_thread(store)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(store.append, "a", [ThreadStarted()], after=0, at=0))
                await anyio.wait_all_tasks_blocked()
                assert await stored_in(store, "a") == []
                other.execute("ROLLBACK")
        assert commits() == 1
        assert len(await stored_in(store, "a")) == 1


async def test_a_small_event_does_not_overtake_a_large_one_that_waits(path: Path) -> None:
    ended: list[str] = []

    async def append(store: SqliteStore, thread_id: str, event: Event) -> None:
        await store.append(thread_id, [event], after=1, at=0)
        ended.append(thread_id)

    async with open_sqlite(path) as store:
        for thread_id in ("large", "small"):
            await store.append(thread_id, [ThreadStarted()], after=0, at=0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(append, store, "large", named("x" * LARGEST))
            tasks.start_soon(append, store, "small", named("small"))
        assert ended == ["large", "small"]


async def test_a_log_that_grows_is_copied_by_the_thread_and_nobody_waits(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied, copy = threading.Event(), SqliteWriter._copy

    def copy_and_tell(writer: SqliteWriter) -> None:
        copy(writer)
        copied.set()

    monkeypatch.setattr(SqliteWriter, "_copy", copy_and_tell)
    async with open_sqlite(path) as store:
        commits = commits_of_the_thread(store)
        await store.append("a", [ThreadStarted()], after=0, at=0)
        for number in range(1, 1 + COPY_AFTER // (LARGEST // 2)):
            await store.append("a", [named("x" * (LARGEST // 2))], after=number, at=0)
        await anyio.to_thread.run_sync(copied.wait)
        assert commits() == 0
        assert sizes(path)["interlock.db"] > COPY_AFTER // 2


async def test_a_log_that_is_never_copied_whole_makes_a_write_wait_for_the_thread(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteWriter, "_copy", lambda _: None)
    async with open_sqlite(path) as store:
        commits = commits_of_the_thread(store)
        await store.append("a", [ThreadStarted()], after=0, at=0)
        for number in range(1, 1 + 3 * LONGEST_LOG // LARGEST):
            await store.append("a", [named("x" * (LARGEST - 100))], after=number, at=0)
        assert commits() >= 2
        assert sizes(path)["interlock.db-wal"] < 2 * LONGEST_LOG


def test_two_writes_in_a_row_that_were_slow_are_followed_by_a_rest(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(sqlite_inline.time, "monotonic", lambda: now)

    def take(seconds: float) -> None:
        nonlocal now
        now += seconds

    with closing(InlineWriter(path)) as writer:
        assert writer.try_now(lambda _: take(0.001), 1) == Done(None)
        for _ in range(2):
            assert writer.try_now(lambda _: take(0.06), 1) == Done(None)
            assert writer.try_now(lambda _: take(0.001), 1) == Done(None)
        for _ in range(2):
            assert writer.try_now(lambda _: take(0.06), 1) == Done(None)
        assert writer.try_now(lambda _: take(0), 1) is None
        take(1.0)
        assert writer.try_now(lambda _: take(0), 1) == Done(None)


def test_a_write_that_fails_leaves_nothing_and_is_left_to_the_thread(path: Path) -> None:
    def half(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO numbers VALUES (1)")
        raise sqlite3.OperationalError("database or disk is full")

    with closing(InlineWriter(path)) as writer, closing(sqlite3.connect(path)) as reader:
        reader.execute("CREATE TABLE numbers (number INTEGER)")
        assert writer.try_now(half, 1) is None
        assert reader.execute("SELECT count(*) FROM numbers").fetchone() == (0,)
        insert = "INSERT INTO numbers VALUES (2)"
        assert writer.try_now(lambda connection: connection.execute(insert).rowcount, 1) == Done(1)


async def test_the_events_of_a_call_are_statements_by_themselves(path: Path) -> None:
    async with open_sqlite(path) as store, store.claim("a"):
        await store.append("a", [ThreadStarted()], after=0, at=0)
        statements: list[str] = []
        store._writer._inline._connection.set_trace_callback(statements.append)
        await store.append("a", [call({})], after=1, at=0)
        assert [statement.partition(" (")[0] for statement in statements] == ["INSERT INTO events"]
        assert [stored.sequence for stored in await stored_in(store, "a")] == [1, 2]


@pytest.mark.parametrize("meanwhile", ["INSERT INTO events VALUES ('a', 2, 0, 'x', 1, '{}')", "BEGIN IMMEDIATE"])
async def test_the_event_of_a_call_that_cannot_be_inserted_at_once_is_left_to_the_thread(
    path: Path, meanwhile: str
) -> None:
    async with open_sqlite(path, busy_timeout=0) as store, store.claim("a"):
        await store.append("a", [ThreadStarted()], after=0, at=0)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute(meanwhile)
            with pytest.raises(StorageFailed, match=r"somebody else wrote it|another process has locked it"):
                await store.append("a", [call({})], after=1, at=0)


async def test_a_write_that_is_cut_off_by_an_interrupt_leaves_no_transaction_for_the_next(path: Path) -> None:
    def cut_off(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM events")
        raise KeyboardInterrupt

    async with open_sqlite(path) as store:
        await store.append("a", [ThreadStarted()], after=0, at=0)
        with pytest.raises(KeyboardInterrupt):
            store._writer._inline.try_now(cut_off, 1)
        await store.append("a", [call({})], after=1, at=0)  # one statement, and no BEGIN
        await store.append("a", [named("x")], after=2, at=0)
        assert [stored.sequence for stored in await stored_in(store, "a")] == [1, 2, 3]
