"""Tools and listings to test with."""

from typing import Any

from interlock.vocabulary.catalog import ToolListing
from interlock.vocabulary.server import ServerConfig, StdioTransport
from interlock.vocabulary.tool import BadEntry, Tool


def tool(name: str, **facts: Any) -> Tool:
    """A tool with an input schema that says nothing, unless `facts` says otherwise."""
    return Tool(name=name, **{"input_schema": {"type": "object", "properties": {}}, **facts})


def listing(server: str, *tools: Tool | str, bad: tuple[BadEntry, ...] = ()) -> ToolListing:
    made = tuple(tool(each) if isinstance(each, str) else each for each in tools)
    return ToolListing(server=server, tools=made, bad=bad)


def config(name: str, **settings: Any) -> ServerConfig:
    return ServerConfig(name=name, transport=StdioTransport(command="true"), **settings)
