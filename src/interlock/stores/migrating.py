"""Bringing a database to the newest schema.

Owns: running alembic inside one transaction that only one process can hold.
Never: touches a database that a newer interlock wrote, or uses alembic's `op` and `context`: those are variables of
the process, and two stores that are opened side by side would write to each other's database.
"""

import sqlite3
from pathlib import Path
from typing import Any

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

from interlock.stores.revision import HEAD
from interlock.vocabulary.errors import StorageFailed


def upgrade(connection: Connection, database: str) -> None:
    """Upgrade inside the connection's open transaction; `database` names it in errors."""
    scripts = ScriptDirectory(str(Path(__file__).parent / "migrations"))

    def steps(revision: Any, _: MigrationContext) -> Any:
        return scripts._upgrade_revs("head", revision)

    context = MigrationContext.configure(connection, opts={"script": scripts, "fn": steps})
    found = context.get_current_revision()
    if found is not None and found not in {script.revision for script in scripts.walk_revisions()}:
        raise newer_schema(database, found)
    context.run_migrations(operations=Operations(context))


def upgrade_sqlite(path: Path, busy_timeout: float) -> None:
    """Upgrade the file `path`, whole or not at all. Blocks; raises sqlite3's or SQLAlchemy's errors."""
    engine = create_engine(
        URL.create("sqlite", database=str(path)), connect_args={"timeout": busy_timeout}, poolclass=NullPool
    )
    event.listen(engine, "connect", _leave_transactions_to_us)
    event.listen(engine, "begin", _begin_immediately)
    with engine.begin() as connection:
        upgrade(connection, str(path))


def newer_schema(database: str, found: str) -> StorageFailed:
    return StorageFailed(
        f"cannot use the database {database}: its schema {found} is newer than this interlock's {HEAD};"
        " upgrade interlock, or set another INTERLOCK_HOME; nothing was changed",
        found=found,
        known=HEAD,
    )


def _leave_transactions_to_us(connection: sqlite3.Connection, _: Any) -> None:
    # Else the driver runs DDL outside any transaction, and a crash would leave half a schema.
    connection.isolation_level = None


def _begin_immediately(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
