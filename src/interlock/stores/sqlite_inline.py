"""Small writes at once, on the event loop's own thread, while the file is free and its disk quick.

Owns: a second writing connection, the judgement of when a write costs less than the way to a thread and back, and how
    long the write-ahead log has become.
Never: waits for a lock, takes a large write, checkpoints, or reports a failure: what it cannot do, the writer's thread
    tries again and answers for.

A commit of a small row in WAL mode with synchronous NORMAL is a write into the page cache: some 20 microseconds. The
way to a thread and back takes two switches and a turn of the loop, several times as much.
"""

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

LARGEST = 64 * 1024
"""Characters of a write: what is larger is worth a thread."""
COPY_AFTER = 4 * 1024 * 1024
"""Bytes that the log grows until the thread is asked to copy it into the file (a checkpoint), as SQLite does by itself
after a thousand pages. Nobody waits for it: it syncs the disk, which takes as long as a hundred writes."""
LONGEST_LOG = 8 * COPY_AFTER
"""Bytes from which on a write waits for the thread. A log that is written to while it is copied cannot begin anew."""
PAGES = 8 * 1024
"""Bytes that a small write adds to the log: a page, and now and then its neighbours."""
SLOW, REST = 0.05, 1.0
"""Two writes in a row that took so many seconds each are followed by so many in which the loop does not wait for this
disk. One alone says less of the disk than of a machine with too much to do, where the thread would wait even longer."""

T = TypeVar("T")


class Done(NamedTuple, Generic[T]):
    """A write that was carried out and committed; what it returned."""

    returned: T


class InlineWriter:
    """Used, like the store, on one event loop."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute("PRAGMA wal_autocheckpoint = 0")
        self.log = 0
        """About how many bytes the log holds that are not known to be in the file."""
        self.copy_at = COPY_AFTER
        """From how many on the thread is asked to copy it."""
        self._resting_until = 0.0
        self._was_slow = False

    def execute(self, statement: str, parameters: Sequence[object], size: int) -> bool:
        """One statement, which is a transaction by itself. False: as None of `try_now`."""
        began = time.monotonic()
        if size > LARGEST or self.log > LONGEST_LOG or began < self._resting_until:
            return False
        try:
            self._connection.execute(statement, parameters)
        except Exception:  # as below; a statement by itself leaves no transaction
            return False
        self.log += size + PAGES
        ended = time.monotonic()
        if self._was_slow or ended - began > SLOW:
            self._judge(began, ended)
        return True

    def try_now(self, write: Callable[[sqlite3.Connection], T], size: int) -> Done[T] | None:
        """Carry out `write` in a transaction; None: nothing was written, and it must go to the thread."""
        began = time.monotonic()
        if size > LARGEST or self.log > LONGEST_LOG or began < self._resting_until:
            return None
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            done = Done(write(self._connection))
            self._connection.execute("COMMIT")
        except Exception:  # a lock, a full disk, a value that no column takes: the thread finds it again
            self._roll_back()
            return None
        except BaseException:  # Ctrl-C, say: what is written next must not get into a transaction that never ends
            self._roll_back()
            raise
        self.log += size + PAGES
        self._judge(began, time.monotonic())
        return done

    def copied(self) -> None:
        """All that the log held is in the file. Called by the thread; what is written at that moment may not count."""
        self.log, self.copy_at = 0, COPY_AFTER

    def _judge(self, began: float, ended: float) -> None:
        """Note how long a write took."""
        slow = ended - began > SLOW
        if slow and self._was_slow:
            self._resting_until = ended + REST
        self._was_slow = slow

    def close(self) -> None:
        self._connection.close()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):  # the next BEGIN will tell
                self._connection.execute("ROLLBACK")
