"""Reading a resource for a client: a widget, a viewer, a script.

Owns: which read a request is (RPC-2, RPC-3).
Never: trims a URI, asks the gate of the model's tools, or leaves a trace in a thread.
"""

from typing import Any, Final, NotRequired

from typing_extensions import TypedDict

from interlock.origins.read import connector_meta
from interlock.surfaces.rpc.application import Application
from interlock.surfaces.rpc.errors import failing_internally
from interlock.surfaces.rpc.method import Context, Method, Params
from interlock.vocabulary.errors import InvalidRequest
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
    application, call_id = context.application, params.origin_call_id
    if params.thread_id is None:
        if call_id is not None:
            raise InvalidRequest("originCallId needs threadId; send both, or neither")
        meta = None if params.connector_id is None else connector_meta(params.connector_id)
        with failing_internally():
            found = await application.host.read_resource(params.server, params.uri, meta=meta)
        return result_shape(found, None)
    thread = application.loaded(params.thread_id).thread
    with failing_internally():
        if call_id is not None and _grants_origins(application, params.server):
            return result_shape(await thread.read_resource_for_call(call_id, params.server, params.uri), call_id)
        found = await thread.read_resource(params.server, params.uri, connector_id=params.connector_id)
    return result_shape(found, None)


def _grants_origins(application: Application, server: str) -> bool:
    """Whether calls of this server may stand behind a read; the others' originCallId has no effect (RPC-3)."""
    config = application.host.configuration.servers.get(server)
    return config is not None and config.grants_origins


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
