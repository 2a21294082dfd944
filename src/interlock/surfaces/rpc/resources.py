"""Reading a resource for a client: a widget, a viewer, a script.

Owns: which read a request is (RPC-2, RPC-3).
Never: trims a URI, asks the gate of the model's tools, or leaves a trace in a thread.
"""

from typing import Any, Final, NotRequired

from typing_extensions import TypedDict

from interlock.surfaces.rpc.errors import failing_internally
from interlock.surfaces.rpc.method import Context, Method, Params
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.resource import ResourceContent, ResourceRead


class ReadParams(Params):
    server: str
    uri: str
    thread_id: str | None = None
    origin_call_id: str | None = None
    connector_id: str | None = None


class Content(TypedDict):
    uri: str
    mimeType: NotRequired[str]
    text: NotRequired[str]
    blob: NotRequired[str]
    _meta: NotRequired[Any]


class ReadResult(TypedDict):
    contents: list[Content]
    originCallId: str | None


async def read(context: Context, params: ReadParams) -> ReadResult:
    if params.origin_call_id is not None and params.thread_id is None:
        raise InvalidRequest("originCallId needs threadId; send both, or neither")
    application = context.application
    requests = (
        application.host.requests if params.thread_id is None else application.loaded(params.thread_id).thread.requests
    )
    with failing_internally():
        found = await requests.read_resource(params.server, params.uri, meta=connector_meta(params.connector_id))
    return result_shape(found, None)


def connector_meta(connector_id: str | None) -> JsonObject | None:
    """What tells a server which connector was chosen."""
    if connector_id is None:
        return None
    return {"x-codex-turn-metadata": {"mcp_request_meta": {"selected_connector_ids": [connector_id]}}}


def result_shape(found: ResourceRead, origin_call_id: str | None) -> ReadResult:
    return {"contents": [content_shape(content) for content in found.contents], "originCallId": origin_call_id}


def content_shape(content: ResourceContent) -> Content:
    shape: Content = {"uri": content.uri}
    if content.mime_type is not None:
        shape["mimeType"] = content.mime_type
    if content.text is not None:
        shape["text"] = content.text
    if content.blob is not None:
        shape["blob"] = content.blob
    if content.meta is not None:
        shape["_meta"] = content.meta
    return shape


SAYS: Final = (
    "Read a resource: over a thread's connection, or without one from a server that is started for it and closed after."
)
METHODS: Final = (
    Method(name="mcpServer/resource/read", params=ReadParams, result=ReadResult, run=read, says=SAYS),
    Method(
        name="mcp/resource/read",
        params=ReadParams,
        result=ReadResult,
        run=read,
        says="Another name of `mcpServer/resource/read`.",
    ),
)
