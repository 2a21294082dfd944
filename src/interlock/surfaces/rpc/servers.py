"""The methods about MCP servers: their state, a direct call, signing in.

Owns: what is asked of which server for one page of the list.
Never: leaves a trace of these requests in a thread: they are the application's, not the model's.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired

import anyio
from pydantic import Field
from typing_extensions import TypedDict

from interlock.connections.slices import in_slices
from interlock.surfaces.rpc.application import Application
from interlock.surfaces.rpc.errors import Refusal, failing_internally
from interlock.surfaces.rpc.method import Context, Count, Method, NoParams, Params
from interlock.surfaces.rpc.peer import INTERNAL_ERROR
from interlock.surfaces.rpc.threads import EmptyResult
from interlock.threads.direct import DirectRequests
from interlock.vocabulary.errors import InterlockError, InvalidRequest
from interlock.vocabulary.resource import Resource, ResourceTemplate
from interlock.vocabulary.server import HttpTransport, ServerConfig, ServerInfo, ServerReport, ServerStatus
from interlock.vocabulary.slices import each
from interlock.vocabulary.snapshot import ServerView
from interlock.vocabulary.tool import ToolResult

AT_ONCE: Final = 16
"""Servers that are asked side by side for one page."""

AuthStatus = Literal["unknown", "unsupported", "notLoggedIn", "bearerToken"]
RuntimeStatus = Literal[
    "notStarted", "starting", "connected", "authenticationRequired", "failed", "cancelled", "disabled"
]

RUNTIME: Final[Mapping[ServerStatus, RuntimeStatus]] = {
    ServerStatus.NOT_STARTED: "notStarted",
    ServerStatus.STARTING: "starting",
    ServerStatus.READY: "connected",
    ServerStatus.AUTHENTICATION_REQUIRED: "authenticationRequired",
    ServerStatus.FAILED: "failed",
    ServerStatus.CANCELLED: "cancelled",
    ServerStatus.CLOSED: "cancelled",
    ServerStatus.DISABLED: "disabled",
}


class StatusParams(Params):
    thread_id: str | None = None
    cursor: str | None = None
    limit: Count | None = None
    detail: Literal["full", "toolsAndAuthOnly"] | None = None


class CallParams(Params):
    thread_id: str
    server: str
    tool: str
    arguments: Any = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


class LoginParams(Params):
    name: str
    thread_id: str | None = None
    scopes: list[str] | None = None


class ServerInfoShape(TypedDict):
    name: str
    title: str | None
    version: str
    description: str | None
    icons: list[Any] | None
    websiteUrl: str | None


class ServerShape(TypedDict):
    name: str
    runtimeStatus: RuntimeStatus | None
    pluginId: None
    serverInfo: ServerInfoShape | None
    tools: dict[str, Any]
    resources: list[Any]
    resourceTemplates: list[Any]
    authStatus: AuthStatus


class ServersPage(TypedDict):
    data: list[ServerShape]
    nextCursor: str | None


class ToolCallResult(TypedDict):
    content: list[Any]
    structuredContent: NotRequired[Any]
    isError: NotRequired[bool]
    _meta: NotRequired[Any]


class LoginResult(TypedDict):
    authorizationUrl: str


# ---- state


async def list_status(context: Context, params: StatusParams) -> ServersPage:
    application = context.application
    if params.thread_id is None:
        requests: DirectRequests = application.host.requests
        reports = application.host.reports()
    else:
        thread = application.loaded(params.thread_id).thread
        requests, reports = thread.requests, thread.reports()
    page, following = _page(sorted(reports, key=lambda report: report.name), params)
    listing = _Listing(application, requests, params)
    return {"data": await listing.of(page), "nextCursor": following}


def _page(reports: list[ServerReport], params: StatusParams) -> tuple[list[ServerReport], str | None]:
    """The servers of one page. Cursors are places in the list, as clients of this method know them."""
    start = 0
    if params.cursor is not None:
        if not (params.cursor.isascii() and params.cursor.isdigit()):
            raise InvalidRequest(f"invalid cursor {params.cursor[:100]!r}; pass nextCursor of the page before")
        start = int(params.cursor[:20])
    if start > len(reports):
        raise InvalidRequest(f"cursor {start} is beyond the {len(reports)} servers that there are")
    end = len(reports) if params.limit is None else start + max(1, params.limit)
    return reports[start:end], str(end) if end < len(reports) else None


class _Listing:
    """What the servers of a page offer; one that fails is there without it."""

    def __init__(self, application: Application, requests: DirectRequests, params: StatusParams) -> None:
        self._configs = application.host.configuration.servers
        self._requests = requests
        self._of_thread = params.thread_id is not None
        self._resources_too = params.detail != "toolsAndAuthOnly"
        self._limiter = anyio.CapacityLimiter(AT_ONCE)

    async def of(self, reports: list[ServerReport]) -> list[ServerShape]:
        shapes = [self._bare(report) for report in reports]
        async with anyio.create_task_group() as tasks:
            for report, shape in zip(reports, shapes, strict=True):
                if report.status is not ServerStatus.DISABLED:
                    tasks.start_soon(self._fill, shape)
        return shapes

    def _bare(self, report: ServerReport) -> ServerShape:
        return {
            "name": report.name,
            "runtimeStatus": RUNTIME[report.status] if self._of_thread else None,
            "pluginId": None,
            "serverInfo": info_shape(report.info),
            "tools": {},
            "resources": [],
            "resourceTemplates": [],
            "authStatus": auth_status(self._configs.get(report.name), report),
        }

    async def _fill(self, shape: ServerShape) -> None:
        async with self._limiter:
            try:
                async with self._requests.holding(shape["name"]) as view:
                    await self._ask(view, shape)
            except InterlockError:
                pass  # its state says so; others of the page are not touched

    async def _ask(self, view: ServerView, shape: ServerShape) -> None:
        connection, patience = view.connection, view.config.startup_timeout
        await connection.ready(patience)
        report = connection.report()
        shape["serverInfo"] = info_shape(report.info)
        if self._of_thread:
            shape["runtimeStatus"] = RUNTIME[report.status]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._tools, view, shape)
            if self._resources_too:
                tasks.start_soon(self._resources, view, shape)
                tasks.start_soon(self._templates, view, shape)

    async def _tools(self, view: ServerView, shape: ServerShape) -> None:
        try:
            listing = await view.connection.list_tools(timeout=view.config.startup_timeout)
        except InterlockError:
            return
        named = await in_slices(
            each(lambda tool: (tool.name, tool.raw, view.config.allows(tool.name)), listing.entries)
        )
        shape["tools"] = {name: raw for name, raw, allowed in named if allowed}

    async def _resources(self, view: ServerView, shape: ServerShape) -> None:
        try:
            listing = await view.connection.list_all_resources(timeout=view.config.startup_timeout)
        except InterlockError:
            return
        shape["resources"] = await in_slices(each(resource_shape, listing.entries))

    async def _templates(self, view: ServerView, shape: ServerShape) -> None:
        try:
            listing = await view.connection.list_all_resource_templates(timeout=view.config.startup_timeout)
        except InterlockError:
            return
        shape["resourceTemplates"] = await in_slices(each(template_shape, listing.entries))


def info_shape(info: ServerInfo | None) -> ServerInfoShape | None:
    if info is None:
        return None
    return {
        "name": info.name,
        "title": info.title,
        "version": info.version,
        "description": info.description,
        "icons": None if info.icons is None else list(info.icons),
        "websiteUrl": info.website_url,
    }


def resource_shape(resource: Resource) -> dict[str, Any]:
    members = {
        "uri": resource.uri,
        "name": resource.name,
        "title": resource.title,
        "description": resource.description,
        "mimeType": resource.mime_type,
        "size": resource.size,
        "icons": resource.icons,
        "_meta": resource.meta,
        "annotations": resource.annotations,
    }
    return {name: value for name, value in members.items() if value is not None}


def template_shape(template: ResourceTemplate) -> dict[str, Any]:
    members = {
        "uriTemplate": template.uri_template,
        "name": template.name,
        "title": template.title,
        "description": template.description,
        "mimeType": template.mime_type,
        "annotations": template.annotations,
    }
    return {name: value for name, value in members.items() if value is not None}


def auth_status(config: ServerConfig | None, report: ServerReport) -> AuthStatus:
    if config is None or not isinstance(config.transport, HttpTransport):
        return "unsupported"
    if report.status is ServerStatus.AUTHENTICATION_REQUIRED:
        return "notLoggedIn"
    if any(name.lower() == "authorization" for name in config.transport.headers):
        return "bearerToken"
    return "unknown"


# ---- a direct call


async def call_tool(context: Context, params: CallParams) -> ToolCallResult:
    thread = context.application.loaded(params.thread_id).thread
    arguments = params.arguments
    if arguments is not None and not isinstance(arguments, dict):
        sentence = f"cannot call {params.tool!r} of {params.server!r}: its arguments must be a JSON object"
        raise Refusal(INTERNAL_ERROR, sentence)
    meta = {name: value for name, value in (params.meta or {}).items() if name != "progressToken"}  # ours
    with failing_internally():
        result = await thread.requests.call_tool(
            params.server, params.tool, arguments, meta={**meta, "threadId": thread.id}
        )
    return result_shape(result)


def result_shape(result: ToolResult) -> ToolCallResult:
    shape: ToolCallResult = {"content": list(result.content)}
    if result.structured_content is not None:
        shape["structuredContent"] = result.structured_content
    if result.is_error:
        shape["isError"] = True
    if result.meta is not None:
        shape["_meta"] = result.meta
    return shape


# ---- the rest


async def reload(context: Context, params: NoParams) -> EmptyResult:
    with failing_internally():
        await context.application.host.reload()
    return {}


def login(context: Context, params: LoginParams) -> LoginResult:
    server = context.application.host.configuration.servers.get(params.name)
    if server is None:
        raise Refusal(INTERNAL_ERROR, f"there is no server {params.name[:100]!r} to sign in to")
    raise Refusal(
        INTERNAL_ERROR,
        f"cannot sign in to server {params.name!r}: this host does not do OAuth yet; give the server credentials with "
        "bearer_token_env_var or http_headers",
    )


METHODS: Final = (
    Method(
        name="mcpServerStatus/list",
        params=StatusParams,
        result=ServersPage,
        run=list_status,
        says="The servers with what they offer, sorted by name. Without a thread each is started for the question.",
    ),
    Method(
        name="mcpServer/tool/call",
        params=CallParams,
        result=ToolCallResult,
        run=call_tool,
        says="Call a tool by its remote name over a thread's connection: no approval, no item, no history.",
    ),
    Method(
        name="mcpServer/oauth/login",
        params=LoginParams,
        result=LoginResult,
        run=login,
        says="Refused: signing in does not exist yet.",
    ),
    Method(
        name="config/mcpServer/reload",
        params=NoParams,
        result=EmptyResult,
        run=reload,
        says="Read the configuration again; every thread follows from its next step on.",
    ),
)
