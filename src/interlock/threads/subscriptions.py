"""The resources that a Thread wants to hear of.

Owns: which (server, URI) those are, and on which connection each is subscribed to; it follows a reload (RES-12).
Never: reads a resource, or keeps a connection alive: a subscription ends with its connection.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import anyio

from interlock.threads.direct import Holding
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.ports import Connection
from interlock.vocabulary.snapshot import ServerView

PATIENCE: Final = 2.0
"""Seconds that a server has to take back a subscription."""

Updated = Callable[[str, str], None]
Warn = Callable[[str, str], None]

Key = tuple[str, str]
"""Server and URI."""


class Subscriptions:
    """The subscriptions of one Thread. `updated` is told of resources that may have changed unheard, `warn` of those
    that were lost; both get a server and a text, and must not wait."""

    def __init__(self, holding: Holding, *, updated: Updated, warn: Warn) -> None:
        self._holding = holding
        self._updated = updated
        self._warn = warn
        self._on: dict[Key, Connection] = {}
        self._changing: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    def __repr__(self) -> str:
        return f"<Subscriptions {sorted(self._on)}>"

    async def add(self, server: str, uri: str) -> None:
        """Hear of changes of a resource from now on; a second time changes nothing.

        Raises:
            InvalidRequest, NotPermitted: there is no such server, or it is disabled.
            ServerFailed: it offers no subscriptions (kind unsupported), refused, or cannot be asked.
        """
        async with self._holding(server) as view, self._changing[server]:
            if self._on.get((server, uri)) is not view.connection:
                await view.connection.subscribe_resource(uri, timeout=view.config.tool_timeout)
                self._on[server, uri] = view.connection

    async def remove(self, server: str, uri: str) -> None:
        """Hear no more of it; what was not subscribed to is no error."""
        if (server, uri) in self._on:
            async with self._changing[server]:
                connection = self._on.pop((server, uri), None)
                if connection is not None:
                    await _take_back(connection, uri)

    def concerns(self, server: str, uri: str) -> bool:
        """Whether somebody here asked for `uri`, or for what it is a part of.

        A shared connection tells of the resources of other Threads too, and a server may tell of a part of what was
        subscribed to (specification: resources, Subscriptions).
        """
        return any(name == server and uri.startswith(wanted) for name, wanted in self._on)

    async def follow(self, views: Mapping[str, ServerView]) -> None:
        """Move to the connections of another Generation; what cannot be moved is told and forgotten."""
        async with anyio.create_task_group() as tasks:
            for server in {server for server, _ in self._on}:
                tasks.start_soon(self._follow_server, server, views.get(server))

    async def close(self) -> None:
        """Take back all subscriptions, as far as that is possible in a moment: connections may be shared."""
        on, self._on = self._on, {}
        async with anyio.create_task_group() as tasks:
            for (_, uri), connection in on.items():
                tasks.start_soon(_take_back, connection, uri)

    async def _follow_server(self, server: str, view: ServerView | None) -> None:
        async with self._changing[server]:
            for (name, uri), connection in tuple(self._on.items()):
                if name == server and (view is None or view.connection is not connection):
                    await self._move(server, uri, connection, view)

    async def _move(self, server: str, uri: str, old: Connection, view: ServerView | None) -> None:
        del self._on[server, uri]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_take_back, old, uri)
            if view is None:
                self._warn(server, f"changes of {uri} are no longer heard of: server {server!r} is gone")
                return
            try:
                await view.connection.subscribe_resource(uri, timeout=view.config.tool_timeout)
            except ServerFailed as error:
                self._warn(server, f"changes of {uri} are no longer heard of: {error.message}")
            else:
                self._on[server, uri] = view.connection
                self._updated(server, uri)


async def _take_back(connection: Connection, uri: str) -> None:
    """Best effort: a server that has ended, or does not answer, may tell us what we do not listen to."""
    with anyio.move_on_after(PATIENCE), suppress(ServerFailed):
        await connection.unsubscribe_resource(uri, timeout=PATIENCE)
