"""FastMCP: one Client for each server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastmcp import Client as FastClient
from fastmcp.client.transports import StdioTransport

from benchmarks.subjects.ports import ARGUMENTS, TOOL, TOUCH, Client, Place, expect, side_by_side


class OfFastMcp:
    def __init__(self, client: FastClient) -> None:
        self._client = client

    async def call(self) -> None:
        result = await self._client.call_tool(TOOL, ARGUMENTS)
        expect(result.content[0].text == "ok", result)

    async def tools(self) -> int:
        tools = await self._client.list_tools(cache_mode="refresh")
        return len([{"name": t.name, "description": t.description, "parameters": t.input_schema} for t in tools])

    async def touch(self) -> None:
        await self._client.call_tool(TOUCH, {})
        await self.tools()

    async def read(self, uri: str) -> int:
        content = (await self._client.read_resource(uri))[0]
        return len(content.text if hasattr(content, "text") else content.blob)


def client_of(place: Place) -> FastClient:
    """`keep_alive` would leave the process running after its client."""
    if place.url is not None:
        return FastClient(place.url)
    return FastClient(StdioTransport(place.command[0], list(place.command[1:]), keep_alive=False))


class FastMcp:
    @asynccontextmanager
    async def open(self, places: Sequence[Place]) -> AsyncIterator[Sequence[Client]]:
        async with side_by_side(client_of(place) for place in places) as clients:
            yield [OfFastMcp(client) for client in clients]


SUBJECT = FastMcp()
