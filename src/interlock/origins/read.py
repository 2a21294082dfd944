"""The read itself, over today's connection.

Owns: what a read of an app tells the server besides the URI (ORI-5, RPC-3).
Never: checks; or goes to another connection than the one it is given.
"""

from typing import Any

from interlock.origins.store import Origin
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.resource import ResourceRead
from interlock.vocabulary.snapshot import ServerView


async def read_for_origin(view: ServerView, origin: Origin, thread_id: str) -> ResourceRead:
    """Read the resource with thread, connector and link attached. ServerFailed: the server did not give it."""
    meta = {"threadId": thread_id, **connector_meta(origin.connector_id, origin.link_id)}
    return await view.connection.read_resource(origin.uri, timeout=view.config.tool_timeout, meta=meta, fresh=True)


def connector_meta(connector_id: str, link_id: str | None = None) -> JsonObject:
    """The `_meta` by which a request names the connector that it is made for, and the account."""
    request: dict[str, Any] = {"selected_connector_ids": [connector_id]}
    if link_id is not None:
        request["link_id"] = link_id
    return {"x-codex-turn-metadata": {"mcp_request_meta": request}}
