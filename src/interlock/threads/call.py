"""The walk of a model's call: found, recorded, permitted, sent, answered, clipped (ARCHITECTURE section 4).

Owns: the order of these steps for tools of servers and for the host's own resource tools.
Never: splits a public name, changes arguments, or looks at another Step's connections (CAT-6, CAT-9).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import anyio
import anyio.lowlevel

from interlock.history.clip import token_budget
from interlock.history.journal import Journal
from interlock.threads import builtins, facts, output
from interlock.threads.gate import Gate
from interlock.threads.lifecycle import Answer, Attempt, Ending, Operation, run_item
from interlock.threads.permission import Approvals, permit
from interlock.threads.request import CallRequest
from interlock.vocabulary.catalog import BuiltinEntry, ToolEntry
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.event import CallStarted
from interlock.vocabulary.item import ItemError, McpToolCallItem
from interlock.vocabulary.notice import ProgressNotice
from interlock.vocabulary.ports import Clock
from interlock.vocabulary.snapshot import Binding
from interlock.vocabulary.tool import Progress

Target = ToolEntry | BuiltinEntry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRules:
    """What holds for every call of a Thread. `output_limit`: bytes of text that its model is shown of a result."""

    approvals: Approvals = "deny"
    output_limit: int = token_budget()


class Caller:
    """Runs the calls of one Thread."""

    def __init__(
        self,
        *,
        journal: Journal,
        clock: Clock,
        notify: Callable[[ProgressNotice], None],
        rules: CallRules,
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._notify = notify
        self.rules = rules
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
        alone = runs_alone(binding, target)
        with self._cancellable(request.call_id) as scope, self._gate.arriving(alone=alone) as ticket:

            async def operation(attempt: Attempt) -> Answer:
                walk = self._prepare(binding, request, target)
                await ticket.admitted()
                return await walk(attempt)

            return await run_item(self._journal, start, operation, clock=self._clock, scope=scope)

    def close(self) -> None:
        """Cancel every running call, each of which writes its end and returns it; refuse all later ones."""
        self._closed = True
        for scope in self._running.values():
            scope.cancel()

    @contextmanager
    def _cancellable(self, call_id: str) -> Iterator[anyio.CancelScope]:
        scope = self._running[call_id] = anyio.CancelScope()
        try:
            yield scope
        finally:
            del self._running[call_id]

    def _prepare(self, binding: Binding, request: CallRequest, target: Target) -> Operation:
        """Everything that can refuse the call, so that a refused one waits for no other."""
        match target:
            case ToolEntry() if target.visible_to_model:
                return self._tool_operation(binding, request, target)
            case ToolEntry():
                raise InvalidRequest(f"tool {request.public_name!r} is for apps only; the model cannot call it")
            case BuiltinEntry():
                return self._resource_operation(binding, request)
            case None:
                raise InvalidRequest(
                    f"there is no tool {request.public_name[:200]!r} in this step; call one of the tools offered"
                )

    def _resource_operation(self, binding: Binding, request: CallRequest) -> Operation:
        async def operation(attempt: Attempt) -> Answer:
            return output.answer(await builtins.run(request, binding), self.rules.output_limit)

        return operation

    def _tool_operation(self, binding: Binding, request: CallRequest, entry: ToolEntry) -> Operation:
        view = binding.snapshot.servers[entry.server]
        arguments = request.usable_arguments()
        permit(entry, binding.snapshot.policy, view.config, self.rules.approvals)

        async def operation(attempt: Attempt) -> Answer:
            await view.connection.ready(view.config.startup_timeout)
            await anyio.lowlevel.checkpoint_if_cancelled()
            attempt.sent = True
            result = await view.connection.call_tool(
                entry.tool.name,
                arguments,
                timeout=view.config.tool_timeout,
                safe_to_repeat=entry.tool.annotations.safe_to_repeat,
                on_progress=self._progress(binding.turn_id, request.call_id),
            )
            return output.answer(result, self.rules.output_limit)

        return operation

    def _progress(self, turn_id: str, call_id: str) -> Callable[[Progress], None]:
        def forward(progress: Progress) -> None:
            self._notify(ProgressNotice(turn_id=turn_id, call_id=call_id, progress=progress))

        return forward


def find(binding: Binding, public_name: str) -> Target:
    """What the Step knows under that name."""
    return binding.builtins.get(public_name) or binding.snapshot.catalog.get(public_name)


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
