"""What an item says about the tool that is called.

Owns: the facts taken from a tool's definition into its item (LIF-2, BEHAVIOUR section 8).
Never: believes a connector that a server without `grants_origins` names.
"""

from interlock.origins.definition import app_facts
from interlock.resources.arguments import HOST, item_server
from interlock.threads.request import CallRequest
from interlock.vocabulary.catalog import ToolEntry
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.json import JsonValue
from interlock.vocabulary.server import ServerConfig


def tool_item(call_id: str, arguments: JsonValue, entry: ToolEntry, config: ServerConfig) -> McpToolCallItem:
    """The item of a call of `entry` that begins now."""
    app = app_facts(entry.tool, config)
    return McpToolCallItem(
        id=call_id,
        server=entry.server,
        tool=entry.tool.name,
        public_name=entry.public_name,
        arguments=arguments,
        connector_id=app.connector_id,
        link_id=app.link_id,
        mcp_app_resource_uri=app.resource_uri,
        app_name=app.connector_name,
        action_name=entry.tool.title if app.connector_id is not None else None,
        read_only_hint=entry.tool.annotations.read_only_hint,
    )


def resource_item(request: CallRequest, public_name: str) -> McpToolCallItem:
    """The item of a resource tool: the server of its arguments, else the host; no facts of a tool's definition."""
    return McpToolCallItem(
        id=request.call_id,
        server=item_server(request.text),
        tool=public_name,
        public_name=public_name,
        arguments=request.arguments,
        read_only_hint=True,
    )


def unknown_item(call_id: str, arguments: JsonValue, public_name: str) -> McpToolCallItem:
    """The item of a call that names nothing in the Step."""
    return McpToolCallItem(id=call_id, server=HOST, tool=public_name, public_name=public_name, arguments=arguments)
