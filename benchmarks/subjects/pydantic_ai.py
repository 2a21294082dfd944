"""pydantic-ai: one MCPToolset for each server, entered side by side."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastmcp.client.transports import StdioTransport
from pydantic_ai import RunContext, RunUsage
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel

from benchmarks.subjects.ports import ARGUMENTS, TOOL, TOUCH, Client, Place, expect, side_by_side


class OfPydanticAi:
    def __init__(self, toolset: MCPToolset) -> None:
        self._toolset = toolset
        self._context = RunContext(deps=None, model=TestModel(), usage=RunUsage())

    async def call(self) -> None:
        expect(await self._toolset.direct_call_tool(TOOL, ARGUMENTS) == "ok", "not ok")

    async def tools(self) -> int:
        return len(await self._toolset.get_tools(self._context))

    async def touch(self) -> None:
        await self._toolset.direct_call_tool(TOUCH, {})
        await self.tools()

    async def read(self, uri: str) -> int:
        """A blob arrives decoded; it is counted as the base64 that it was."""
        content = await self._toolset.read_resource(uri)
        return len(content) if isinstance(content, str) else len(content.data) * 4 // 3


def toolset_of(place: Place) -> MCPToolset:
    if place.url is not None:
        return MCPToolset(place.url, cache_tools=False)
    transport = StdioTransport(place.command[0], list(place.command[1:]), keep_alive=False)
    return MCPToolset(transport, cache_tools=False)


class PydanticAi:
    @asynccontextmanager
    async def open(self, places: Sequence[Place]) -> AsyncIterator[Sequence[Client]]:
        async with side_by_side(toolset_of(place) for place in places) as toolsets:
            yield [OfPydanticAi(toolset) for toolset in toolsets]


SUBJECT = PydanticAi()
