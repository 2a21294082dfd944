"""How often memories were used, and folded states of long Threads."""

import sqlalchemy as sa
from alembic.operations import Operations

revision = "0002"
down_revision = "0001"


def upgrade(operations: Operations) -> None:
    operations.create_table(
        "memory_uses",
        sa.Column("thread_id", sa.Text, primary_key=True),
        sa.Column("uses", sa.BigInteger, nullable=False),
        sa.Column("last_used_at", sa.BigInteger, nullable=False),
    )
    operations.create_table(
        "checkpoints",
        sa.Column("thread_id", sa.Text, primary_key=True),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("payload", sa.LargeBinary, nullable=False),
    )
