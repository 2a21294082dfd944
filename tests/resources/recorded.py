"""Connections that answer as recorded servers did, and bindings over them.

Owns: the replay below the port `Connection`; the page walk in small (the real one is `connections.paging`).
Never: starts a process; tests/connections prove the port on real servers.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio

from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.ids import StepId, ThreadId, TurnId
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.ports import Connection
from interlock.vocabulary.resource import Listing, Page, Resource, ResourceContent, ResourceRead, ResourceTemplate
from interlock.vocabulary.server import ServerConfig, ServerReport, ServerStatus, StdioTransport
from interlock.vocabulary.snapshot import Binding, ServerView, Snapshot
from interlock.vocabulary.tool import BadEntry

VECTORS = Path(__file__).parent / "vectors"
Entry = TypeVar("Entry")


def vectors(name: str) -> Any:
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


def digits(count: int) -> str:
    """The text that the recording shortened to {"digits": count}."""
    return ("0123456789" * (count // 10 + 1))[:count]


@dataclass
class Recorded:
    """Below the port: a server with recorded answers to resources/list, resources/templates/list and resources/read."""

    server: str
    answers: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    capabilities: JsonObject = field(default_factory=lambda: {"resources": {}})
    status: ServerStatus = ServerStatus.READY
    reason: str | None = None
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)
    gate: anyio.Event | None = None
    """When set, requests wait for it: a server that starts, or that takes its time."""
    reached: anyio.Event = field(default_factory=anyio.Event)
    """Set once a request waits at the gate."""

    def report(self) -> ServerReport:
        return ServerReport(name=self.server, status=self.status, reason=self.reason, capabilities=self.capabilities)

    async def list_resources(self, *, cursor: str | None, timeout: float) -> Page[Resource]:
        return await self._page("resources/list", "resources", resource, cursor, timeout)

    async def list_all_resources(self, *, timeout: float) -> Listing[Resource]:
        return await self._walk("resources/list", "resources", resource, timeout)

    async def list_resource_templates(self, *, cursor: str | None, timeout: float) -> Page[ResourceTemplate]:
        return await self._page("resources/templates/list", "resourceTemplates", template, cursor, timeout)

    async def list_all_resource_templates(self, *, timeout: float) -> Listing[ResourceTemplate]:
        return await self._walk("resources/templates/list", "resourceTemplates", template, timeout)

    async def read_resource(self, uri: str, *, timeout: float, **rest: Any) -> ResourceRead:
        result = await self._ask("resources/read", uri, timeout)
        return ResourceRead(contents=tuple(content(each) for each in result["contents"]))

    async def _ask(self, method: str, key: str | None, timeout: float) -> JsonObject:
        self.asked.append((method, key))
        self.timeouts.append(timeout)
        if self.gate is not None:
            self.reached.set()
            await self.gate.wait()
        if self.status is ServerStatus.FAILED:
            raise self._failed("unavailable", self.reason or "it failed")
        if "resources" not in self.capabilities:
            raise self._failed("unsupported", "it does not advertise resources")
        found = [answer for answer in self.answers.get(method, []) if answer["for"] == key]
        if not found or "error" in found[0]:
            error = found[0]["error"] if found else {"code": -32601, "message": "Method not found"}
            raise self._failed("rejected", error["message"], error["code"])
        return cast(JsonObject, found[0]["result"])

    async def _page(
        self, method: str, member: str, decode: Callable[[Any], Entry], cursor: str | None, timeout: float
    ) -> Page[Entry]:
        result = await self._ask(method, cursor, timeout)
        entries, bad = decoded(result[member], decode)
        return Page(entries=entries, next_cursor=result.get("nextCursor"), bad=bad)

    async def _walk(self, method: str, member: str, decode: Callable[[Any], Entry], timeout: float) -> Listing[Entry]:
        entries: tuple[Entry, ...] = ()
        bad: tuple[BadEntry, ...] = ()
        cursor: str | None = None
        seen: set[str] = set()
        while True:
            page = await self._page(method, member, decode, cursor, timeout)
            entries, bad, cursor = entries + page.entries, bad + page.bad, page.next_cursor
            if cursor is None:
                return Listing(entries=entries, bad=bad)
            if cursor in seen:
                raise self._failed("protocol", "its nextCursor came twice")
            seen.add(cursor)

    def _failed(self, kind: Any, why: str, rpc_code: int | None = None) -> ServerFailed:
        return ServerFailed(
            f"server {self.server!r} gave no answer: {why}", server=self.server, kind=kind, rpc_code=rpc_code
        )


def decoded(raw: list[Any], decode: Callable[[Any], Entry]) -> tuple[tuple[Entry, ...], tuple[BadEntry, ...]]:
    good: list[Entry] = []
    bad: list[BadEntry] = []
    for position, entry in enumerate(raw, start=1):
        try:
            good.append(decode(entry))
        except (KeyError, TypeError):
            bad.append(BadEntry(name=f"#{position}", reason="it is not an entry"))
    return tuple(good), tuple(bad)


def resource(raw: dict[str, Any]) -> Resource:
    return Resource(
        uri=raw["uri"],
        name=raw["name"],
        title=raw.get("title"),
        description=raw.get("description"),
        mime_type=raw.get("mimeType"),
        size=raw.get("size"),
        icons=tuple(raw["icons"]) if "icons" in raw else None,
        meta=raw.get("_meta"),
        annotations=raw.get("annotations"),
        raw=raw,
    )


def template(raw: dict[str, Any]) -> ResourceTemplate:
    return ResourceTemplate(
        uri_template=raw["uriTemplate"],
        name=raw["name"],
        title=raw.get("title"),
        description=raw.get("description"),
        mime_type=raw.get("mimeType"),
        meta=raw.get("_meta"),
        annotations=raw.get("annotations"),
        raw=raw,
    )


def content(raw: dict[str, Any]) -> ResourceContent:
    text = raw.get("text")
    return ResourceContent(
        uri=raw["uri"],
        mime_type=raw.get("mimeType"),
        text=digits(text["digits"]) if isinstance(text, dict) else text,
        blob=raw.get("blob"),
        meta=raw.get("_meta"),
    )


def listed(*uris: str, cursor: str | None = None, following: str | None = None) -> dict[str, Any]:
    """A recorded page of resources that are named as their URIs."""
    result: dict[str, Any] = {"resources": [{"uri": uri, "name": uri} for uri in uris]}
    return {"for": cursor, "result": result | ({} if following is None else {"nextCursor": following})}


def offering(server: str, *uris: str, **facts: Any) -> Recorded:
    """A server with one page of resources, each of which reads as its own URI."""
    reads = [{"for": uri, "result": {"contents": [{"uri": uri, "text": uri}]}} for uri in uris]
    return Recorded(server, {"resources/list": [listed(*uris)], "resources/read": reads}, **facts)


def view(connection: Recorded, **settings: Any) -> ServerView:
    config = ServerConfig(name=connection.server, transport=StdioTransport(command="true"), **settings)
    return ServerView(config=config, connection=cast(Connection, connection))


def binding(
    *servers: Recorded | ServerView,
    pending: tuple[str, ...] = (),
    policy: Policy | None = None,
    disabled: frozenset[str] = frozenset(),
) -> Binding:
    """What a Step sees that has these servers, and others that are disabled."""
    views = [each if isinstance(each, ServerView) else view(each) for each in servers]
    return Binding(
        thread_id=ThreadId("t"),
        turn_id=TurnId("u"),
        step_id=StepId("s"),
        snapshot=Snapshot(
            generation=1,
            servers={each.config.name: each for each in views},
            disabled=disabled,
            policy=policy or Policy(),
        ),
        pending=pending,
    )


def recorded_run(name: str) -> dict[str, Recorded]:
    """The servers of one recorded run; one that never answered initialize failed to start."""
    return {
        server: Recorded(server, facts["answers"], facts["capabilities"])
        if facts["capabilities"] is not None
        else Recorded(server, status=ServerStatus.FAILED, reason="it ended before it answered")
        for server, facts in vectors("recorded_servers.json")[name].items()
    }
