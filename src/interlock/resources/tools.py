"""The three resource tools of the model.

Owns: their names, what the model reads about them, the gate that shows them, their execution (RES-1).
Never: enters approval (RES-9), writes an item, or cuts its output: the caller does both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interlock.resources.arguments import RawArguments, item_server, list_arguments, read_arguments
from interlock.resources.reader import RESOURCES, TEMPLATES, Kind, list_all, list_one, read_one
from interlock.vocabulary.catalog import BuiltinEntry
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.ports import Respondent
from interlock.vocabulary.question import InputResponses
from interlock.vocabulary.snapshot import Binding, ServerView
from interlock.vocabulary.tool import ToolSpec

LIST_RESOURCES = "list_mcp_resources"
LIST_TEMPLATES = "list_mcp_resource_templates"
READ_RESOURCE = "read_mcp_resource"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceOutcome:
    """The JSON text of an answer, uncut, and the server that the call's item names."""

    text: str
    server: str


def resource_tools(servers: Mapping[str, ServerView]) -> dict[str, BuiltinEntry]:
    """The three tools, exactly when there is a server: gated, pending or failed ones count. `servers` are enabled."""
    if not servers:
        return {}
    return {spec.name: BuiltinEntry(public_name=spec.name, spec=spec) for spec in _SPECS}


async def run(
    binding: Binding,
    tool_name: str,
    raw_arguments: RawArguments,
    *,
    timeout: float | None = None,
    respondent: Respondent | None = None,
    input_responses: InputResponses | None = None,
) -> ResourceOutcome:
    """Execute one resource tool over the servers of `binding`; unknown properties are ignored.

    `timeout` is seconds for each server that is asked; None takes each server's own `tool_timeout`. `respondent`
    answers what a server asks before it lets a resource be read; `input_responses` are for a read that an earlier host
    began.

    Raises:
        InvalidRequest: the arguments, or a server that does not exist.
        NotPermitted: a server that is disabled or behind the gate.
        ServerFailed: the server, or in an aggregate all servers.
    """
    match tool_name:
        case "list_mcp_resources":
            text = await _list(binding, RESOURCES, raw_arguments, timeout)
        case "list_mcp_resource_templates":
            text = await _list(binding, TEMPLATES, raw_arguments, timeout)
        case "read_mcp_resource":
            read = read_arguments(raw_arguments)
            text = await read_one(
                binding, read.server, read.uri, timeout, respondent=respondent, input_responses=input_responses
            )
        case _:
            raise InvalidRequest(f"cannot run {tool_name!r}: it is no resource tool", tool=tool_name)
    return ResourceOutcome(text=text, server=item_server(raw_arguments))


async def _list(binding: Binding, kind: Kind, raw_arguments: RawArguments, timeout: float | None) -> str:
    arguments = list_arguments(raw_arguments)
    if arguments.server is None:
        return await list_all(binding, kind, timeout)
    return await list_one(binding, kind, arguments.server, arguments.cursor, timeout)


def _schema(properties: dict[str, str], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """A closed object of strings; `properties` gives their descriptions."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: {"type": "string", "description": words} for name, words in properties.items()},
        "additionalProperties": False,
    }
    return schema | ({"required": list(required)} if required else {})


def _list_spec(name: str, things: str, description: str) -> ToolSpec:
    properties = {
        "cursor": f"Opaque nextCursor of an earlier {name} call for the same server. Leave out for the first page.",
        "server": f"Name of one MCP server. Leave out to get the {things} of all servers at once, without a cursor.",
    }
    return ToolSpec(name=name, description=description, input_schema=_schema(properties))


_SPECS = (
    _list_spec(
        LIST_RESOURCES,
        "resources",
        "Lists the resources (files, records and other data to read) that MCP servers offer. Each entry carries "
        "the label of its server and a URI; pass both to read_mcp_resource. Resources are not tools.",
    ),
    _list_spec(
        LIST_TEMPLATES,
        "resource templates",
        "Lists the resource templates that MCP servers offer: URI templates (RFC 6570) for resources that depend "
        "on parameters. Fill in a template's variables yourself before passing the URI to read_mcp_resource.",
    ),
    ToolSpec(
        name=READ_RESOURCE,
        description="Reads one resource of one MCP server and returns its contents as JSON.",
        input_schema=_schema(
            {
                "server": "Server label of the resource, exactly as a listing gave it in its server field.",
                "uri": "URI of the resource, as a listing gave it or as a template with its variables filled in.",
            },
            required=("server", "uri"),
        ),
    ),
)
