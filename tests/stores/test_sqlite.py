"""What can happen to a file."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup

from interlock.stores import sqlite_file
from interlock.stores.sqlite import SqliteStore, open_sqlite
from interlock.vocabulary.errors import StorageFailed
from interlock.vocabulary.event import Event, ThreadNamed, ThreadStarted
from tests.manifest import requirement
from tests.stores.test_store import stored_in

pytestmark = pytest.mark.anyio

STARTED = ThreadStarted()
NOBODY = 65534


def big() -> Event:
    return ThreadNamed(name="x" * 100_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "interlock.db"


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def overwrite(path: Path, content: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)


async def test_file_and_folder_are_for_their_owner_alone(path: Path) -> None:
    async with open_sqlite(path) as store, store.claim("a"):
        await store.append("a", [STARTED], after=0, at=0)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.rglob("*") if file.is_file()}
        folders = [stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, Path(f"{path}-claims"))]
    assert {"interlock.db", "interlock.db-wal", "interlock.db-shm"} <= set(modes)
    assert set(modes.values()) == {0o600}
    assert folders == [0o700, 0o700]


async def test_a_closed_store_leaves_one_file_and_no_claim(path: Path) -> None:
    async with open_sqlite(path) as store, store.claim("a"):
        await store.append("a", [STARTED], after=0, at=0)
        await store.find("a")
        await stored_in(store, "a")
    assert [file.name for file in path.parent.rglob("*") if file.is_file()] == ["interlock.db"]


async def test_the_file_is_in_wal_mode_and_synchronous_as_promised(path: Path) -> None:
    async with open_sqlite(path):
        pass
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@requirement("HIS-2")
async def test_a_full_disk_stores_nothing_of_the_event_and_the_next_one_fits_again(path: Path) -> None:
    async with open_sqlite(path) as store:
        await store.append("a", [STARTED], after=0, at=0)
        writing = store._writer._connection
        (pages,) = writing.execute("PRAGMA page_count").fetchone()
        writing.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StorageFailed, match=f"{path}: the disk is full; free some space"):
            await store.append("a", [big(), big()], after=1, at=0)
        assert len(await stored_in(store, "a")) == 1
        writing.execute("PRAGMA max_page_count = 100000")
        await store.append("a", [big()], after=1, at=0)
        assert len(await stored_in(store, "a")) == 2


@asynccontextmanager
async def writer_kept_busy(store: SqliteStore, path: Path) -> AsyncIterator[TaskGroup]:
    """Tasks started inside find the writer waiting for a lock, so that their appends wait together."""
    async with anyio.create_task_group() as tasks:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            tasks.start_soon(partial(store.append, "busy", [STARTED], after=0, at=0))
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(60):
                while not store._writer._queue.empty():
                    await anyio.lowlevel.checkpoint()
            yield tasks
            await anyio.wait_all_tasks_blocked()
            other.execute("ROLLBACK")


async def test_appends_that_wait_together_share_a_commit(path: Path) -> None:
    async with open_sqlite(path) as store:
        statements: list[str] = []
        store._writer._connection.set_trace_callback(statements.append)
        async with writer_kept_busy(store, path) as tasks:
            for number in range(20):
                tasks.start_soon(partial(store.append, f"thread-{number}", [STARTED], after=0, at=0))
        assert len(await store.threads()) == 21
    assert statements.count("COMMIT") == 2


async def test_one_event_too_large_for_the_disk_takes_nobody_elses_event_with_it(path: Path) -> None:
    async with open_sqlite(path) as store:
        for name in ("a", "b"):
            await store.append(name, [STARTED], after=0, at=0)
        writing = store._writer._connection
        (pages,) = writing.execute("PRAGMA page_count").fetchone()
        writing.execute(f"PRAGMA max_page_count = {pages + 2}")
        refused: list[str] = []

        async def write(name: str, event: Event) -> None:
            try:
                await store.append(name, [event], after=1, at=0)
            except StorageFailed:
                refused.append(name)

        async with writer_kept_busy(store, path) as tasks:
            tasks.start_soon(write, "a", big())
            tasks.start_soon(write, "b", ThreadNamed(name="small"))
        assert refused == ["a"]
        assert (len(await stored_in(store, "a")), len(await stored_in(store, "b"))) == (1, 2)


async def test_a_value_that_no_column_takes_fails_its_append_and_not_the_writer(path: Path) -> None:
    async with open_sqlite(path) as store:
        with pytest.raises(StorageFailed, match="too large"):
            await store.append("a", [STARTED], after=0, at=2**70)
        await store.append("a", [STARTED], after=0, at=0)


async def test_a_file_locked_by_another_process_fails_after_the_busy_timeout_and_stores_nothing(path: Path) -> None:
    async with open_sqlite(path, busy_timeout=0.05) as store:
        await store.append("a", [STARTED], after=0, at=0)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StorageFailed, match="another process has locked it; wait for that process or end it"):
                await store.append("a", [big()], after=1, at=0)
            assert len(await stored_in(store, "a")) == 1
            other.execute("ROLLBACK")
        await store.append("a", [big()], after=1, at=0)


async def test_a_file_that_is_not_in_wal_mode_yet_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as for any other lock: SQLite does not wait there by itself, and two makers refused each other."""
    async with open_sqlite(path):
        pass
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageFailed, match="another process has locked it"):
            async with open_sqlite(path, busy_timeout=0):
                pass
        monkeypatch.setattr(sqlite_file.time, "sleep", lambda _: other.in_transaction and other.execute("ROLLBACK"))
        async with open_sqlite(path, busy_timeout=60) as store:
            await store.append("a", [STARTED], after=0, at=0)


async def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    overwrite(path, b"Dear diary, " * 1000)
    with pytest.raises(StorageFailed, match="it is not an SQLite database; move it away"):
        async with open_sqlite(path):
            pass
    assert content_of(path) == b"Dear diary, " * 1000


async def test_a_damaged_file_is_named(path: Path) -> None:
    async with open_sqlite(path) as store:
        await store.append("a", [STARTED, *[big()] * 5], after=0, at=0)
    content = content_of(path)
    overwrite(path, content[: 4096 * 3] + b"\xff" * (len(content) - 4096 * 3))
    with pytest.raises(StorageFailed, match="damaged; restore it from a copy"):
        async with open_sqlite(path) as store:
            await stored_in(store, "a")


async def test_a_folder_in_the_place_of_the_file_is_refused(path: Path) -> None:
    os.makedirs(path)
    with pytest.raises(StorageFailed, match=f"cannot open the database {path}: is a directory"):
        async with open_sqlite(path):
            pass


# The user is changed at the last moment: to others the interpreter's own folder may be closed.
AS_NOBODY = """
import os, sys, anyio
import interlock.stores.migrating
from pathlib import Path
from interlock.stores.sqlite import open_sqlite
from interlock.vocabulary.errors import StorageFailed

async def main():
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    try:
        async with open_sqlite(Path(sys.argv[1])):
            print("opened")
    except StorageFailed as error:
        print(error.message)

anyio.run(main)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user to whom the file is read-only")
async def test_a_file_that_may_only_be_read_is_refused_with_a_way_out() -> None:
    with tempfile.TemporaryDirectory(prefix="interlock-read-only-") as folder:
        path = Path(folder, "interlock.db")
        async with open_sqlite(path):
            pass
        os.chown(folder, NOBODY, NOBODY)
        os.chmod(path, 0o644)
        done = await anyio.run_process([sys.executable, "-c", AS_NOBODY, str(path)])
    assert done.stdout.decode().strip() == (
        f"cannot open the database {path}: permission denied; make its folder writable or set another INTERLOCK_HOME"
    )


def test_opening_a_store_that_is_up_to_date_imports_no_sqlalchemy(path: Path) -> None:
    program = (
        "import sys, anyio; from interlock.stores import open_store\n"
        "async def main():\n"
        "    async with open_store(sys.argv[1]): pass\n"
        "anyio.run(main)\n"
        "print(sorted({'sqlalchemy', 'alembic', 'aiosqlite', 'asyncpg'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, str(path)]
    subprocess.run(command, check=True)
    again = subprocess.run(command, check=True, capture_output=True, text=True)
    assert again.stdout.strip() == "[]"


def test_the_revision_that_this_version_writes_is_the_newest_migration() -> None:
    from alembic.script import ScriptDirectory

    from interlock.stores import migrating
    from interlock.stores.schema import HEAD

    assert ScriptDirectory(str(Path(migrating.__file__).parent / "migrations")).get_current_head() == HEAD


async def test_the_migrations_make_the_tables_that_the_queries_know(path: Path) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.runtime.migration import MigrationContext
    from sqlalchemy import create_engine

    from interlock.stores.schema import metadata

    async with open_sqlite(path):
        pass
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
    engine.dispose()
    # The claims of SQLite are lock files; the index is the migration's.
    assert {(kind, thing.name) for kind, thing in differences} == {
        ("add_table", "claims"),
        ("remove_index", "threads_newest_first"),
    }


async def test_an_interrupted_migration_leaves_no_half_schema(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from alembic.operations import Operations

    def crash(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("the power is gone")

    with monkeypatch.context() as broken:
        broken.setattr(Operations, "create_index", crash, raising=False)
        broken.setattr("alembic.op.create_index", crash, raising=False)
        with pytest.raises(StorageFailed, match="the power is gone"):
            async with open_sqlite(path):
                pass
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT name FROM sqlite_master").fetchall() == []
    async with open_sqlite(path) as store:
        await store.append("a", [STARTED], after=0, at=0)


async def test_what_waits_when_the_store_closes_is_stored(path: Path) -> None:
    async with open_sqlite(path) as store:
        await store.append("a", [STARTED], after=0, at=0)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(store.append("a", [big()], after=1, at=0))
            await asyncio.sleep(0)
            tasks.create_task(store.close())
        assert waiting.result()[0].sequence == 2
    async with open_sqlite(path) as store:
        assert len(await stored_in(store, "a")) == 2


async def test_a_closed_store_refuses_and_says_so(path: Path) -> None:
    async with open_sqlite(path) as store:
        pass
    with pytest.raises(StorageFailed, match="the store is closed"):
        await store.append("a", [STARTED], after=0, at=0)
    with pytest.raises(StorageFailed, match="the store is closed"):
        await stored_in(store, "a")


async def test_a_lock_file_left_behind_claims_nothing(path: Path) -> None:
    async with open_sqlite(path) as store:
        async with store.claim("a"):
            (lock,) = os.listdir(f"{path}-claims")
            left_behind = content_of(Path(f"{path}-claims", lock))
        overwrite(Path(f"{path}-claims", lock), left_behind)
        async with store.claim("a"):
            pass
        assert os.listdir(f"{path}-claims") == []
