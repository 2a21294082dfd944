"""What is written to an SQLite database: events at the end of a Thread, and all else.

Owns: the statements of every write.
Never: begins or ends a transaction; the writer does.
"""

import sqlite3
import sys
from collections.abc import Sequence

from interlock.stores.codec import Row
from interlock.stores.sequence import gone, incomplete, moved_on
from interlock.stores.sqlite_writer import Write
from interlock.stores.summary import Change, line_of
from interlock.vocabulary.errors import StorageFailed
from interlock.vocabulary.event import ThreadRecord

INSERT_EVENT = "INSERT INTO events (thread_id, sequence, at, kind, version, payload) VALUES (?, ?, ?, ?, ?, ?)"
_INSERT_NEXT_EVENT = """INSERT OR IGNORE INTO events (thread_id, sequence, at, kind, version, payload)
    SELECT ?1, ?2 + 1, ?3, ?4, ?5, ?6 WHERE EXISTS (SELECT 1 FROM events WHERE thread_id = ?1 AND sequence = ?2)"""
_INSERT_THREAD = """INSERT OR IGNORE INTO threads
    (thread_id, created_at, updated_at, name, preview, model, turns, last_sequence, archived)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_CHANGE_THREAD = """UPDATE threads SET updated_at = ?, last_sequence = ?,
    turns = turns + ?, name = CASE WHEN ? THEN ? ELSE name END, model = coalesce(?, model),
    preview = CASE WHEN preview = '' THEN ? ELSE preview END, archived = coalesce(?, archived)
    WHERE thread_id = ?"""
_LAST_SEQUENCE = "SELECT max(sequence) FROM events WHERE thread_id = ?"

COUNT_USE = """INSERT INTO memory_uses (thread_id, uses, last_used_at)
    SELECT thread_id, 1, ? FROM threads WHERE thread_id = ?
    ON CONFLICT (thread_id) DO UPDATE SET uses = uses + 1, last_used_at = excluded.last_used_at"""
SAVE_CHECKPOINT = """INSERT OR REPLACE INTO checkpoints (thread_id, sequence, version, digest, payload)
    SELECT thread_id, ?, ?, ?, ? FROM threads WHERE thread_id = ?"""
DELETE = tuple(
    f"DELETE FROM {table} WHERE thread_id = ?"  # noqa: S608 -- our own tables
    for table in ("checkpoints", "memory_uses", "events", "threads")
)
_NEW_THREAD = """INSERT INTO threads
    (thread_id, created_at, updated_at, name, preview, model, turns, last_sequence, archived)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_FIRST_EVENT = "INSERT INTO events (thread_id, sequence, at, kind, version, payload) VALUES (?, 1, ?, ?, ?, ?)"
_COUNT_EVENTS = "SELECT count(*) FROM events WHERE thread_id = ? AND sequence <= ?"
_LIST_THREAD = """INSERT OR IGNORE INTO threads
    (thread_id, created_at, updated_at, name, preview, model, turns, last_sequence, archived)
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
    WHERE (SELECT count(*) FROM events WHERE thread_id = ?1 AND sequence <= ?8) = ?8
    AND NOT EXISTS (SELECT 1 FROM events WHERE thread_id = ?1 AND sequence > ?8)"""
_COPY_EVENTS = """INSERT INTO events (thread_id, sequence, at, kind, version, payload)
    SELECT ?, sequence, at, kind, version, payload FROM events
    WHERE thread_id = ? AND sequence > 1 AND sequence <= ?"""


class Append(Write):
    """Events of one Thread, encoded, that are to be stored together; what they change in its line of the index."""

    __slots__ = ("after", "at", "change", "rows", "thread_id")

    def __init__(self, thread_id: str, after: int, at: int, rows: Sequence[Row], change: Change) -> None:
        super().__init__(sum([len(row.payload) for row in rows]))
        self.thread_id = thread_id
        self.after = after
        self.at = at
        self.rows = rows
        self.change = change

    def carry_out(self, connection: sqlite3.Connection) -> StorageFailed | None:
        """Nothing is written when the Thread has moved on."""
        stored = self._begin_thread(connection) if self.after == 0 else self._follow(connection)
        if stored:
            return None
        (last,) = connection.execute(_LAST_SEQUENCE, (self.thread_id,)).fetchone()
        return moved_on(self.thread_id, self.after, last or 0)

    def _begin_thread(self, connection: sqlite3.Connection) -> bool:
        change = self.change
        line = (self.thread_id, self.at, self.at, change.name, change.preview, change.model)
        columns = (*line, change.turns, len(self.rows), bool(change.archived))
        if connection.execute(_INSERT_THREAD, columns).rowcount != 1:
            return False
        self._insert(connection, self.rows, first=1)
        return True

    def _follow(self, connection: sqlite3.Connection) -> bool:
        next_event = (self.thread_id, self.after, self.at, *self.rows[0])
        if connection.execute(_INSERT_NEXT_EVENT, next_event).rowcount != 1:
            return False
        if len(self.rows) > 1:
            self._insert(connection, self.rows[1:], first=self.after + 2)
        change = self.change
        if change.moves:
            news = (change.turns, change.named, change.name, change.model, change.preview, change.archived)
            connection.execute(_CHANGE_THREAD, (self.at, self.after + len(self.rows), *news, self.thread_id))
        return True

    def _insert(self, connection: sqlite3.Connection, rows: Sequence[Row], *, first: int) -> None:
        numbered = enumerate(rows, first)
        connection.executemany(INSERT_EVENT, [(self.thread_id, number, self.at, *row) for number, row in numbered])


class Statements(Write):
    """Statements with the rows of their parameters, all of them or none."""

    __slots__ = ("steps",)

    def __init__(self, *steps: tuple[str, Sequence[Sequence[object]]]) -> None:
        super().__init__(size=sys.maxsize)  # nobody waits for these as a call waits for its events
        self.steps = steps

    def carry_out(self, connection: sqlite3.Connection) -> StorageFailed | None:
        for statement, rows in self.steps:
            connection.executemany(statement, rows)
        return None


class Copy(Write):
    """A new Thread: its first event, and those of `source` from the second on, as many as its line says."""

    __slots__ = ("first", "record", "source")

    def __init__(self, source: str, first: Row, record: ThreadRecord) -> None:
        super().__init__(size=sys.maxsize)
        self.source = source
        self.first = first
        self.record = record

    def carry_out(self, connection: sqlite3.Connection) -> StorageFailed | None:
        target, last = self.record.thread_id, self.record.last_sequence
        (there,) = connection.execute(_COUNT_EVENTS, (self.source, last)).fetchone()
        if there != last:
            return gone(self.source, last)
        connection.execute(_NEW_THREAD, line_of(self.record))
        connection.execute(_FIRST_EVENT, (target, self.record.created_at, *self.first))
        connection.execute(_COPY_EVENTS, (target, self.source, last))
        return None


class ListThread(Write):
    """The line of a Thread whose events are stored already."""

    __slots__ = ("record",)

    def __init__(self, record: ThreadRecord) -> None:
        super().__init__(size=sys.maxsize)  # counting its events may take a moment
        self.record = record

    def carry_out(self, connection: sqlite3.Connection) -> StorageFailed | None:
        listed = connection.execute(_LIST_THREAD, line_of(self.record)).rowcount == 1
        return None if listed else incomplete(self.record)
