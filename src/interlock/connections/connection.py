"""A configured server that can be asked, whatever happens to its process or session.

Owns: the methods of the port `vocabulary.ports.Connection`: which request each one is, its deadline as a whole, what
is repeated after a lost session, and what a server's own notices tell the listeners.
Never: starts or ends a session (its Supervisor does), keeps a list, or knows public names.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeVar

import anyio

from interlock.connections import convert
from interlock.connections.paging import PageWalk
from interlock.connections.session import Session, SessionHandlers
from interlock.connections.supervisor import Supervisor
from interlock.vocabulary.errors import Effect, ServerFailed
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.ports import OnProgress
from interlock.vocabulary.resource import (
    Completion,
    Listing,
    Page,
    Prompt,
    PromptResult,
    Resource,
    ResourceRead,
    ResourceTemplate,
)
from interlock.vocabulary.server import ServerReport
from interlock.vocabulary.tool import Tool, ToolResult

ChangeKind = Literal["status", "tools", "resources", "prompts", "updated"]
Decoded = TypeVar("Decoded")

METHOD_NOT_FOUND: Final = -32601
COMPLETIONS_ADVERTISED_SINCE: Final = "2025-03-26"
"""Older protocol versions have completions without a capability."""

NOTICES: Final[Mapping[str, ChangeKind]] = {
    "notifications/tools/list_changed": "tools",
    "notifications/resources/list_changed": "resources",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/updated": "updated",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a listener is told: the status or one of the lists of `server` changed, or its resource `uri` did."""

    server: str
    kind: ChangeKind
    uri: str | None = None


OnChange = Callable[[Change], None]
"""Called on the event loop; it must not wait and must not raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request before it is sent. `repeatable`: doing it twice is as good as once (CON-7)."""

    method: str
    params: JsonObject
    repeatable: bool = True
    capability: str | None = None
    on_progress: OnProgress | None = None
    meta: JsonObject | None = None
    input_schema: JsonObject | None = None


class SupervisedConnection:
    """The port Connection over a Supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        self._listeners: list[OnChange] = []
        self._tools: Mapping[str, Tool] = {}
        supervisor.handlers = replace(supervisor.handlers, on_notification=self._after_us(supervisor.handlers))
        supervisor.listen(lambda: self._tell(Change(server=self.server, kind="status")))

    def __repr__(self) -> str:
        return f"<SupervisedConnection {self.server!r} {self.supervisor.state.status.value}>"

    @property
    def server(self) -> str:
        return self.supervisor.name

    def report(self) -> ServerReport:
        return self.supervisor.report()

    def listen(self, on_change: OnChange) -> Callable[[], None]:
        """Have `on_change` called after every change, until the returned function is called."""
        self._listeners.append(on_change)
        return lambda: self._listeners.remove(on_change) if on_change in self._listeners else None

    async def ready(self, timeout: float) -> None:
        await self.supervisor.ready_session(timeout)

    # ---- tools

    async def list_tools(self, *, timeout: float) -> Listing[Tool]:
        """Every page. A server that does not advertise tools has none."""
        deadline = anyio.current_time() + timeout
        session = await self.supervisor.ready_session(timeout)
        if "tools" not in session.capabilities:
            return Listing(entries=())
        decode = convert.stateless_tool if session.era == "stateless" else convert.tool
        listing = await self._walk("tools/list", "tools", decode, capability="tools", deadline=deadline)
        self._tools = {tool.name: tool for tool in reversed(listing.entries)}  # of duplicates the first counts
        return listing

    async def call_tool(
        self,
        name: str,
        arguments: JsonObject | None,
        *,
        timeout: float,
        on_progress: OnProgress | None = None,
        meta: JsonObject | None = None,
        safe_to_repeat: bool = False,
    ) -> ToolResult:
        tool = self._tools.get(name)
        request = Request(
            method="tools/call",
            params={"name": name} if arguments is None else {"name": name, "arguments": arguments},
            repeatable=safe_to_repeat,
            on_progress=on_progress,
            meta=meta,
            input_schema=tool.input_schema if tool else None,
        )
        result = await self._ask(request, deadline=anyio.current_time() + timeout)
        return convert.tool_result(result, server=self.server)

    # ---- resources

    async def list_resources(self, *, cursor: str | None, timeout: float) -> Page[Resource]:
        return await self._page(
            "resources/list", "resources", convert.resource, label="uri", cursor=cursor, timeout=timeout
        )

    async def list_all_resources(self, *, timeout: float) -> Listing[Resource]:
        deadline = anyio.current_time() + timeout
        return await self._walk(
            "resources/list", "resources", convert.resource, label="uri", capability="resources", deadline=deadline
        )

    async def list_resource_templates(self, *, cursor: str | None, timeout: float) -> Page[ResourceTemplate]:
        return await self._page(
            "resources/templates/list",
            "resourceTemplates",
            convert.resource_template,
            label="uriTemplate",
            cursor=cursor,
            timeout=timeout,
        )

    async def list_all_resource_templates(self, *, timeout: float) -> Listing[ResourceTemplate]:
        return await self._walk(
            "resources/templates/list",
            "resourceTemplates",
            convert.resource_template,
            label="uriTemplate",
            capability="resources",
            deadline=anyio.current_time() + timeout,
        )

    async def read_resource(self, uri: str, *, timeout: float, meta: JsonObject | None = None) -> ResourceRead:
        request = Request(method="resources/read", params={"uri": uri}, capability="resources", meta=meta)
        result = await self._ask(request, deadline=anyio.current_time() + timeout)
        return convert.resource_read(result, server=self.server)

    async def subscribe_resource(self, uri: str, *, timeout: float) -> None:
        request = Request(method="resources/subscribe", params={"uri": uri}, capability="resources")
        await self._ask(request, deadline=anyio.current_time() + timeout)

    async def unsubscribe_resource(self, uri: str, *, timeout: float) -> None:
        request = Request(method="resources/unsubscribe", params={"uri": uri}, capability="resources")
        await self._ask(request, deadline=anyio.current_time() + timeout)

    # ---- prompts and completions

    async def list_all_prompts(self, *, timeout: float) -> Listing[Prompt]:
        deadline = anyio.current_time() + timeout
        return await self._walk("prompts/list", "prompts", convert.prompt, capability="prompts", deadline=deadline)

    async def get_prompt(self, name: str, arguments: dict[str, str], *, timeout: float) -> PromptResult:
        params = {"name": name, "arguments": arguments} if arguments else {"name": name}
        request = Request(method="prompts/get", params=params, capability="prompts")
        result = await self._ask(request, deadline=anyio.current_time() + timeout)
        return convert.prompt_result(result, server=self.server)

    async def complete(
        self, reference: JsonObject, argument: str, value: str, *, context: dict[str, str], timeout: float
    ) -> Completion:
        params: dict[str, Any] = {"ref": reference, "argument": {"name": argument, "value": value}}
        if context:
            params["context"] = {"arguments": context}
        request = Request(method="completion/complete", params=params, capability="completions")
        result = await self._ask(request, deadline=anyio.current_time() + timeout)
        return convert.completion(result, server=self.server)

    # ---- how anything is asked

    async def _page(
        self,
        method: str,
        member: str,
        decode: Callable[[JsonObject], Decoded],
        *,
        label: str,
        cursor: str | None,
        timeout: float,
    ) -> Page[Decoded]:
        """One page; the cursor is the server's business and passes through untouched (RES-4)."""
        params = {} if cursor is None else {"cursor": cursor}
        request = Request(method=method, params=params, capability="resources")
        result = await self._ask(request, deadline=anyio.current_time() + timeout)
        raw = convert.entries(result, member, server=self.server, method=method)
        good, bad = convert.decode(raw, decode, label=label)
        following = convert.next_cursor(result, server=self.server, method=method)
        return Page(entries=tuple(good), next_cursor=following, bad=tuple(bad))

    async def _walk(
        self,
        method: str,
        member: str,
        decode: Callable[[JsonObject], Decoded],
        *,
        deadline: float,
        label: str = "name",
        capability: str | None = None,
    ) -> Listing[Decoded]:
        """Every page, under the bounds of CAT-1; nothing of a listing that fails half-way."""
        walk = PageWalk(server=self.server, method=method)
        entries: list[Decoded] = []
        fallen: list[Any] = []
        while not walk.done:
            params = {} if walk.cursor is None else {"cursor": walk.cursor}
            result = await self._ask(Request(method=method, params=params, capability=capability), deadline=deadline)
            raw = convert.entries(result, member, server=self.server, method=method)
            good, bad = convert.decode(raw, decode, label=label, first=walk.items)
            walk = walk.fed(len(raw), result.get("nextCursor"))
            entries += good
            fallen += bad
        return Listing(entries=tuple(entries), bad=tuple(fallen))

    async def _ask(self, request: Request, *, deadline: float) -> JsonObject:
        """The complete result of `request`, all waiting included, or ServerFailed.

        A request that met a lost session is sent once more on the next one when that is safe: when it is
        repeatable, or when it cannot have had any effect (CON-7). The end of a process is no such case: its calls
        in flight fail (CON-6).
        """
        session = await self.supervisor.ready_session(deadline - anyio.current_time())
        try:
            return await self._send(session, request, deadline)
        except ServerFailed as error:
            if not session.ended.is_set() or not _may_repeat(error, request):
                raise
        session = await self.supervisor.ready_session(deadline - anyio.current_time())
        return await self._send(session, request, deadline)

    async def _send(self, session: Session, request: Request, deadline: float) -> JsonObject:
        _require(session, request, self.server)
        remaining = deadline - anyio.current_time()
        if remaining <= 0:
            raise ServerFailed(
                f"no time was left to send {request.method} to server {self.server!r}",
                server=self.server,
                kind="deadline",
            )
        try:
            result = await session.request(
                request.method,
                request.params,
                timeout=remaining,
                on_progress=request.on_progress,
                meta=request.meta,
                input_schema=request.input_schema,
            )
        except ServerFailed as error:
            if request.capability is not None and error.rpc_code == METHOD_NOT_FOUND:
                raise _unsupported(self.server, request.method, "it answers: method not found") from error
            raise
        return self._complete(result, request, session)

    def _complete(self, result: JsonObject, request: Request, session: Session) -> JsonObject:
        """The one place where a result that is no answer yet is told from one that is."""
        match convert.result_kind(result, session.era):
            case "complete":
                return result
            case "input_required":
                raise ServerFailed(
                    f"server {self.server!r} asks for the user's input before it answers {request.method}, "
                    "which is not offered yet",
                    server=self.server,
                    kind="unsupported",
                    effect=_effect(request),
                )
            case "unknown":
                raise convert.broken(
                    self.server, request.method, "its resultType is not known", effect=_effect(request)
                )

    # ---- what servers tell by themselves

    def _after_us(self, handlers: SessionHandlers) -> Callable[[str, JsonObject], Any]:
        theirs = handlers.on_notification

        async def on_notification(method: str, params: JsonObject) -> None:
            self._notified(method, params)
            if theirs is not None:
                waiting = theirs(method, params)
                if inspect.isawaitable(waiting):
                    await waiting

        return on_notification

    def _notified(self, method: str, params: JsonObject) -> None:
        kind = NOTICES.get(method)
        if kind is None:
            return
        uri = params.get("uri") if kind == "updated" else None
        if kind != "updated" or isinstance(uri, str):
            self._tell(Change(server=self.server, kind=kind, uri=uri))

    def _tell(self, change: Change) -> None:
        for listener in tuple(self._listeners):
            listener(change)


def _may_repeat(error: ServerFailed, request: Request) -> bool:
    if error.effect == "none":
        return True
    return error.facts.get("session_lost") is True and request.repeatable


def _effect(request: Request) -> Effect:
    return "none" if request.repeatable else "unknown"


def _require(session: Session, request: Request, server: str) -> None:
    capability = request.capability
    if capability is None or capability in session.capabilities:
        return
    if capability == "completions" and session.protocol_version < COMPLETIONS_ADVERTISED_SINCE:
        return
    raise _unsupported(server, request.method, f"it does not advertise {capability}")


def _unsupported(server: str, method: str, why: str) -> ServerFailed:
    return ServerFailed(
        f"server {server!r} does not offer {method}: {why}", server=server, kind="unsupported", effect="none"
    )
