"""LangChain's adapters, with one session held for each server: by default they start a process for each call."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from langchain_core.tools import BaseTool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp import ClientSession

from benchmarks.subjects.ports import ARGUMENTS, TOOL, TOUCH, Client, Place, expect, side_by_side


class OfLangChain:
    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._tool: BaseTool | None = None

    async def call(self) -> None:
        if self._tool is None:
            self._tool = next(tool for tool in await load_mcp_tools(self._session) if tool.name == TOOL)
        content = await self._tool.ainvoke(ARGUMENTS)
        expect(content[0]["text"] == "ok", content)

    async def tools(self) -> int:
        return len(await load_mcp_tools(self._session))

    async def touch(self) -> None:
        await self._session.call_tool(TOUCH, {})
        await self.tools()

    async def read(self, uri: str) -> int:
        content = (await self._session.read_resource(uri)).contents[0]
        return len(content.text if hasattr(content, "text") else content.blob)


def connection_of(place: Place) -> dict[str, object]:
    if place.url is not None:
        return {"transport": "streamable_http", "url": place.url}
    return {"transport": "stdio", "command": place.command[0], "args": list(place.command[1:])}


class LangChain:
    @asynccontextmanager
    async def open(self, places: Sequence[Place]) -> AsyncIterator[Sequence[Client]]:
        client = MultiServerMCPClient({place.name: connection_of(place) for place in places})
        async with side_by_side(client.session(place.name) for place in places) as sessions:
            yield [OfLangChain(session) for session in sessions]


SUBJECT = LangChain()
