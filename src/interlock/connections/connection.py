"""A configured server that can be asked, whatever happens to its process or session.

Owns: the methods of the port `vocabulary.ports.Connection`: which request each one is, and what its result becomes.
Never: starts or ends a session (its Supervisor does), keeps a list for others, or knows public names.
"""

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Final

from interlock.connections import convert
from interlock.connections.asking import Asker, Listed, Request
from interlock.connections.clock import now
from interlock.connections.elicitations import CANCELLED, ELICIT, answer_request
from interlock.connections.flight import Flight
from interlock.connections.notices import ChangeKind, Listeners, OnChange, change_of
from interlock.connections.outputs import Outputs
from interlock.connections.session import OnNotification, Session
from interlock.connections.slices import in_slices
from interlock.connections.subscriptions import Subscriptions, advertises
from interlock.connections.supervisor import Companion, Supervisor
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.ports import OnProgress, Respondent
from interlock.vocabulary.question import InputResponses
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

HEADER_MISMATCH: Final = -32020
"""The server expects other Mcp-Param headers: its tools have changed (specification 2026-07-28: Streamable HTTP)."""

TOOLS: Final = {
    era: Listed(method="tools/list", member="tools", capability="tools", decode=decode, persistent=True)
    for era, decode in (("handshake", convert.tool), ("stateless", convert.stateless_tool))
}
RESOURCES: Final = Listed(
    method="resources/list", member="resources", capability="resources", decode=convert.resource, label="uri"
)
TEMPLATES: Final = Listed(
    method="resources/templates/list",
    member="resourceTemplates",
    capability="resources",
    decode=convert.resource_template,
    label="uriTemplate",
)
PROMPTS: Final = Listed(method="prompts/list", member="prompts", capability="prompts", decode=convert.prompt)

OUTDATED: Final = {
    "tools": ("tools/list",),
    "resources": ("resources/list", "resources/templates/list"),
    "prompts": ("prompts/list",),
}
"""Which kept results a change of a list makes worthless."""


class SupervisedConnection:
    """The port Connection over a Supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        self._asker = Asker(supervisor)
        self._listeners = Listeners(supervisor.name)
        self._subscriptions = Subscriptions(self._changed, begun=self._began_to_hear)
        self._outputs = Outputs({})
        self._listing: Flight[Listing[Tool]] = Flight()
        self._held: tuple[Session, Listing[Tool]] | None = None
        self._tool_changes = 0
        self._listed_unheard: Session | None = None
        self._sessions = 0
        handlers = supervisor.handlers
        asked = {ELICIT: self._elicited} if handlers.respondent is not None else {}
        supervisor.handlers = replace(
            handlers,
            on_notification=self._before(handlers.on_notification),
            on_request={**handlers.on_request, **asked},
            farewells={ELICIT: CANCELLED, **handlers.farewells},
        )
        supervisor.companion = self._accompany
        supervisor.listen(lambda: self._listeners.tell("status"))

    def __repr__(self) -> str:
        return f"<SupervisedConnection {self.server!r} {self.supervisor.state.status.value}>"

    @property
    def server(self) -> str:
        return self.supervisor.name

    def report(self) -> ServerReport:
        return self.supervisor.report()

    def listen(self, on_change: OnChange) -> Callable[[], None]:
        """Have `on_change` called after every change, until the returned function is called."""
        return self._listeners.add(on_change)

    async def ready(self, timeout: float) -> None:
        await self.supervisor.ready_session(timeout)

    # ---- tools

    async def list_tools(self, *, timeout: float, fresh: bool = False, held: bool = False) -> Listing[Tool]:
        """Every page. A server that does not advertise tools has none.

        Those who ask at the same time share one listing, and with `held` those who come later do too, as long as the
        server, which promised to say so, has not said that its tools changed.
        """
        if held and not fresh and (listing := self._held_listing()) is not None:
            return listing
        ask = partial(self._list_tools, timeout=timeout, fresh=fresh)
        try:
            return await (ask() if fresh else self._listing.join(ask, deadline=_deadline(timeout)))
        except TimeoutError:
            text = f"server {self.server!r} did not list its tools within {timeout:g} s"
            raise ServerFailed(text, server=self.server, kind="deadline") from None

    def _held_listing(self) -> Listing[Tool] | None:
        session = self.supervisor.session
        if self._held is None or self._held[0] is not session or not self._subscriptions.hears_lists:
            return None
        return self._held[1]

    async def _list_tools(self, *, timeout: float, fresh: bool) -> Listing[Tool]:
        deadline = _deadline(timeout)
        session = await self.supervisor.ready_session(timeout)
        if "tools" not in session.capabilities:
            return Listing(entries=())
        changes = self._tool_changes
        listing = await self._asker.walk(TOOLS[session.era], deadline=deadline, fresh=fresh)
        if changes == self._tool_changes and advertises(session, "tools", "listChanged"):
            self._held = (session, listing)
        if not self._subscriptions.hears_lists:
            self._listed_unheard = session
        self._outputs = Outputs({tool.name: tool for tool in reversed(listing.entries)})  # of two alike, the first
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
        respondent: Respondent | None = None,
        input_responses: InputResponses | None = None,
    ) -> ToolResult:
        """The result, also one that breaks the tool's output schema; that is a diagnostic."""
        deadline = _deadline(timeout)
        params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
        request = Request(
            method="tools/call",
            params=params,
            repeatable=safe_to_repeat,
            on_progress=on_progress,
            meta=meta,
            input_schema=self._schema_of(name),
            respondent=respondent,
            input_responses=input_responses,
        )
        try:
            raw = await self._asker.ask(request, deadline=deadline)
        except ServerFailed as error:
            if error.rpc_code != HEADER_MISMATCH:
                raise
            await self.list_tools(timeout=deadline - now(), fresh=True)
            raw = await self._asker.ask(replace(request, input_schema=self._schema_of(name)), deadline=deadline)
        result = convert.tool_result(raw, server=self.server)
        await self._note_breach(name, result)
        return result

    def _schema_of(self, name: str) -> JsonObject | None:
        tool = self._outputs.find(name)
        return None if tool is None else tool.input_schema

    async def _note_breach(self, name: str, result: ToolResult) -> None:
        breach = await in_slices(self._outputs.checking(name, result))
        session = self.supervisor.session
        if breach is not None and session is not None:
            session.diagnostic("output_schema", f"{name}: {breach}")

    # ---- resources

    async def list_resources(self, *, cursor: str | None, timeout: float, fresh: bool = False) -> Page[Resource]:
        return await self._asker.page(RESOURCES, cursor, deadline=_deadline(timeout), fresh=fresh)

    async def list_all_resources(self, *, timeout: float, fresh: bool = False) -> Listing[Resource]:
        return await self._asker.walk(RESOURCES, deadline=_deadline(timeout), fresh=fresh)

    async def list_resource_templates(
        self, *, cursor: str | None, timeout: float, fresh: bool = False
    ) -> Page[ResourceTemplate]:
        return await self._asker.page(TEMPLATES, cursor, deadline=_deadline(timeout), fresh=fresh)

    async def list_all_resource_templates(self, *, timeout: float, fresh: bool = False) -> Listing[ResourceTemplate]:
        return await self._asker.walk(TEMPLATES, deadline=_deadline(timeout), fresh=fresh)

    async def read_resource(
        self,
        uri: str,
        *,
        timeout: float,
        meta: JsonObject | None = None,
        fresh: bool = False,
        respondent: Respondent | None = None,
        input_responses: InputResponses | None = None,
    ) -> ResourceRead:
        request = Request(
            method="resources/read",
            params={"uri": uri},
            capability="resources",
            meta=meta,
            fresh=fresh,
            respondent=respondent,
            input_responses=input_responses,
        )
        result = await self._asker.ask(request, deadline=_deadline(timeout))
        return await in_slices(convert.resource_read(result, server=self.server))

    async def subscribe_resource(self, uri: str, *, timeout: float) -> None:
        """Hear of changes of `uri`, until as many calls of `unsubscribe_resource` as of this; over restarts too."""
        session = await self.supervisor.ready_session(timeout)
        if not advertises(session, "resources", "subscribe"):
            raise ServerFailed(
                f"server {self.server!r} does not offer subscriptions to resources",
                server=self.server,
                kind="unsupported",
            )
        if self._subscriptions.add(uri) and session.era == "handshake":
            try:
                await self._ask_about_subscription("resources/subscribe", uri, timeout)
            except BaseException:
                self._subscriptions.remove(uri)
                raise

    async def unsubscribe_resource(self, uri: str, *, timeout: float) -> None:
        last = self._subscriptions.remove(uri)
        session = self.supervisor.session
        if last and session is not None and session.era == "handshake":
            await self._ask_about_subscription("resources/unsubscribe", uri, timeout)

    async def _ask_about_subscription(self, method: str, uri: str, timeout: float) -> None:
        request = Request(method=method, params={"uri": uri}, capability="resources")
        await self._asker.ask(request, deadline=_deadline(timeout))

    # ---- prompts and completions

    async def list_all_prompts(self, *, timeout: float, fresh: bool = False) -> Listing[Prompt]:
        return await self._asker.walk(PROMPTS, deadline=_deadline(timeout), fresh=fresh)

    async def get_prompt(
        self, name: str, arguments: dict[str, str], *, timeout: float, respondent: Respondent | None = None
    ) -> PromptResult:
        params = {"name": name, "arguments": arguments} if arguments else {"name": name}
        request = Request(method="prompts/get", params=params, capability="prompts", respondent=respondent)
        result = await self._asker.ask(request, deadline=_deadline(timeout))
        return convert.prompt_result(result, server=self.server)

    async def complete(
        self, reference: JsonObject, argument: str, value: str, *, context: dict[str, str], timeout: float
    ) -> Completion:
        params: dict[str, Any] = {"ref": reference, "argument": {"name": argument, "value": value}}
        if context:
            params["context"] = {"arguments": context}
        request = Request(method="completion/complete", params=params, capability="completions")
        result = await self._asker.ask(request, deadline=_deadline(timeout))
        return convert.completion(result, server=self.server)

    # ---- what servers ask and tell by themselves

    async def _elicited(self, params: JsonObject) -> JsonObject:
        """An older server asks. Its deadlines stand still until it has the answer (CON-11)."""
        session = self.supervisor.session  # None while it is still starting, when only the start-up deadline runs
        with session.paused() if session is not None else nullcontext():
            return await answer_request(self.server, params, self._asker.in_flight, self.supervisor.handlers.respondent)

    def _accompany(self, session: Session) -> Companion | None:
        self._sessions += 1
        return self._subscriptions.accompanying(session, first=self._sessions == 1)

    def _before(self, theirs: OnNotification | None) -> OnNotification:
        """A handler that hears every notification before `theirs` does."""

        def on_notification(method: str, params: JsonObject) -> Any:
            self._notified(method, params)
            waiting = theirs(method, params) if theirs is not None else None
            return waiting if inspect.isawaitable(waiting) else None

        return on_notification

    def _notified(self, method: str, params: JsonObject) -> None:
        self._subscriptions.notified(method, params)
        change = change_of(method, params)
        if change is None:
            return
        self._changed(*change)

    def _began_to_hear(self) -> None:
        if self._listed_unheard is not None and self._listed_unheard is self.supervisor.session:
            self._changed("tools")

    def _changed(self, kind: ChangeKind, uri: str | None = None) -> None:
        """Forget what is out of date, or may be (after a gap in a stream), before anybody asks again."""
        for outdated in OUTDATED.get(kind, ()):
            self._asker.cache.drop(outdated)
        if kind == "tools":
            self._listing.outdated()
            self._tool_changes, self._held = self._tool_changes + 1, None
        if uri is not None:
            self._asker.cache.drop("resources/read", {"uri": uri})
        self._listeners.tell(kind, uri)


def _deadline(timeout: float) -> float:
    return now() + timeout
