"""What PostgreSQL's errors mean to a person, and which of them mean that the connection is gone.

Owns: the sentence for each way in which the server can fail; the name by which a database is shown.
Never: shows a password.
"""

from asyncpg import (  # type: ignore[import-untyped] # it ships no types
    InterfaceError,
    InternalClientError,
    PostgresError,
)

from interlock.vocabulary.errors import StorageFailed

_LOST_STATES = ("57P01", "57P02", "57P03", "53300")
"""Shut down by an administrator, crashed, not yet accepting, too many connections: a later attempt may succeed."""

_CAUSES = (
    ("53100", "its disk is full; free some space there"),
    ("25006", "it is read-only; name its primary server"),
    ("28", "it refused the user or the password; check the URL"),
    ("3D000", "there is no such database; create it first"),
    ("42501", "the user may not do that; grant it the rights to its schema"),
    ("55P03", "another process has locked it; wait for that process or end it"),
)


def shown(url: str) -> str:
    """Host, port and database of a URL, without user and password."""
    place = url.partition("://")[2].partition("?")[0]
    return place.rpartition("@")[2]


def is_lost(error: BaseException) -> bool:
    """Whether the connection broke, so that another one may do, and nobody knows what came of the request."""
    if isinstance(error, PostgresError):
        state = error.sqlstate or ""
        return state.startswith("08") or state in _LOST_STATES
    if isinstance(error, ValueError):
        return False  # we asked for something wrong; another connection would not help
    return isinstance(error, InterfaceError | InternalClientError | OSError | TimeoutError)


def storage_failed(action: str, database: str, error: BaseException) -> StorageFailed:
    """The error for `action` (such as "store an event in") that failed on `database`."""
    error = getattr(error, "orig", None) or error  # SQLAlchemy wraps the driver's errors
    error = error.__cause__ if isinstance(error.__cause__, PostgresError) else error  # so does its dialect
    state = getattr(error, "sqlstate", None) or ""
    cause = next((text for prefix, text in _CAUSES if state.startswith(prefix)), None)
    if cause is None:
        first_line = (str(error) or type(error).__name__).splitlines()[0]
        cause = f"{first_line}; check that the server runs and can be reached"
    return StorageFailed(f"cannot {action} the database {database}: {cause}", database=database)
