"""Small writes at once, on the event loop's own thread: when, and when not."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import pytest

from interlock.stores import sqlite_inline
from interlock.stores.sqlite import SqliteStore, open_sqlite
from interlock.stores.sqlite_inline import LARGEST, TO_THE_THREAD, Done, InlineWriter
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


async def test_one_write_in_many_goes_to_the_thread_so_that_the_log_does_not_grow_for_ever(path: Path) -> None:
    async with open_sqlite(path) as store:
        commits = commits_of_the_thread(store)
        await store.append("a", [ThreadStarted()], after=0, at=0)
        for number in range(1, 1 + 3 * TO_THE_THREAD):
            await store.append("a", [named("x" * 10_000)], after=number, at=0)
        assert commits() == 3
        assert sizes(path)["interlock.db-wal"] < sizes(path)["interlock.db"]


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


def test_one_statement_is_committed_by_itself(path: Path) -> None:
    with closing(InlineWriter(path)) as writer, closing(sqlite3.connect(path)) as reader:
        reader.execute("CREATE TABLE numbers (number INTEGER UNIQUE)")
        insert = "INSERT INTO numbers VALUES (1)"
        for done in (Done(1), None):
            assert writer.try_now(lambda connection: connection.execute(insert).rowcount, 1, one_statement=True) == done
            assert reader.execute("SELECT count(*) FROM numbers").fetchone() == (1,)


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
