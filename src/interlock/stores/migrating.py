"""Bringing a database to the newest schema.

Owns: running alembic inside one transaction that only one process can hold.
Never: touches a database that a newer interlock wrote.
"""

import sqlite3
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

from interlock.stores.revision import HEAD
from interlock.vocabulary.errors import StorageFailed


def upgrade(connection: Connection, database: str) -> None:
    """Upgrade inside the connection's open transaction; `database` names it in errors."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    found = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise newer_schema(database, found)
    command.upgrade(config, "head")


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
