import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.stores.postgres_server import PostgresServer

Tamper = Callable[..., Awaitable[list[Any]]]


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where `open_store` finds an empty store: once a file, once a database of a real server."""
    if request.param == "sqlite":
        return str(tmp_path / "home" / "interlock.db")
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.new_database()


@pytest.fixture
def tamper(place: str) -> Tamper:
    """Run a statement on the store's database behind its back."""

    async def run(statement: str) -> list[Any]:
        if "://" in place:
            connection = await asyncpg.connect(place)
            try:
                return [tuple(row) for row in await connection.fetch(statement)]
            finally:
                await connection.close()
        with closing(sqlite3.connect(place, isolation_level=None)) as file:
            return file.execute(statement).fetchall()

    return run
