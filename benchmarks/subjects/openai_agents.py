"""OpenAI's Agents SDK: its server objects, connected in parallel by its manager."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from agents import Agent, RunContextWrapper
from agents.mcp import MCPServer, MCPServerManager, MCPServerStdio, MCPServerStreamableHttp, MCPUtil

from benchmarks.subjects.ports import ARGUMENTS, TOOL, TOUCH, Client, Place, expect

TIMEOUT = 300.0


class OfAgents:
    def __init__(self, server: MCPServer) -> None:
        self._server = server
        self._context = RunContextWrapper(context=None)
        self._agent = Agent(name="benchmark")

    async def call(self) -> None:
        result = await self._server.call_tool(TOOL, ARGUMENTS)
        expect(result.content[0].text == "ok", result)

    async def tools(self) -> int:
        return len(await MCPUtil.get_all_function_tools([self._server], False, self._context, self._agent))

    async def touch(self) -> None:
        await self._server.call_tool(TOUCH, {})
        await self.tools()

    async def read(self, uri: str) -> int:
        content = (await self._server.read_resource(uri)).contents[0]
        return len(content.text if hasattr(content, "text") else content.blob)


def server_of(place: Place) -> MCPServer:
    if place.url is not None:
        return MCPServerStreamableHttp({"url": place.url}, client_session_timeout_seconds=TIMEOUT)
    parameters = {"command": place.command[0], "args": list(place.command[1:])}
    return MCPServerStdio(parameters, client_session_timeout_seconds=TIMEOUT)


class Agents:
    @asynccontextmanager
    async def open(self, places: Sequence[Place]) -> AsyncIterator[Sequence[Client]]:
        servers = [server_of(place) for place in places]
        manager = MCPServerManager(servers, connect_timeout_seconds=TIMEOUT, strict=True, connect_in_parallel=True)
        async with manager:
            yield [OfAgents(server) for server in servers]


SUBJECT = Agents()
