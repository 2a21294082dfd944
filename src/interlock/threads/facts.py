"""What an item says about the tool that is called.

Owns: the facts taken from a tool's definition into its item (LIF-2, BEHAVIOUR section 8).
Never: believes a connector that a server without `grants_origins` names.
"""

from collections.abc import Mapping

from interlock.resources.arguments import HOST, item_server
from interlock.threads.request import CallRequest
from interlock.vocabulary.catalog import ToolEntry
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.json import JsonObject, JsonValue
from interlock.vocabulary.server import ServerConfig


def tool_item(call_id: str, arguments: JsonValue, entry: ToolEntry, config: ServerConfig) -> McpToolCallItem:
    """The item of a call of `entry` that begins now."""
    meta = entry.tool.meta or {}
    connector_meta = meta if config.grants_origins else {}
    connector = _text(connector_meta, "connector_id")
    return McpToolCallItem(
        id=call_id,
        server=entry.server,
        tool=entry.tool.name,
        public_name=entry.public_name,
        arguments=arguments,
        connector_id=connector,
        link_id=_text(connector_meta, "link_id"),
        mcp_app_resource_uri=app_resource_uri(meta),
        app_name=_text(connector_meta, "connector_display_name") or _text(connector_meta, "connector_name"),
        action_name=entry.tool.title if connector is not None else None,
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


def app_resource_uri(meta: JsonObject) -> str | None:
    """The resource that an app shows for the tool; blank means none."""
    interface = meta.get("ui")
    inner = _text(interface, "resourceUri") if isinstance(interface, Mapping) else None
    return inner or _text(meta, "ui/resourceUri") or _text(meta, "openai/outputTemplate")


def _text(meta: JsonObject, key: str) -> str | None:
    value = meta.get(key)
    return value if isinstance(value, str) and value.strip() else None
