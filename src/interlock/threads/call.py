"""The walk of a model's call: found, recorded, hooked, permitted, sent, answered, clipped (ARCHITECTURE section 4).

Owns: the order of these steps for tools of servers and for the host's own resource tools.
Never: splits a public name, changes arguments itself, or looks at another Step's connections (CAT-6, CAT-9).
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Protocol

import anyio

from interlock.connections.cancelled import stop_if_cancelled
from interlock.history.clip import token_budget
from interlock.history.journal import Journal
from interlock.questions.asking import Asking
from interlock.questions.respondent import Desk
from interlock.threads import builtins, facts, output, taking_up
from interlock.threads.gate import Gate, Ticket
from interlock.threads.hooks import HookedCall, Hooks
from interlock.threads.identity import new_id
from interlock.threads.lifecycle import Answer, Attempt, Ending, run_item
from interlock.threads.permission import Approvals, Keeper, Permission, Wanted, goes_without_saying
from interlock.threads.request import CallRequest
from interlock.vocabulary.catalog import BuiltinEntry, ToolEntry
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.event import CallStarted
from interlock.vocabulary.item import ItemError, McpToolCallItem
from interlock.vocabulary.json import JsonObject, compact
from interlock.vocabulary.notice import ProgressNotice
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.ports import Clock
from interlock.vocabulary.question import InputResponses
from interlock.vocabulary.snapshot import Binding
from interlock.vocabulary.thread import HeldCall
from interlock.vocabulary.tool import Progress, ToolAnnotations, ToolResult

NAMED_SERVERS = 20
"""How many servers a sentence names."""

Target = ToolEntry | BuiltinEntry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRules:
    """What holds for every call of a Thread. `output_limit`: bytes of text that its model is shown of a result.

    `keeper`: where an approval that shall hold for ever is written; None: it can hold for the session at most.
    """

    approvals: Approvals = "ask"
    output_limit: int = token_budget()
    hooks: Hooks = field(default_factory=Hooks)
    keeper: Keeper | None = None


class OpenStep(Protocol):
    """A Step while it is open."""

    @property
    def binding(self) -> Binding: ...


class _Cancellable:
    """The scope of a call that runs; the questions of a call that was cancelled are withdrawn.

    A class: what a decorator makes of a generator takes four times as long, and every call passes here.
    """

    __slots__ = ("_asking", "_call_id", "_running", "_scope")

    def __init__(self, running: dict[str, anyio.CancelScope], asking: Asking, call_id: str) -> None:
        self._running = running
        self._asking = asking
        self._call_id = call_id
        self._scope = _scope_class()()

    def __enter__(self) -> anyio.CancelScope:
        self._running[self._call_id] = self._scope
        return self._scope

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        del self._running[self._call_id]
        if kind is not None or self._scope.cancel_called:
            self._asking.withdraw_call(self._call_id)


@cache
def _scope_class() -> type[anyio.CancelScope]:
    """The class of a cancel scope; `anyio.CancelScope()` looks for it each time, which takes longer than making one."""
    return type(anyio.CancelScope())


class Caller:
    """Runs the calls of one Thread."""

    def __init__(
        self,
        *,
        journal: Journal,
        clock: Clock,
        notify: Callable[[ProgressNotice], None],
        rules: CallRules,
        asking: Asking | None = None,
        keeps: Callable[[str], bool] = lambda turn_id: False,
    ) -> None:
        """`keeps`: as for `questions.rounds.Rounds`."""
        self._journal = journal
        self._clock = clock
        self._notify = notify
        self.rules = rules
        self._asking = asking or Asking(journal, new_id=lambda: new_id(clock), policy=Policy)
        self._permission = Permission(asking=self._asking)
        self._keeps = keeps
        self._gate = Gate()
        self._running: dict[str, anyio.CancelScope] = {}
        self._closed = False

    def __repr__(self) -> str:
        return f"<Caller {self._gate!r} closed={self._closed}>"

    async def run(self, binding: Binding, request: CallRequest) -> Ending:
        """Run one call to its end. A refused duplicate leaves no second item (LIF-8).

        Raises:
            InvalidRequest: the Thread is closing.
            StorageFailed: the item could not be stored.
        """
        if self._closed:
            raise InvalidRequest(f"cannot call {request.public_name!r}: its thread is closed")
        target = find(binding, request.public_name)
        item = describe(binding, request, target)
        if request.call_id in self._running or self._journal.is_used(request.call_id):
            return duplicate(item)
        start = CallStarted(turn_id=binding.turn_id, step_id=binding.step_id, item=item)
        with (
            _Cancellable(self._running, self._asking, request.call_id) as scope,
            self._gate.arriving(alone=runs_alone(binding, target)) as ticket,
        ):
            operation = partial(self._operate, binding, request, target, item, ticket)
            keeps = partial(self._keeps_open, start)
            return await run_item(self._journal, start, operation, clock=self._clock, scope=scope, keeps=keeps)

    async def take_up(
        self,
        held: HeldCall,
        asked: Collection[str],
        open_step: Callable[[str], AbstractAsyncContextManager[OpenStep]],
        *,
        waiting: Callable[[], None],
    ) -> Ending:
        """Go on with a call that another host began, once people have answered; `asked` and `waiting` as in
        `Asking.take_up`. `open_step` opens the Step through which it is sent (CAT-6).

        Raises:
            Kept: this host stops as well.
            StorageFailed: a fact could not be stored.
        """
        start = next(start for start in self._journal.facts.open_calls if start.item.id == held.call_id)

        async def operation(attempt: Attempt) -> Answer:
            await stop_if_cancelled()
            attempt.earlier = held.requested.request.method == taking_up.CALL
            attempt.reading = not attempt.earlier
            results = await self._asking.take_up(held, asked, waiting=waiting)
            responses = InputResponses(request=held.requested.request, results=results)
            async with open_step(start.turn_id) as step:
                with taking_up.told_to_call_again():
                    return await self._go_on(step.binding, start, responses, attempt)

        with _Cancellable(self._running, self._asking, held.call_id) as scope:
            if self._closed:
                scope.cancel()
            return await run_item(
                self._journal,
                start,
                operation,
                clock=self._clock,
                scope=scope,
                begun=True,
                keeps=partial(self._keeps_open, start),
            )

    async def _go_on(self, binding: Binding, start: CallStarted, responses: InputResponses, attempt: Attempt) -> Answer:
        """Send the call again, with the answers, to the server that asked; no other gets them (QST-1)."""
        request, item = responses.request, start.item
        view, desk = taking_up.same_server(binding, request), self._desk(binding, item.id)
        if attempt.reading:
            again = taking_up.read_again(item, request)
            call = hooked_builtin(binding, again, item)
            await view.connection.ready(view.config.startup_timeout)
            await self._asking.input_sent(start.turn_id, item.id)
            result = await builtins.run(again, binding, desk, responses)
        else:
            annotations = taking_up.refuse_denied(self._permission, binding, start, request)
            call = taking_up.hooked(start, request, annotations)
            if call.arguments != item.arguments:
                attempt.arguments = call.arguments
            await view.connection.ready(view.config.startup_timeout)
            await self._asking.input_sent(start.turn_id, item.id)
            result = await view.connection.call_tool(
                item.tool,
                call.arguments,
                timeout=view.config.tool_timeout,
                safe_to_repeat=annotations.safe_to_repeat,
                on_progress=self._progress(start.turn_id, item.id),
                respondent=desk,
                input_responses=responses,
            )
        return await self._answer(call if self.rules.hooks else None, result)

    def _keeps_open(self, start: CallStarted) -> bool:
        held = self._journal.facts.held_calls
        return self._keeps(start.turn_id) and any(call.call_id == start.item.id for call in held)

    def close(self) -> None:
        """Cancel every running call, each of which writes its end and returns it; refuse all later ones."""
        self._closed = True
        for scope in self._running.values():
            scope.cancel()

    async def _operate(
        self,
        binding: Binding,
        request: CallRequest,
        target: Target,
        item: McpToolCallItem,
        ticket: Ticket,
        attempt: Attempt,
    ) -> Answer:
        """Everything that can refuse the call comes before its turn, so that a refused one waits for no other."""
        if isinstance(target, ToolEntry):
            if not target.visible_to_model:
                raise InvalidRequest(f"tool {request.public_name!r} is for apps only; the model cannot call it")
            return await self._call_tool(binding, request, target, item, ticket, attempt)
        if target is None:
            raise InvalidRequest(no_such_tool(request.public_name, binding.pending))
        return await self._use_resources(binding, request, item, ticket, attempt)

    async def _use_resources(
        self, binding: Binding, request: CallRequest, item: McpToolCallItem, ticket: Ticket, attempt: Attempt
    ) -> Answer:
        call = None
        if self.rules.hooks:
            call = await self._hooked(hooked_builtin(binding, request, item), attempt)
            request = replace(request, text=compact(call.arguments), arguments=call.arguments)
        await ticket.admitted()
        await stop_if_cancelled()
        attempt.reading = True
        result = await builtins.run(request, binding, self._desk(binding, request.call_id))
        return await self._answer(call, result)

    async def _call_tool(
        self,
        binding: Binding,
        request: CallRequest,
        entry: ToolEntry,
        item: McpToolCallItem,
        ticket: Ticket,
        attempt: Attempt,
    ) -> Answer:
        view, rules = binding.snapshot.servers[entry.server], self.rules
        arguments, call = request.usable_arguments(), None
        if rules.hooks:
            call = await self._hooked(hooked_tool(binding, request, entry, arguments), attempt)
            arguments = call.arguments
        policy = binding.snapshot.policy
        if not goes_without_saying(entry, policy, view.config):
            await self._permission.permit(
                Wanted(entry=entry, item=item, arguments=arguments, turn_id=binding.turn_id),
                policy,
                view.config,
                approvals=rules.approvals,
                keeper=rules.keeper,
            )
        if not ticket.may_run:
            await ticket.admitted()
        await view.connection.ready(view.config.startup_timeout)
        await stop_if_cancelled()
        attempt.sent = True
        result = await view.connection.call_tool(
            entry.tool.name,
            arguments,
            timeout=view.config.tool_timeout,
            safe_to_repeat=entry.tool.annotations.safe_to_repeat,
            on_progress=self._progress(binding.turn_id, request.call_id),
            respondent=self._desk(binding, request.call_id),
        )
        return await self._answer(call, result)

    async def _hooked(self, call: HookedCall, attempt: Attempt) -> HookedCall:
        passed = await self.rules.hooks.run_before(call)
        if passed.arguments != call.arguments:
            attempt.arguments = passed.arguments
        return passed

    async def _answer(self, call: HookedCall | None, result: ToolResult) -> Answer:
        if call is not None:
            result = await self.rules.hooks.run_after(call, result)
        return output.answer(result, self.rules.output_limit)

    def _desk(self, binding: Binding, call_id: str) -> Desk:
        return Desk(self._asking, call_id=call_id, turn_id=binding.turn_id)

    def _progress(self, turn_id: str, call_id: str) -> Callable[[Progress], None]:
        def forward(progress: Progress) -> None:
            self._notify(ProgressNotice(turn_id=turn_id, call_id=call_id, progress=progress))

        return forward


def find(binding: Binding, public_name: str) -> Target:
    """What the Step knows under that name."""
    return binding.builtins.get(public_name) or binding.snapshot.catalog.get(public_name)


def no_such_tool(public_name: str, pending: Sequence[str]) -> str:
    """The sentence for a name that a Step does not know; a server that is still starting may bring it later."""
    waiting = "call one of the tools offered"
    if pending:
        names = ", ".join(pending[:NAMED_SERVERS]) + (", …" if len(pending) > NAMED_SERVERS else "")
        waiting += f", or try a later step: {names} still starting"
    return f"there is no tool {public_name[:200]!r} in this step; {waiting}"


def describe(binding: Binding, request: CallRequest, target: Target) -> McpToolCallItem:
    """The item of a call that begins now."""
    match target:
        case ToolEntry():
            config = binding.snapshot.servers[target.server].config
            return facts.tool_item(request.call_id, request.arguments, target, config)
        case BuiltinEntry():
            return facts.resource_item(request, target.public_name)
        case None:
            return facts.unknown_item(request.call_id, request.arguments, request.public_name)


def hooked_tool(binding: Binding, request: CallRequest, entry: ToolEntry, arguments: JsonObject) -> HookedCall:
    """What hooks see of a call of a server's tool."""
    return HookedCall(
        call_id=request.call_id,
        turn_id=binding.turn_id,
        server=entry.server,
        tool=entry.tool.name,
        public_name=entry.public_name,
        arguments=arguments,
        annotations=entry.tool.annotations,
    )


def hooked_builtin(binding: Binding, request: CallRequest, item: McpToolCallItem) -> HookedCall:
    """What hooks see of a call of a resource tool."""
    return HookedCall(
        call_id=request.call_id,
        turn_id=binding.turn_id,
        server=item.server,
        tool=item.tool,
        public_name=item.public_name,
        arguments=request.usable_arguments(),
        annotations=ToolAnnotations(read_only_hint=True),
        builtin=True,
    )


def runs_alone(binding: Binding, target: Target) -> bool:
    """Whether the call excludes all others of its Thread (LIF-5, RES-9)."""
    if not isinstance(target, ToolEntry):
        return False
    config = binding.snapshot.servers[target.server].config
    return not (config.supports_parallel_tool_calls or target.tool.annotations.read_only_hint is True)


def duplicate(item: McpToolCallItem) -> Ending:
    """The refusal of a call id that the Thread has seen before; its item is not stored."""
    message = f"call id {item.id!r} was used in this thread already; call again under a new id"
    error = ItemError(code=InvalidRequest.code, message=message)
    return Ending(item=replace(item, status="failed", error=error, duration=0))
