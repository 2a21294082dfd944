"""An SQLite file: made, migrated, opened, read.

Owns: how the file and its folders come into being, and the pragmas of each connection.
Never: decides what is written.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.stores.revision import HEAD
from interlock.stores.sqlite_failures import is_busy, storage_failed
from interlock.vocabulary.errors import InterlockError, StorageFailed

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

_RETRY = 0.01
"""Seconds between two attempts to switch a file to write-ahead logging while others use it."""


def prepare(path: Path, busy_timeout: float) -> sqlite3.Connection:
    """The writing connection to the file, which is made and migrated first. Blocks; raises StorageFailed."""
    with translated("open", path):
        _create(path)
        connection = _connect(path, busy_timeout)
        try:
            if _revision(connection) != HEAD:
                from interlock.stores.migrating import upgrade_sqlite

                upgrade_sqlite(path, busy_timeout)
            _tune(connection, path, busy_timeout)
        except BaseException:
            connection.close()
            raise
        return connection


def claims_folder(path: Path) -> Path:
    return path.with_name(f"{path.name}-claims")


def index_engine(path: Path, busy_timeout: float) -> "AsyncEngine":
    from sqlalchemy.engine import URL
    from sqlalchemy.ext.asyncio import create_async_engine

    url = URL.create("sqlite+aiosqlite", database=str(path))
    return create_async_engine(url, connect_args={"timeout": busy_timeout}, pool_size=1, max_overflow=0)


@contextmanager
def translated(action: str, path: Path) -> Iterator[None]:
    """Whatever the operating system, SQLite or SQLAlchemy raise inside, as a StorageFailed of `action`."""
    try:
        yield
    except InterlockError:
        raise
    except sqlite3.Error as error:
        raise storage_failed(action, path, error) from error
    except OSError as error:
        cause = (error.strerror or str(error)).lower()
        raise StorageFailed(
            f"cannot {action} the database {path}: {cause}; make its folder writable or set another INTERLOCK_HOME",
            path=str(path),
        ) from error
    except Exception as error:
        if getattr(error, "orig", None) is None:  # SQLAlchemy's DBAPIError carries the driver's error there
            raise
        raise storage_failed(action, path, error) from error


class Readers:
    """Plain reading connections, used in worker threads and kept for the next one."""

    def __init__(self, path: Path, busy_timeout: float) -> None:
        self._path = path
        self._busy_timeout = busy_timeout
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._closed:
                raise StorageFailed(f"cannot read events from {self._path}: the store is closed", path=str(self._path))
            connection = self._idle.pop() if self._idle else None
        connection = connection or _connect(self._path, self._busy_timeout)
        try:
            yield connection
        finally:
            self._put_back(connection)

    def close(self) -> None:
        """Close the idle ones now, those in use when they come back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _put_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()


def _create(path: Path) -> None:
    """An empty file that only its owner can read; SQLite gives its -wal and -shm the same mode."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _connect(path: Path, busy_timeout: float) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=busy_timeout, isolation_level=None, check_same_thread=False)


def _revision(connection: sqlite3.Connection) -> str | None:
    """What alembic noted as the schema's revision; None in a database that has none."""
    noted = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
    found = connection.execute("SELECT version_num FROM alembic_version").fetchone() if noted else None
    return None if found is None else str(found[0])


def _tune(connection: sqlite3.Connection, path: Path, busy_timeout: float) -> None:
    """WAL with synchronous NORMAL: what is committed survives a crash of the process, not of the machine."""
    if _write_ahead(connection, time.monotonic() + busy_timeout) != "wal":
        raise StorageFailed(
            f"cannot open the database {path}: its file system does not support write-ahead logging;"
            " keep it on a local disk",
            path=str(path),
        )
    connection.execute("PRAGMA synchronous = NORMAL")


def _write_ahead(connection: sqlite3.Connection, deadline: float) -> str:
    """The journal mode after asking for WAL. Only a file that is not in it yet has to be alone for that moment.

    SQLite gives up at once if another connection is about to write: it asks while it holds a lock of its own, and calls
    no busy handler then (sqlite.org/c3ref/busy_handler.html). Two processes that make one file would refuse each other.
    """
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
        time.sleep(_RETRY)
