"""Stand-ins below the ports, for tests of what the threads room decides."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import anyio.lowlevel

from interlock.catalog.naming import public_name
from interlock.catalog.offer import tools_for_model
from interlock.vocabulary.catalog import Catalog, ToolEntry
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.event import Event
from interlock.vocabulary.ids import StepId, ThreadId, TurnId
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.resource import (
    Completion,
    Listing,
    Page,
    Prompt,
    PromptResult,
    Resource,
    ResourceContent,
    ResourceRead,
    ResourceTemplate,
)
from interlock.vocabulary.server import ServerConfig, ServerReport, ServerStatus, StdioTransport
from interlock.vocabulary.snapshot import Binding, ServerView, Snapshot
from interlock.vocabulary.tool import Progress, Tool, ToolAnnotations, ToolResult, ToolSpec

READ_ONLY = ToolAnnotations(read_only_hint=True)

ToolFunction = Callable[[JsonObject | None], Awaitable[ToolResult]]


def text_result(text: str) -> ToolResult:
    return ToolResult(content=({"type": "text", "text": text},))


class FakeConnection:
    """A ready connection whose tools are Python functions; notes what it was sent.

    What a request may say besides (`rest`: progress, metadata, …) makes no difference here.
    """

    def __init__(self, server: str, tools: Mapping[str, ToolFunction] | None = None) -> None:
        self._server = server
        self.functions = dict(tools or {})
        self.sent: list[tuple[str, JsonObject | None]] = []
        self.listing: Listing[Tool] | ServerFailed = Listing(entries=())
        self.status = ServerStatus.READY
        self.restarts = 0
        self.not_ready: ServerFailed | None = None
        self.progress: Sequence[Progress] = ()
        self.when_ready: Callable[[], None] | None = None
        self.read_failure: ServerFailed | None = None
        self.before_reading: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint

    @property
    def server(self) -> str:
        return self._server

    def report(self) -> ServerReport:
        return ServerReport(
            name=self._server, status=self.status, restarts=self.restarts, capabilities={"tools": {}, "resources": {}}
        )

    async def ready(self, timeout: float, **rest: Any) -> None:
        if self.when_ready is not None:
            self.when_ready()
            return  # a real connection that is ready does not wait either
        await anyio.lowlevel.checkpoint()
        if self.not_ready is not None:
            raise self.not_ready

    async def list_tools(self, *, timeout: float, **rest: Any) -> Listing[Tool]:
        await anyio.lowlevel.checkpoint()
        if isinstance(self.listing, ServerFailed):
            raise self.listing
        return self.listing

    async def list_resources(self, *, cursor: str | None, timeout: float, **rest: Any) -> Page[Resource]:
        return Page(entries=(Resource(uri="doc://a", name="a"),))

    async def list_all_resources(self, *, timeout: float, **rest: Any) -> Listing[Resource]:
        return Listing(entries=(Resource(uri="doc://a", name="a"),))

    async def list_resource_templates(
        self, *, cursor: str | None, timeout: float, **rest: Any
    ) -> Page[ResourceTemplate]:
        return Page(entries=())

    async def list_all_resource_templates(self, *, timeout: float, **rest: Any) -> Listing[ResourceTemplate]:
        return Listing(entries=())

    async def read_resource(
        self,
        uri: str,
        *,
        timeout: float,
        **rest: Any,
    ) -> ResourceRead:
        await anyio.lowlevel.checkpoint()
        await self.before_reading()
        if self.read_failure is not None:
            raise self.read_failure
        if uri == "doc://refused":
            raise ServerFailed("there is no such resource", server=self._server, kind="rejected", rpc_code=-32002)
        return ResourceRead(contents=(ResourceContent(uri=uri, text="hello"),))

    async def call_tool(
        self,
        name: str,
        arguments: JsonObject | None,
        *,
        timeout: float,
        **rest: Any,
    ) -> ToolResult:
        self.sent.append((name, arguments))
        for progress in self.progress:
            rest["on_progress"](progress)
        await anyio.lowlevel.checkpoint()
        return await self.functions[name](arguments)

    async def list_all_prompts(self, *, timeout: float, **rest: Any) -> Listing[Prompt]:
        return Listing(entries=())

    async def get_prompt(self, name: str, arguments: dict[str, str], *, timeout: float, **rest: Any) -> PromptResult:
        raise NotImplementedError

    async def complete(
        self, reference: JsonObject, argument: str, value: str, *, context: dict[str, str], timeout: float, **rest: Any
    ) -> Completion:
        raise NotImplementedError

    async def subscribe_resource(self, uri: str, *, timeout: float) -> None:
        raise NotImplementedError

    async def unsubscribe_resource(self, uri: str, *, timeout: float) -> None:
        raise NotImplementedError


def tool(name: str, annotations: ToolAnnotations = READ_ONLY, **rest: Any) -> Tool:
    return Tool(name=name, input_schema={"type": "object"}, annotations=annotations, **rest)


def config(name: str, **settings: Any) -> ServerConfig:
    return ServerConfig(name=name, transport=StdioTransport(command="unused"), **settings)


def entry(server: str, a_tool: Tool) -> ToolEntry:
    name = public_name(server, a_tool.name).text
    spec = ToolSpec(name=name, description="", input_schema=a_tool.input_schema)
    return ToolEntry(public_name=name, server=server, tool=a_tool, spec=spec, visible_to_model=not a_tool.app_only)


def snapshot(*servers: tuple[ServerConfig, FakeConnection, Sequence[Tool]], policy: Policy | None = None) -> Snapshot:
    entries = [entry(config.name, tool) for config, _, tools in servers for tool in tools]
    return Snapshot(
        generation=1,
        servers={config.name: ServerView(config=config, connection=connection) for config, connection, _ in servers},
        catalog=Catalog(revision=1, entries={e.public_name: e for e in sorted(entries, key=lambda e: e.public_name)}),
        policy=policy or Policy(),
    )


def binding(snapshot: Snapshot, builtins: Mapping[str, Any] | None = None, step: str = "step-1") -> Binding:
    builtins = builtins or {}
    return Binding(
        thread_id=ThreadId("thread-1"),
        turn_id=TurnId("turn-1"),
        step_id=StepId(step),
        snapshot=snapshot,
        builtins=builtins,
        tools=tools_for_model(snapshot.catalog, builtins),
    )


class Memory:
    """A recorder that keeps events in a list, and takes a moment to do so."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def record(self, event: Event) -> None:
        await anyio.lowlevel.checkpoint()
        self.events.append(event)


class Ticks:
    """A clock that is 250 ms later each time it is asked."""

    def __init__(self) -> None:
        self.time = 0.0

    def monotonic(self) -> float:
        self.time += 0.25
        return self.time

    def now_milliseconds(self) -> int:
        return 0
