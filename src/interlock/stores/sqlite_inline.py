"""Small writes at once, on the event loop's own thread, while the file is free and its disk quick.

Owns: a second writing connection, and the judgement of when a write costs less than the way to a thread and back.
Never: waits for a lock, takes a large write, checkpoints, or reports a failure: what it cannot do, the writer's thread
    tries again and answers for.

A commit of a small row in WAL mode with synchronous NORMAL is a write into the page cache: some 20 microseconds. The
way to a thread and back takes two switches and a turn of the loop, several times as much.
"""

import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

LARGEST = 64 * 1024
"""Characters of a write: what is larger is worth a thread."""
TO_THE_THREAD = 200
"""One write in so many goes to the thread, whose commit copies what the log holds into the file (a checkpoint)."""
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
        self._count = 0
        self._resting_until = 0.0
        self._was_slow = False

    def try_now(
        self, write: Callable[[sqlite3.Connection], T], size: int, *, one_statement: bool = False
    ) -> Done[T] | None:
        """Carry out `write` in a transaction; None: nothing was written, and it must go to the thread.

        `one_statement`: it executes only one, which is a transaction by itself.
        """
        began = time.monotonic()
        self._count += 1
        if size > LARGEST or began < self._resting_until or self._count % TO_THE_THREAD == 0:
            return None
        try:
            if not one_statement:
                self._connection.execute("BEGIN IMMEDIATE")
            done = Done(write(self._connection))
            if not one_statement:
                self._connection.execute("COMMIT")
        except Exception:  # a lock, a full disk, a value that no column takes: the thread finds it again
            self._roll_back()
            return None
        except BaseException:  # Ctrl-C, say: what is written next must not get into a transaction that never ends
            self._roll_back()
            raise
        ended = time.monotonic()
        slow = ended - began > SLOW
        if slow and self._was_slow:
            self._resting_until = ended + REST
        self._was_slow = slow
        return done

    def close(self) -> None:
        self._connection.close()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):  # the next BEGIN will tell
                self._connection.execute("ROLLBACK")
