"""Interlock's Connection: supervised, with deadlines and diagnostics, but without Thread, policy and store."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from benchmarks.subjects.ports import ARGUMENTS, LONGEST_MESSAGE, TOOL, TOUCH, Client, Place, expect
from interlock.catalog.offer import tools_for_model
from interlock.catalog.refresh import apply, list_source
from interlock.catalog.registry import Registry
from interlock.connections.connection import SupervisedConnection
from interlock.connections.pool import Pool
from interlock.vocabulary.server import HttpTransport, ServerConfig, StdioTransport
from interlock.vocabulary.snapshot import ServerView

TIMEOUT = 300.0


def config_of(place: Place) -> ServerConfig:
    transport = (
        HttpTransport(url=place.url)
        if place.url is not None
        else StdioTransport(command=place.command[0], args=place.command[1:])
    )
    return ServerConfig(name=place.name, transport=transport, line_limit=LONGEST_MESSAGE, required=True)


class ConnectionClient:
    def __init__(self, view: ServerView, connection: SupervisedConnection) -> None:
        self._view = view
        self._connection = connection
        self._registry = Registry()

    async def call(self) -> None:
        result = await self._connection.call_tool(TOOL, ARGUMENTS, timeout=TIMEOUT)
        expect(result.content[0]["text"] == "ok", result)

    async def tools(self) -> int:
        apply(self._registry, await list_source(self._view, TIMEOUT), self._view.config)
        return len(tools_for_model(self._registry.catalog, {}))

    async def touch(self) -> None:
        await self._connection.call_tool(TOUCH, {}, timeout=TIMEOUT)
        await self.tools()

    async def read(self, uri: str) -> int:
        content = (await self._connection.read_resource(uri, timeout=TIMEOUT)).contents[0]
        return len(content.text if content.text is not None else content.blob or "")


class Connections:
    @asynccontextmanager
    async def open(self, places: Sequence[Place]) -> AsyncIterator[Sequence[Client]]:
        async with Pool() as pool:
            configs = [config_of(place) for place in places]
            connections = [pool.acquire(config, owner="benchmark") for config in configs]
            await asyncio.gather(*(connection.ready(TIMEOUT) for connection in connections))
            yield [
                ConnectionClient(ServerView(config=config, connection=connection), connection)
                for config, connection in zip(configs, connections, strict=True)
            ]


SUBJECT = Connections()
