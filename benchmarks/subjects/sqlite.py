"""Two bare inserts: what storing the start and the end of a call costs with the plain driver and nothing else.

Each is a transaction of its own in a file in WAL mode with synchronous NORMAL, of a row like those of the store.
"""

import itertools
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

from benchmarks.subjects.ports import Place

PAYLOAD = (
    '{"turn_id":"turn","step_id":"step","item":{"id":"call","server":"one","tool":"look_up_00000",' + " " * 200 + "}}"
)


class Inserts:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._numbers = itertools.count()

    def insert(self) -> None:
        row = ("thread", next(self._numbers), 0, "kind", 1, PAYLOAD)
        self._connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", row)

    async def call(self) -> None:
        self.insert()
        self.insert()


class Sqlite:
    @asynccontextmanager
    async def open(self, places: Sequence[Place]) -> AsyncIterator[Sequence[Inserts]]:
        with (
            tempfile.TemporaryDirectory(prefix="interlock-benchmark-") as folder,
            closing(sqlite3.connect(Path(folder, "bare.db"), isolation_level=None)) as connection,
        ):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(
                "CREATE TABLE events (thread_id TEXT, sequence INTEGER, at INTEGER, kind TEXT, version INTEGER,"
                " payload TEXT, PRIMARY KEY (thread_id, sequence)) WITHOUT ROWID"
            )
            yield [Inserts(connection)]


SUBJECT = Sqlite()
