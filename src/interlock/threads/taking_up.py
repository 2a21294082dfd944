"""What it takes to go on with calls that another host began (QST-9).

Owns: whether the server, the tool and the policy of now still let a held call go on; the model that its turn had.
Never: waits, asks people, or sends an answer to another server than the one that asked (QST-1).
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

from interlock.questions.rules import CallFacts
from interlock.threads.hooks import HookedCall
from interlock.threads.permission import Permission
from interlock.threads.request import CallRequest
from interlock.vocabulary.conversation import ModelEvent, ModelRequest
from interlock.vocabulary.errors import InvalidRequest, NotPermitted, ServerFailed
from interlock.vocabulary.event import CallStarted
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.json import JsonObject, compact
from interlock.vocabulary.ports import Model
from interlock.vocabulary.question import HeldRequest
from interlock.vocabulary.snapshot import Binding, ServerView
from interlock.vocabulary.tool import ToolAnnotations

CALL = "tools/call"
"""The method of a call of a tool; any other is that of a resource tool."""


def same_server(binding: Binding, request: HeldRequest) -> ServerView:
    """The server that asked.

    Raises:
        NotPermitted: it is disabled now.
        InvalidRequest: there is none of that name, or another one is configured under it now.
    """
    view = binding.snapshot.servers.get(request.server)
    if view is None and request.server in binding.snapshot.disabled:
        raise NotPermitted(
            f"server {request.server!r} asked before the host was restarted, and is disabled now; "
            f"set enabled = true in [mcp_servers.{request.server}]",
            server=request.server,
        )
    if view is None:
        raise InvalidRequest(
            f"server {request.server!r} asked before the host was restarted, and is not configured any more; "
            "call something else"
        )
    if view.config.whereabouts() != request.whereabouts:
        raise InvalidRequest(
            f"server {request.server!r} asked before the host was restarted, and another server is configured under "
            "that name now; call it again if it is meant"
        )
    return view


@contextmanager
def told_to_call_again() -> Iterator[None]:
    """A refusal of the block says what to do: a server may have lost what its state means, as when it seals it with a
    key that it makes at its start."""
    try:
        yield
    except ServerFailed as error:
        if error.kind != "rejected":
            raise
        facts = {name: value for name, value in error.facts.items() if name not in {"server", "kind", "effect"}}
        raise ServerFailed(
            f"{error.message}; it had asked before the host was restarted, so call it again from the beginning",
            server=error.server,
            kind=error.kind,
            effect=error.effect,
            rpc_code=error.rpc_code,
            rpc_data=error.rpc_data,
            **facts,
        ) from error


def refuse_denied(
    permission: Permission, binding: Binding, start: CallStarted, request: HeldRequest
) -> ToolAnnotations:
    """Return what is known of the tool if the call may go on.

    Raises:
        NotPermitted: policy, rules or filters of now forbid it.
    """
    item, view = start.item, binding.snapshot.servers[request.server]
    entry = binding.snapshot.catalog.find(request.server, item.tool)
    annotations = entry.tool.annotations if entry is not None else ToolAnnotations(read_only_hint=item.read_only_hint)
    facts = CallFacts(
        server=request.server,
        tool=item.tool,
        annotations=annotations,
        arguments=arguments_of(request),
        connector_id=item.connector_id,
    )
    permission.refuse_denied(facts, binding.snapshot.policy, view.config)
    return annotations


def arguments_of(request: HeldRequest) -> JsonObject:
    arguments = request.params.get("arguments")
    return arguments if isinstance(arguments, dict) else {}


def hooked(start: CallStarted, request: HeldRequest, annotations: ToolAnnotations) -> HookedCall:
    """What hooks after the call of a server's tool see of it; those before it have seen it."""
    item = start.item
    return HookedCall(
        call_id=item.id,
        turn_id=start.turn_id,
        server=request.server,
        tool=item.tool,
        public_name=item.public_name,
        arguments=arguments_of(request),
        annotations=annotations,
    )


def read_again(item: McpToolCallItem, request: HeldRequest) -> CallRequest:
    """The call of the resource tool that reads what was to be read."""
    arguments = {"server": request.server, "uri": request.params["uri"]}
    return CallRequest(call_id=item.id, public_name=item.public_name, text=compact(arguments), arguments=arguments)


class LaterModel:
    """The port Model, for a turn of an earlier host: `choose` gives the model when it is asked, or raises."""

    def __init__(self, name: str, choose: Callable[[], Model]) -> None:
        self._name = name
        self._choose = choose
        self._chosen: Model | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def provider(self) -> str:
        return self._model.provider

    def sample(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        return self._model.sample(request)

    @property
    def _model(self) -> Model:
        if self._chosen is None:
            self._chosen = self._choose()
        return self._chosen
