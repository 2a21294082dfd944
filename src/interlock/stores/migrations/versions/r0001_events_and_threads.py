"""Events of Threads, the index of Threads, and (PostgreSQL) the owners of claims."""

import sqlalchemy as sa
from alembic.operations import Operations

revision = "0001"
down_revision = None


def upgrade(operations: Operations) -> None:
    operations.create_table(
        "events",
        sa.Column("thread_id", sa.Text, primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    operations.create_table(
        "threads",
        sa.Column("thread_id", sa.Text, primary_key=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.Column("name", sa.Text),
        sa.Column("preview", sa.Text, nullable=False),
        sa.Column("model", sa.Text),
        sa.Column("turns", sa.Integer, nullable=False),
        sa.Column("last_sequence", sa.BigInteger, nullable=False),
        sa.Column("archived", sa.Boolean, nullable=False),
    )
    operations.create_index("threads_newest_first", "threads", ["updated_at", "thread_id"])
    if operations.get_bind().dialect.name == "postgresql":
        operations.create_table(
            "claims",
            sa.Column("thread_id", sa.Text, primary_key=True),
            sa.Column("process_id", sa.BigInteger, nullable=False),
            sa.Column("host", sa.Text, nullable=False),
            sa.Column("since", sa.BigInteger, nullable=False),
        )
