"""The official SDK's Client."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from mcp import Client as SdkClient
from mcp.client.stdio import StdioServerParameters, stdio_client

from benchmarks.subjects.ports import ARGUMENTS, TOOL, TOUCH, Client, Place, expect, side_by_side


class OfSdk:
    def __init__(self, client: SdkClient) -> None:
        self._client = client

    async def call(self) -> None:
        result = await self._client.call_tool(TOOL, ARGUMENTS)
        expect(result.content[0].text == "ok", result)

    async def tools(self) -> int:
        tools, cursor = [], None
        while True:
            page = await self._client.list_tools(cursor=cursor, cache_mode="bypass")
            tools += [
                {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
                for tool in page.tools
            ]
            cursor = page.next_cursor
            if cursor is None:
                return len(tools)

    async def touch(self) -> None:
        await self._client.call_tool(TOUCH, {})
        await self.tools()

    async def read(self, uri: str) -> int:
        content = (await self._client.read_resource(uri)).contents[0]
        return len(content.text if hasattr(content, "text") else content.blob)


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[Client]:
    server = place.url or stdio_client(StdioServerParameters(command=place.command[0], args=list(place.command[1:])))
    async with SdkClient(server) as client:
        yield OfSdk(client)


class Sdk:
    @asynccontextmanager
    async def open(self, places: Sequence[Place]) -> AsyncIterator[Sequence[Client]]:
        async with side_by_side(opened(place) for place in places) as clients:
            yield clients


SUBJECT = Sdk()
