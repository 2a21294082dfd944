"""What an application asks a server for which it needs no Thread.

Owns: the connection that is held for the length of one request, or of a block.
Never: keeps a server running that nobody asks.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from interlock.connections.pool import Pool
from interlock.threads.direct import DirectRequests, usable
from interlock.vocabulary.server import ServerConfig
from interlock.vocabulary.snapshot import ServerView

OWNER = "application"
"""Holds the connections of these requests in the pool; a Thread's id is a UUID and never this."""


class ServerRequests(DirectRequests):
    """Requests over the pool: a server that nobody else holds is started for them and closed after (RPC-2).

    `servers` gives the configured ones of now.
    """

    def __init__(self, servers: Callable[[], Mapping[str, ServerConfig]], pool: Pool) -> None:
        super().__init__(self._hold)
        self._servers = servers
        self._pool = pool

    @asynccontextmanager
    async def _hold(self, server: str) -> AsyncIterator[ServerView]:
        config = usable(self._servers(), server)
        connection = self._pool.acquire(config, owner=OWNER)
        try:
            yield ServerView(config=config, connection=connection)
        finally:
            self._pool.release(connection)
