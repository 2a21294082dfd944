"""One request of a user, from its start to its single end.

Owns: the loop sample → calls → outputs → next Step, its bound, and how it ended (TRN-1); the way back into that loop
for a turn whose calls wait for people since another host ran it (QST-9).
Never: keeps history of its own; it reads the Journal's fold and records into the Journal.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, cast

import anyio
import anyio.abc

from interlock.connections.cancelled import stop_if_cancelled
from interlock.history.journal import Journal
from interlock.threads.compaction import compacted
from interlock.threads.identity import new_id
from interlock.threads.lifecycle import Kept
from interlock.threads.sampling import Sampling
from interlock.threads.step import CallResult, Step
from interlock.vocabulary.conversation import (
    CallEntry,
    ModelEvent,
    ModelRequest,
    OutputEntry,
    Part,
    TextPart,
    UserEntry,
)
from interlock.vocabulary.errors import InterlockError, InvalidRequest, ModelFailed, StorageFailed
from interlock.vocabulary.event import (
    EntriesRecorded,
    Event,
    MessageCompleted,
    TurnEnded,
    TurnOptions,
    TurnStatus,
)
from interlock.vocabulary.item import UserMessageItem
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.notice import DeltaNotice, Notice, PlanNotice, WarningNotice
from interlock.vocabulary.ports import Clock, Model, PreparedModel
from interlock.vocabulary.thread import HeldCall

DEFAULT_MAX_STEPS = 100
"""Samplings of one turn; a model that still calls tools then is taken to run in circles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """What a turn is asked to do; `output_schema` asks for a last message in that JSON Schema.

    `plan_mode`: the plans that the model proposes are not shown in its messages (MEM-2). `compact_at`: tokens of
    history from which on it is replaced by a summary before the next sampling (HIS-4); None: never.
    """

    input: tuple[Part, ...]
    model: Model
    instructions: str = ""
    output_schema: JsonObject | None = None
    plan_mode: bool = False
    max_steps: int = DEFAULT_MAX_STEPS
    compact_at: int | None = None

    @property
    def options(self) -> TurnOptions:
        """What is stored of it where another host may have to go on."""
        return TurnOptions(
            instructions=self.instructions,
            output_schema=self.output_schema,
            plan_mode=self.plan_mode,
            max_steps=self.max_steps,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """How a turn ended. `error` is a sentence when it failed; a blank last message is none.

    One that waits for people when its Thread is closed comes back as interrupted, with a sentence; it is stored as
    running, and goes on when the Thread is resumed.
    """

    turn_id: str
    status: TurnStatus
    error: str | None = None
    last_message: str | None = None


class Steps(Protocol):
    """The Thread that owns a turn and its calls: when it closes, it cancels them."""

    @property
    def closing(self) -> bool: ...

    def open_step(self, turn_id: str) -> AbstractAsyncContextManager[Step]: ...


@asynccontextmanager
async def next_step(steps: Steps, turn_id: str) -> AsyncIterator[Step]:
    """As `open_step`; but where the Thread closes, what would go on waits for its cancellation: refused, the turn would
    end as failed and not as interrupted, and a call whose answers have come could not be left to the next host."""
    if steps.closing:
        await anyio.sleep_forever()
    async with steps.open_step(turn_id) as step:
        yield step


class TurnRoom(Steps, Protocol):
    """What a turn needs of its Thread."""

    @property
    def journal(self) -> Journal: ...

    @property
    def clock(self) -> Clock: ...

    def notify(self, notice: Notice) -> None: ...

    def origins_checkpoint(self) -> JsonObject:
        """What a compaction takes along of the origins (ORI-7)."""
        ...

    def count_uses(self, rollout_ids: Sequence[str]) -> None:
        """Count uses of memories, beside the turn (MEM-5)."""
        ...

    async def take_up(self, held: HeldCall, *, waiting: Callable[[], None]) -> object:
        """Go on with a call that another host began; as `Caller.take_up`."""
        ...

    def missing_outputs(self, turn_id: str) -> tuple[OutputEntry, ...]:
        """For all calls of the model that have none yet."""
        ...


WAITS = "the thread was closed while a question of this turn is open; resume it to go on"


class Turn:
    """A running or ended turn. It runs in a task of its Thread: whoever started it may go away."""

    def __init__(
        self,
        turn_id: str,
        request: TurnRequest,
        room: TurnRoom,
        *,
        held: Sequence[HeldCall] = (),
        implicit: bool = False,
    ) -> None:
        """`held`: calls that wait for people since another host ran the turn; `implicit`: that host's program asked
        for them itself, so with their ends the turn is over."""
        self._id = turn_id
        self._request = request
        self._room = room
        self._held = tuple(held)
        self._implicit = implicit
        self._interrupting = False
        self._scope = anyio.CancelScope()
        self._done = anyio.Event()
        self._last_message: str | None = None
        self._compacted: int | None = None
        self._said: list[tuple[Part, ...]] = []
        """What the user said meanwhile and the model has not heard yet."""
        self._left = False
        self._closed = False
        self._result: TurnResult | None = None
        self._defect: Exception | None = None

    def __repr__(self) -> str:
        return f"<Turn {self._id} {self._result.status if self._result else 'in_progress'}>"

    @property
    def id(self) -> str:
        return self._id

    @property
    def options(self) -> TurnOptions:
        return self._request.options

    def keeps_calls(self) -> bool:
        """Whether its calls that wait for people are left to the next host, asked of each when this one stops: nobody
        has interrupted the turn, and nothing was said that its model has not heard.

        Once it is so, it stays so: else a call, its question and the turn could be told different things.
        """
        self._left = self._left or not (self._interrupting or self._said)
        return self._left

    @property
    def interrupted(self) -> bool:
        """Whether it has ended as interrupted."""
        return self._result is not None and self._result.status == "interrupted"

    async def finished(self) -> TurnResult:
        """Wait for the end, which is then stored.

        Raises whatever broke inside the host, if that is why the turn failed.
        """
        await self._done.wait()
        assert self._result is not None  # noqa: S101 -- set before the event, and never taken back
        if self._defect is not None:
            raise self._defect
        return self._result

    def steer(self, user_input: str | Sequence[Part]) -> None:
        """Say more while the turn runs: the model hears it before its next sampling, and there will be one.

        It becomes a message of the user then, or at the turn's end, however that comes about.

        Raises:
            InvalidRequest: the turn has come to its end, or is left to the next host.
        """
        if self._left:
            raise InvalidRequest(f"cannot say more in turn {self._id}: {WAITS}")
        if self._closed:
            raise InvalidRequest(f"turn {self._id} has come to its end; start another one")
        self._said.append(as_parts(user_input))

    async def interrupt(self) -> None:
        """End the turn as interrupted: its calls are cancelled and each writes its end. Returns once it has ended.

        Too late when its Thread is closing and has left its calls to the next host: then the result says so.
        """
        self._interrupting = True
        await self.stop()

    async def stop(self) -> None:
        """As `interrupt`, but calls that wait for people are left to the next host, and the turn with them (QST-9)."""
        self._scope.cancel()
        await self._done.wait()

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run the turn, whose start is stored, to its end. Called once, by the Thread.

        `task_status` tells when all that an earlier host was asked can be answered here.
        """
        status: TurnStatus = "interrupted"
        error: str | None = None
        try:
            with self._scope:
                if self._held:
                    await self._take_up(task_status)
                if self._implicit:
                    error = "the host ended while the turn ran"
                else:
                    await self._converse()
                    status = "completed"
        except Kept:
            pass
        except InterlockError as failure:
            status, error = "failed", failure.message
        except Exception as defect:
            status, error, self._defect = "failed", f"the turn broke inside the host ({type(defect).__name__})", defect
        finally:
            self._closed = True
            await self._end(status, error)

    async def _end(self, status: TurnStatus, error: str | None) -> None:
        result = TurnResult(turn_id=self._id, status=status, error=error, last_message=self._last_message)
        if self._is_kept:
            self._result = TurnResult(turn_id=self._id, status="interrupted", error=WAITS)
            self._done.set()
            return
        try:
            await self._take_in()
            await self._record(TurnEnded(turn_id=self._id, status=status, error=error, last_message=self._last_message))
        except StorageFailed as failure:
            result = TurnResult(turn_id=self._id, status="failed", error=failure.message)
        finally:
            self._result = result
            self._done.set()

    @property
    def _is_kept(self) -> bool:
        """Whether calls of the turn were left open for the next host."""
        held = any(held.requested.turn_id == self._id for held in self._room.journal.facts.held_calls)
        return held and self.keeps_calls()

    async def _take_up(self, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Go on with the calls that wait for people, side by side; then all calls of the model have outputs."""
        defects: list[Exception] = []
        waiting = [anyio.Event() for _ in self._held]

        async def run(held: HeldCall, waits: anyio.Event) -> None:
            try:
                await self._room.take_up(held, waiting=waits.set)
            except Exception as defect:  # the others finish first
                defects.append(defect)
            finally:
                waits.set()

        try:
            async with anyio.create_task_group() as tasks:
                for held, waits in zip(self._held, waiting, strict=True):
                    tasks.start_soon(run, held, waits)
                for waits in waiting:
                    await waits.wait()
                task_status.started()
        finally:
            if not self._is_kept and (outputs := self._room.missing_outputs(self._id)):
                await self._record(EntriesRecorded(turn_id=self._id, entries=outputs))
        if defects:
            raise defects[0]

    async def _converse(self) -> None:
        if isinstance(self._request.model, PreparedModel):
            await self._request.model.prepare_sampling()
        for _ in range(self._request.max_steps):
            await self._take_in()
            await self._compact_if_due()
            async with next_step(self._room, self._id) as step:
                calls = await self._sample(step)
                if not calls and not self._said:
                    self._closed = True  # nothing is awaited in between: what is said now is for another turn
                    return
                if calls:
                    await self._answer(step, calls)
        raise ModelFailed(
            f"the turn was stopped after {self._request.max_steps} steps: the model kept calling tools; "
            "ask for less at once, or raise max_steps"
        )

    async def _take_in(self) -> None:
        """Record what the user said since the last sampling."""
        said, self._said = self._said, []
        for parts in said:
            item = UserMessageItem(id=new_id(self._room.clock), content=parts)
            await self._record(
                MessageCompleted(turn_id=self._id, item=item),
                EntriesRecorded(turn_id=self._id, entries=(UserEntry(content=parts),)),
            )

    async def _compact_if_due(self) -> None:
        """Before a sampling that would take in too much. Without a summary the turn goes on with what there is."""
        limit, journal = self._request.compact_at, self._room.journal
        if limit is None or journal.context_tokens < limit or len(journal.entries) == self._compacted:
            return
        try:
            fact = await compacted(
                self._request.model,
                journal.entries,
                instructions=self._request.instructions,
                origins=self._room.origins_checkpoint(),
                turn_id=self._id,
                turn_input=self._request.input,
            )
            await self._record(fact)
        except ModelFailed as failure:
            self._room.notify(WarningNotice(message=f"the conversation was not compacted: {failure.message}"))
        self._compacted = len(journal.entries)  # nothing to gain from another try before there is more

    async def _sample(self, step: Step) -> tuple[CallEntry, ...]:
        sampling = Sampling(
            turn_id=self._id, new_id=lambda: new_id(self._room.clock), plan_mode=self._request.plan_mode
        )
        facts = sampling.broken_off
        try:
            await self._listen(step, sampling)
            facts = sampling.whole
        finally:
            self._last_message = sampling.last_message or self._last_message
            await self._record(*facts())
            self._room.count_uses(sampling.cited)
        return sampling.calls

    async def _listen(self, step: Step, sampling: Sampling) -> None:
        request = ModelRequest(
            entries=self._room.journal.entries,
            instructions=self._request.instructions,
            tools=step.tools,
            output_schema=self._request.output_schema,
        )
        await stop_if_cancelled()
        stream = cast(AsyncGenerator[ModelEvent, None], self._request.model.sample(request))
        place = {"turn_id": self._id, "step_id": step.id}
        async with aclosing(stream) as events:
            async for event in events:
                delta = sampling.take(event)
                if delta is not None:
                    self._room.notify(DeltaNotice(**place, item_id=delta.item_id, text=delta.text))
                for plan in sampling.take_plans():
                    self._room.notify(PlanNotice(**place, item_id=plan.item_id, text=plan.text))
        if not sampling.completed:
            raise ModelFailed(f"the answer of model {self._request.model.name!r} ended before it was complete")

    async def _answer(self, step: Step, calls: Sequence[CallEntry]) -> None:
        """Run the calls side by side; their outputs are recorded in the order of the calls, whatever happens."""
        results: list[CallResult | None] = [None] * len(calls)
        defects: list[Exception] = []

        async def run(index: int, call: CallEntry) -> None:
            try:
                results[index] = await step.call(call.call_id, call.name, call.arguments)
            except Exception as defect:  # the others finish first
                defects.append(defect)

        try:
            async with anyio.create_task_group() as tasks:
                for index, call in enumerate(calls):
                    tasks.start_soon(run, index, call)
        finally:
            if not self._is_kept:
                outputs = tuple(_output(call, result) for call, result in zip(calls, results, strict=True))
                await self._record(EntriesRecorded(turn_id=self._id, entries=outputs))
        if defects:
            raise defects[0]

    async def _record(self, *events: Event) -> None:
        # What was said or done is written also while the turn is being cancelled: history without it would be wrong.
        if events:
            with anyio.CancelScope(shield=True):
                await self._room.journal.record_all(events)


def as_parts(user_input: str | Sequence[Part]) -> tuple[Part, ...]:
    return (TextPart(text=user_input),) if isinstance(user_input, str) else tuple(user_input)


def _output(call: CallEntry, result: CallResult | None) -> OutputEntry:
    if result is not None:
        return result.output
    text = f"the call of {call.name!r} was interrupted; what it did is unknown"
    return OutputEntry(call_id=call.call_id, content=(TextPart(text=text),), success=False)
