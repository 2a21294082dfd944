"""Which servers a resource tool asks, and how.

Owns: routing to exactly the named server, the gate (RES-8), asking all servers side by side (RES-5, RES-6).
Never: keeps a listing, follows a cursor itself, or lets one server's failure take another's entries.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import anyio

from interlock.connections.slices import in_slices
from interlock.resources.payload import Contribution, Listed, all_servers, contributing, one_server, read_answer
from interlock.vocabulary.errors import InterlockError, InvalidRequest, NotPermitted, ServerFailed
from interlock.vocabulary.ports import Connection, Respondent
from interlock.vocabulary.question import InputResponses
from interlock.vocabulary.resource import Listing, Page
from interlock.vocabulary.server import ServerStatus
from interlock.vocabulary.snapshot import Binding, ServerView

METHOD_NOT_FOUND = -32601
NAMED_SERVERS = 20
"""How many servers an error names."""
LONGEST_URI = 500
"""Characters of a URI that an error repeats."""

PageOf: TypeAlias = Callable[[Connection, str | None, float], Awaitable[Page[Listed]]]
AllOf: TypeAlias = Callable[[Connection, float], Awaitable[Listing[Listed]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is listed: the member that carries it, one page of it, all pages of it."""

    member: str
    page: PageOf
    everything: AllOf


RESOURCES = Kind(
    member="resources",
    page=lambda connection, cursor, timeout: connection.list_resources(cursor=cursor, timeout=timeout),
    everything=lambda connection, timeout: connection.list_all_resources(timeout=timeout),
)
TEMPLATES = Kind(
    member="resourceTemplates",
    page=lambda connection, cursor, timeout: connection.list_resource_templates(cursor=cursor, timeout=timeout),
    everything=lambda connection, timeout: connection.list_all_resource_templates(timeout=timeout),
)


async def list_one(binding: Binding, kind: Kind, server: str, cursor: str | None, timeout: float | None) -> str:
    """One page of `server`, its own cursor passed through.

    `timeout` is seconds; None takes the server's `tool_timeout`. A server that is still starting
    is waited for, within its start-up deadline.

    Raises:
        InvalidRequest: no such server. NotPermitted: it is disabled or behind the gate.
        ServerFailed: it is away, has no resources, or gave no answer that can be used.
    """
    view = _named(binding, server)
    page = await kind.page(view.connection, cursor, _call_timeout(view, timeout))
    return one_server(kind.member, server, await in_slices(contributing(server, page)), page.next_cursor)


async def list_all(binding: Binding, kind: Kind, timeout: float | None) -> str:
    """Everything of every server that has resources, with `errors` beside it.

    Raises:
        ServerFailed: at least one server was asked, and all of them failed (RES-6).
    """
    asked = _Aggregate(binding=binding, kind=kind, timeout=timeout, parts={}, failures={})
    async with anyio.create_task_group() as tasks:
        for view in _open_servers(binding):
            tasks.start_soon(asked.ask, view)
    if asked.failures and not asked.parts:
        raise _all_failed(kind, asked.failures)
    failed = {server: _failure(server, message) for server, message in asked.failures.items()}
    return all_servers(kind.member, asked.parts | failed)


async def read_one(
    binding: Binding,
    server: str,
    uri: str,
    timeout: float | None,
    *,
    respondent: Respondent | None = None,
    input_responses: InputResponses | None = None,
) -> str:
    """The contents of `uri` at exactly `server`; errors as in `list_one`."""
    view = _named(binding, server)
    try:
        read = await view.connection.read_resource(
            uri, timeout=_call_timeout(view, timeout), respondent=respondent, input_responses=input_responses
        )
    except ServerFailed as error:
        raise _not_read(uri, error) from error
    return read_answer(server, uri, read)


@dataclass(slots=True, kw_only=True)
class _Aggregate:
    """The answers of one aggregate as they come in; a server without resources is in neither map."""

    binding: Binding
    kind: Kind
    timeout: float | None
    parts: dict[str, Contribution]
    failures: dict[str, str]

    async def ask(self, view: ServerView) -> None:
        """Put `view`'s answer into `parts`, or the reason why there is none into `failures`."""
        name = view.config.name
        try:
            if (reason := _why_not_asked(self.binding, view)) is not None:
                self.failures[name] = reason
            else:
                listing = await self.kind.everything(view.connection, _call_timeout(view, self.timeout))
                self.parts[name] = await in_slices(contributing(name, listing))
        except InterlockError as error:
            if not _says_no_resources(error):
                self.failures[name] = error.message


def _why_not_asked(binding: Binding, view: ServerView) -> str | None:
    """Why an aggregate does not wait for this server; a named call does."""
    report = view.connection.report()
    match report.status:
        case ServerStatus.READY:
            return None
        case ServerStatus.STARTING:
            return "still starting"
        case ServerStatus.NOT_STARTED:
            return "still starting" if view.config.name in binding.pending else None
        case _:
            return f"{report.status.value.replace('_', ' ')}: {report.reason or 'no reason given'}"


def _open_servers(binding: Binding) -> Iterable[ServerView]:
    """The enabled servers that are not behind the gate."""
    return [view for view in binding.snapshot.servers.values() if not _is_gated(binding, view)]


def _is_gated(binding: Binding, view: ServerView) -> bool:
    return view.config.gated and not binding.snapshot.policy.orchestrator_mcp_enabled


def _named(binding: Binding, server: str) -> ServerView:
    view = binding.snapshot.servers.get(server)
    if view is None and server in binding.snapshot.disabled:
        raise NotPermitted(
            f"cannot use server {server!r}: it is disabled; set enabled = true in [mcp_servers.{server}]",
            server=server,
        )
    if view is None:
        known = _names(each.config.name for each in _open_servers(binding))
        raise InvalidRequest(f"cannot find MCP server {server!r}; the servers are {known}", server=server)
    if _is_gated(binding, view):
        raise NotPermitted(
            f"cannot use server {server!r} for resources: orchestrator.mcp.enabled is false; set it to true to open it",
            server=server,
        )
    return view


def _says_no_resources(error: InterlockError) -> bool:
    """Whether the server does not advertise resources, or does not know the method."""
    if not isinstance(error, ServerFailed):
        return False
    return error.kind == "unsupported" or (error.kind == "rejected" and error.rpc_code == METHOD_NOT_FOUND)


def _call_timeout(view: ServerView, timeout: float | None) -> float:
    return view.config.tool_timeout if timeout is None else timeout


def _failure(server: str, message: str) -> Contribution:
    return Contribution(errors=({"server": server, "message": message},))


def _not_read(uri: str, error: ServerFailed) -> ServerFailed:
    """`error` with the URI, which the words of a server seldom name."""
    hint = "; take a uri from a listing, or fill in a template" if error.kind == "rejected" else ""
    facts = {name: value for name, value in error.facts.items() if name not in {"server", "kind", "effect"}}
    return ServerFailed(
        f"cannot read {uri[:LONGEST_URI]!r}: {error.message}{hint}",
        server=error.server,
        kind=error.kind,
        effect=error.effect,
        rpc_code=error.rpc_code,
        rpc_data=error.rpc_data,
        **facts,
    )


def _all_failed(kind: Kind, failures: dict[str, str]) -> ServerFailed:
    named = sorted(failures)[:NAMED_SERVERS]
    reasons = "; ".join(f"{name}: {failures[name]}" for name in named) + _more(failures)
    return ServerFailed(
        f"cannot list {_words(kind)}: every server that was asked failed ({reasons})",
        server=", ".join(named),
        kind="unavailable",
        effect="none",
        failures=dict(failures),
    )


def _words(kind: Kind) -> str:
    return "resources" if kind is RESOURCES else "resource templates"


def _names(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return (", ".join(map(repr, ordered[:NAMED_SERVERS])) or "none") + _more(ordered)


def _more(names: Collection[str]) -> str:
    return f" and {len(names) - NAMED_SERVERS} more" if len(names) > NAMED_SERVERS else ""
