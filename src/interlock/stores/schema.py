"""The tables, for SQLite and PostgreSQL alike.

Owns: the tables as SQLAlchemy sees them, and the revision of the schema that this version writes.
Never: creates them; migrations do.
"""

from typing import Final

from sqlalchemy import BigInteger, Boolean, Column, Integer, LargeBinary, MetaData, Table, Text

from interlock.stores.revision import HEAD

__all__ = ["HEAD", "checkpoints", "claims", "events", "memory_uses", "metadata", "threads"]

metadata: Final = MetaData()

events: Final = Table(
    "events",
    metadata,
    Column("thread_id", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("version", Integer, nullable=False),
    # Text, not a JSON type: what is stored must come back byte for byte, and jsonb knows neither
    # "\u0000" nor lone surrogates nor the order of members.
    Column("payload", Text, nullable=False),
    sqlite_with_rowid=False,
)

threads: Final = Table(
    "threads",
    metadata,
    Column("thread_id", Text, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("name", Text),
    Column("preview", Text, nullable=False),
    Column("model", Text),
    Column("turns", Integer, nullable=False),
    Column("last_sequence", BigInteger, nullable=False),
    Column("archived", Boolean, nullable=False),
)

memory_uses: Final = Table(
    "memory_uses",
    metadata,
    Column("thread_id", Text, primary_key=True),
    Column("uses", BigInteger, nullable=False),
    Column("last_used_at", BigInteger, nullable=False),
)
"""How often answers cited the memory that was made of a Thread."""

checkpoints: Final = Table(
    "checkpoints",
    metadata,
    Column("thread_id", Text, primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("version", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
)
"""Folded states, which save reading a long Thread from its start; never the authority, and may be deleted."""

claims: Final = Table(
    "claims",
    metadata,
    Column("thread_id", Text, primary_key=True),
    Column("process_id", BigInteger, nullable=False),
    Column("host", Text, nullable=False),
    Column("since", BigInteger, nullable=False),
)
"""Who holds the advisory lock of a Thread. Only PostgreSQL has this table; beside SQLite the lock files say it."""
