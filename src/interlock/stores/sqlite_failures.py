"""What SQLite's errors mean to a person.

Owns: the sentence and the way out for each way in which the file can fail.
Never: retries; the driver's busy timeout has passed when an error arrives here.
"""

import sqlite3
from pathlib import Path

from interlock.vocabulary.errors import StorageFailed

_CAUSES = (
    (sqlite3.SQLITE_FULL, "the disk is full; free some space"),
    (sqlite3.SQLITE_READONLY, "it is read-only; make the file and its folder writable, or set another INTERLOCK_HOME"),
    (sqlite3.SQLITE_BUSY, "another process has locked it; wait for that process or end it"),
    (sqlite3.SQLITE_LOCKED, "another process has locked it; wait for that process or end it"),
    (sqlite3.SQLITE_CANTOPEN, "it cannot be opened; check that its folder exists and can be written"),
    (sqlite3.SQLITE_NOTADB, "it is not an SQLite database; move it away or name another file"),
    (sqlite3.SQLITE_CORRUPT, "it is damaged; restore it from a copy"),
    (sqlite3.SQLITE_TOOBIG, "one value is larger than SQLite can hold; send less at once"),
)


def is_busy(error: BaseException) -> bool:
    return _primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def storage_failed(action: str, path: Path, error: BaseException) -> StorageFailed:
    """The error for `action` (such as "store an event in") that failed on the database `path`."""
    error = getattr(error, "orig", None) or error  # SQLAlchemy wraps the driver's errors
    code = _primary_code(error)
    cause = next((text for number, text in _CAUSES if number == code), None)
    if cause is None:
        cause = f"{str(error) or type(error).__name__}; check the disk and the file"
    return StorageFailed(f"cannot {action} the database {path}: {cause}", path=str(path))


def _primary_code(error: BaseException) -> int | None:
    """SQLite's result code without its extension (sqlite.org/rescode.html), where the driver gives one."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None
