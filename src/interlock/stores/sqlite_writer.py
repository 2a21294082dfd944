"""The one thread that writes an SQLite database.

Owns: the writing connection; the order and the transactions of appends.
Never: encodes an event, reads for others, or tells anyone before the commit.

What waits when the writer gets to it goes into one transaction (group commit): under load, many
Threads share one commit.
"""

import queue
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from interlock.stores.codec import Row
from interlock.stores.outcome import Outcome
from interlock.stores.sequence import moved_on
from interlock.stores.sqlite_failures import is_busy, storage_failed
from interlock.stores.summary import Change
from interlock.vocabulary.errors import StorageFailed

MAXIMUM_BATCH = 128
"""Appends in one transaction; bounds how long the first of them waits for the others."""

_INSERT_EVENT = "INSERT INTO events (thread_id, sequence, at, kind, version, payload) VALUES (?, ?, ?, ?, ?, ?)"
_INSERT_THREAD = """INSERT OR IGNORE INTO threads
    (thread_id, created_at, updated_at, name, preview, model, turns, last_sequence, archived)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)"""
_MOVE_THREAD = "UPDATE threads SET updated_at = ?, last_sequence = ? WHERE thread_id = ? AND last_sequence = ?"
_CHANGE_THREAD = """UPDATE threads SET updated_at = ?, last_sequence = ?,
    turns = turns + ?, name = CASE WHEN ? THEN ? ELSE name END, model = coalesce(?, model),
    preview = CASE WHEN preview = '' THEN ? ELSE preview END
    WHERE thread_id = ? AND last_sequence = ?"""
_LAST_SEQUENCE = "SELECT last_sequence FROM threads WHERE thread_id = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Events of one Thread, encoded, that are to be stored together."""

    thread_id: str
    after: int
    at: int
    rows: Sequence[Row]
    change: Change
    outcome: Outcome[None]


class SqliteWriter:
    """Takes appends until it is closed; each is settled once it is committed, or refused."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """`connection` is in autocommit mode and belongs to the writer from here on."""
        self._path = path
        self._connection = connection
        self._queue: queue.SimpleQueue[Append | None] = queue.SimpleQueue()
        self._closed = False
        # A daemon: a host that is torn down without closing its store must not hang at exit, and
        # what was committed is safe.
        self._thread = threading.Thread(target=self._run, name="interlock-sqlite-writer", daemon=True)
        self._thread.start()

    async def append(self, append: Append) -> None:
        if self._closed:
            raise StorageFailed(f"cannot store an event in {self._path}: the store is closed", path=str(self._path))
        self._queue.put(append)
        await append.outcome.wait()

    def close(self) -> None:
        """Finish what waits and end the thread; blocks meanwhile."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while batch := self._next_batch():
            for append, result in zip(batch, self._commit(batch), strict=True):
                with suppress(RuntimeError):  # its event loop has been closed, nobody waits any more
                    append.outcome.settle_from_thread(result)
        self._connection.close()

    def _next_batch(self) -> list[Append]:
        """At least one append, and those that wait behind it; none when the writer is to end."""
        batch: list[Append] = []
        append = self._queue.get()
        while append is not None:
            batch.append(append)
            if len(batch) == MAXIMUM_BATCH or self._queue.empty():
                return batch
            append = self._queue.get()
        if batch:
            self._queue.put(None)  # the end was met behind a batch: meet it again
        return batch

    def _commit(self, batch: Sequence[Append]) -> list[StorageFailed | None]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            results = [self._store(append) for append in batch]
            self._connection.execute("COMMIT")
            return results
        except Exception as error:  # whatever it is, those who wait are told and the thread lives on
            self._roll_back()
            if len(batch) > 1 and not is_busy(error):
                return [self._commit([append])[0] for append in batch]  # one may be to blame for all
            return [storage_failed("store an event in", self._path, error) for _ in batch]

    def _store(self, append: Append) -> StorageFailed | None:
        """Write one append into the open transaction, or nothing when its Thread has moved on."""
        if not self._move_thread(append):
            return self._conflict(append)
        place, first = append.thread_id, append.after + 1
        rows = [(place, sequence, append.at, *row) for sequence, row in enumerate(append.rows, first)]
        if len(rows) == 1:
            self._connection.execute(_INSERT_EVENT, rows[0])
        else:
            self._connection.executemany(_INSERT_EVENT, rows)
        return None

    def _move_thread(self, append: Append) -> bool:
        change, last = append.change, append.after + len(append.rows)
        place = (append.thread_id, append.after)
        if append.after == 0:
            line = (append.thread_id, append.at, append.at, change.name, change.preview, change.model)
            moved = self._connection.execute(_INSERT_THREAD, (*line, change.turns, last))
        elif change.changes_nothing:
            moved = self._connection.execute(_MOVE_THREAD, (append.at, last, *place))
        else:
            news = (change.turns, change.named, change.name, change.model, change.preview)
            moved = self._connection.execute(_CHANGE_THREAD, (append.at, last, *news, *place))
        return moved.rowcount == 1

    def _conflict(self, append: Append) -> StorageFailed:
        found = self._connection.execute(_LAST_SEQUENCE, (append.thread_id,)).fetchone()
        return moved_on(append.thread_id, append.after, 0 if found is None else found[0])

    def _roll_back(self) -> None:
        if self._connection.in_transaction:  # some errors, a full disk among them, have rolled back already
            with suppress(sqlite3.Error):  # the next BEGIN will tell
                self._connection.execute("ROLLBACK")
