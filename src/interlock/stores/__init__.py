"""Where the events of Threads are kept: SQLite in one file by default, PostgreSQL by URL.

Owns: tables, migrations, the codec of stored events, claims.
Never: folds events or decides what is recorded.
"""

from interlock.stores.opening import open_store

__all__ = ["open_store"]
