"""Run by alembic: uses the connection that `migrating` opened, inside its transaction."""

from alembic import context

from interlock.stores.schema import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
context.run_migrations()
