"""${message}."""

from alembic.operations import Operations
import sqlalchemy as sa

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade(operations: Operations) -> None:
    ${upgrades if upgrades else "pass"}
