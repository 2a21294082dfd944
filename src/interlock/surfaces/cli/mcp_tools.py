"""`interlock mcp tools`: the tools that servers offer, under the names that a model sees.

Owns: the columns and the JSON of a tool.
Never: shows a tool that the configuration filters out as if it could be called, or one that a bad tool keeps out
of every step as if a model saw it (CAT-3).
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from interlock.catalog.entries import replacement
from interlock.catalog.naming import public_name
from interlock.configuration import Configuration
from interlock.surfaces.cli.asking import Answers, ask_all, ask_one
from interlock.surfaces.cli.opening import read_configuration, start_deadline
from interlock.surfaces.cli.output import Table, complain, print_json, print_table
from interlock.vocabulary.catalog import ToolListing
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.resource import Listing
from interlock.vocabulary.snapshot import ServerView
from interlock.vocabulary.tool import Tool, ToolAnnotations

HEADINGS = ("server", "tool", "public name", "hints", "description")


async def show(config: Path | None, server: str | None, as_json: bool, closing: AsyncExitStack) -> int:
    configuration = read_configuration(config, server)
    if server is None:
        answers = await ask_all(closing, configuration, _list)
    else:
        answers = Answers({server: await ask_one(closing, configuration, server, _list)}, {})
    tools = [
        (name, tool)
        for name, listing in answers.given.items()
        for tool in listing.entries
        if configuration.servers[name].allows(tool.name)
    ]
    refused = _refused(configuration, answers.given)
    if as_json:
        left_out = [
            {"server": name, "message": f"the tool {bad.name} cannot be used: {bad.reason}"}
            for name, listing in answers.given.items()
            for bad in listing.bad
        ]
        kept_out = [{"server": name, "message": sentence} for name, sentence in refused.items()]
        shown = [_tool(name, tool, offered=name not in refused) for name, tool in tools]
        print_json({"tools": shown, "errors": answers.errors + left_out + kept_out})
    else:
        rows = [_row(name, tool) for name, tool in tools]
        print_table(Table(HEADINGS, rows, "no server offers a tool", names=HEADINGS[:3]))
        answers.complain()
        for sentence in refused.values():
            complain(sentence)
    return answers.status


async def _list(view: ServerView) -> Listing[Tool]:
    return await view.connection.list_tools(timeout=start_deadline(view.config))


def _refused(configuration: Configuration, given: Mapping[str, Listing[Tool]]) -> dict[str, str]:
    """Why a model is offered no tool of a server that listed some, by server name."""
    refused: dict[str, str] = {}
    for name, listing in given.items():
        try:
            replacement(ToolListing(server=name, tools=listing.entries, bad=listing.bad), configuration.servers[name])
        except ServerFailed as error:
            refused[name] = error.message
    return refused


def _tool(server: str, tool: Tool, *, offered: bool) -> dict[str, Any]:
    return {
        "server": server,
        "name": tool.name,
        "public_name": public_name(server, tool.name).text,
        "visible_to_model": offered and not tool.app_only,
        "definition": tool.raw,
    }


def _row(server: str, tool: Tool) -> tuple[str, ...]:
    lines = (tool.description or "").strip().splitlines()
    description = lines[0][:100] if lines else tool.title or "-"
    return server, tool.name, public_name(server, tool.name).text, _hints(tool), description


def _hints(tool: Tool) -> str:
    annotations: ToolAnnotations = tool.annotations
    said = [
        (annotations.read_only_hint, "read-only", "writes"),
        (annotations.destructive_hint, "destructive", None),
        (annotations.idempotent_hint, "idempotent", None),
        (annotations.open_world_hint, "open world", None),
    ]
    words = [yes if value else no for value, yes, no in said if value is not None]
    return ", ".join([*(word for word in words if word), *(["app only"] if tool.app_only else [])]) or "-"
