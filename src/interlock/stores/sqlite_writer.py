"""The one writer of an SQLite database.

Owns: the writing connection and its thread; the order and the transactions of what is written.
Never: knows what it writes, reads for others, or tells anyone before the commit.

A small write is carried out at once where that is possible (`sqlite_inline`). The others go to the thread: what waits
when it gets to it goes into one transaction (group commit), so that a slow disk is asked once for many Threads.
"""

import queue
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from interlock.stores.outcome import Outcome
from interlock.stores.sqlite_failures import is_busy, storage_failed
from interlock.stores.sqlite_inline import COPY_AFTER, InlineWriter
from interlock.vocabulary.errors import StorageFailed

MAXIMUM_BATCH = 128
"""Writes in one transaction; bounds how long the first of them waits for the others."""


Order = Literal["copy", "end"]
"""To the thread: copy the log into the file, where nobody waits for that; end."""


class Write(ABC):
    """What is to be written together. `size`: about how many characters that is."""

    __slots__ = ("outcome", "size")

    outcome: Outcome[None]
    """Tells who waits for it; made by the writer when somebody has to wait."""

    def __init__(self, size: int) -> None:
        self.size = size

    @abstractmethod
    def carry_out(self, connection: sqlite3.Connection) -> StorageFailed | None:
        """Write into the open transaction; a refusal is returned, and then nothing was written."""


class SqliteWriter:
    """Takes writes until it is closed; each is settled once it is committed, or refused."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """`connection` is in autocommit mode and belongs to the writer from here on."""
        self._path = path
        self._connection = connection
        self._inline = InlineWriter(path)
        self._waiting = 0
        self._queue: queue.SimpleQueue[Write | Order] = queue.SimpleQueue()
        self._closed = False
        # A daemon: a host that is torn down without closing its store must not hang at exit, and
        # what was committed is safe.
        self._thread = threading.Thread(target=self._run, name="interlock-sqlite-writer", daemon=True)
        self._thread.start()

    async def write(self, write: Write) -> None:
        """Return once it is committed; StorageFailed if it was refused or failed, and then nothing was written."""
        if not self.write_now(write):
            await self.write_in_turn(write)

    def write_now(self, write: Write) -> bool:
        """As `write`, but False where that would have to wait: then nothing was written."""
        if self._closed:
            raise StorageFailed(f"cannot store an event in {self._path}: the store is closed", path=str(self._path))
        if self._waiting:  # what waits goes first: an append must not be carried out before an earlier one
            return False
        done = self._inline.try_now(write.carry_out, write.size)
        if done is None:
            return False
        if done.returned is not None:
            raise done.returned
        if self._inline.log >= self._inline.copy_at:
            self._ask_to_copy()
        return True

    def execute_now(self, statement: str, parameters: Sequence[object], size: int) -> bool:
        """One statement, as `write_now`; False also where it fails, for `write` tells why."""
        if self._waiting or self._closed or not self._inline.execute(statement, parameters, size):
            return False
        if self._inline.log >= self._inline.copy_at:
            self._ask_to_copy()
        return True

    async def write_in_turn(self, write: Write) -> None:
        """As `write`, by the thread and after all that waits for it."""
        write.outcome = Outcome()
        self._waiting += 1
        try:
            self._queue.put(write)
            await write.outcome.wait()
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Finish what waits and end the thread; blocks meanwhile."""
        if not self._closed:
            self._closed = True
            self._queue.put("end")
        self._thread.join()
        self._inline.close()

    def _ask_to_copy(self) -> None:
        self._inline.copy_at = self._inline.log + COPY_AFTER
        self._queue.put("copy")

    def _run(self) -> None:
        while (work := self._next()) != "end":
            if work == "copy":
                self._copy()
                continue
            for write, result in zip(work, self._commit(work), strict=True):
                with suppress(RuntimeError):  # its event loop has been closed, nobody waits any more
                    write.outcome.settle_from_thread(result)
        self._connection.close()

    def _next(self) -> list[Write] | Order:
        """An order, or at least one write and those that wait behind it."""
        batch: list[Write] = []
        work = self._queue.get()
        while isinstance(work, Write):
            batch.append(work)
            if len(batch) == MAXIMUM_BATCH or self._queue.empty():
                return batch
            work = self._queue.get()
        if batch:
            self._queue.put(work)  # an order was met behind a batch: meet it again
        return batch or work

    def _copy(self) -> None:
        """Copy the log into the file, while others write: all of it, unless somebody still reads or writes."""
        with suppress(sqlite3.Error):  # the next commit will tell
            _, in_log, copied = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if in_log == copied:
                self._inline.copied()

    def _commit(self, batch: Sequence[Write]) -> list[StorageFailed | None]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            results = [write.carry_out(self._connection) for write in batch]
            self._connection.execute("COMMIT")  # this connection copies a long log by itself (wal_autocheckpoint)
            self._inline.copied()
            return results
        except Exception as error:  # whatever it is, those who wait are told and the thread lives on
            self._roll_back()
            if len(batch) > 1 and not is_busy(error):
                return [self._commit([write])[0] for write in batch]  # one may be to blame for all
            return [storage_failed("store an event in", self._path, error) for _ in batch]

    def _roll_back(self) -> None:
        if self._connection.in_transaction:  # some errors, a full disk among them, have rolled back already
            with suppress(sqlite3.Error):  # the next BEGIN will tell
                self._connection.execute("ROLLBACK")
