"""A Thread without servers of its own: a real Journal in a real store, Steps over fake connections."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import anyio.lowlevel

from interlock.history.journal import Journal
from interlock.stores import open_store
from interlock.threads import builtins
from interlock.threads.call import Caller, CallRules
from interlock.threads.step import Step
from interlock.threads.turn import Turn, TurnRequest
from interlock.vocabulary.conversation import TextPart, UserEntry
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    EntriesRecorded,
    Event,
    StepCaptured,
    ThreadStarted,
    TurnStarted,
)
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.notice import Notice
from interlock.vocabulary.ports import EventStore, Model
from interlock.vocabulary.snapshot import Snapshot
from tests.threads.fakes import Ticks, binding

TURN = "turn-1"


class Room:
    """What a Turn and its Steps need; `snapshot` is what the next Step sees."""

    def __init__(self, store: EventStore, journal: Journal, snapshot: Snapshot, rules: CallRules) -> None:
        self.store = store
        self.journal = journal
        self.snapshot = snapshot
        self.clock = Ticks()
        self.is_closing = False
        self.came_too_late = anyio.Event()
        self.notices: list[Notice] = []
        self.counted: list[Sequence[str]] = []
        self.caller = Caller(journal=journal, clock=self.clock, notify=self.notify, rules=rules)

    def notify(self, notice: Notice) -> None:
        self.notices.append(notice)

    @property
    def closing(self) -> bool:
        if self.is_closing:
            self.came_too_late.set()
        return self.is_closing

    def origins_checkpoint(self) -> JsonObject:
        return {"origins": [], "turns": []}

    def count_uses(self, rollout_ids: Sequence[str]) -> None:
        self.counted.append(rollout_ids)

    @asynccontextmanager
    async def open_step(self, turn_id: str) -> AsyncIterator[Step]:
        if self.closing:
            raise InvalidRequest("the thread is closed")
        await self.journal.record(StepCaptured(turn_id=turn_id, step_id="step-1", generation=1, revision=1))
        step = self.step()
        try:
            yield step
        finally:
            step.end()

    def step(self) -> Step:
        return Step(binding(self.snapshot, builtins.offered(self.snapshot)), self.caller)

    async def turn(self, model: Model, *, max_steps: int = 100, plan_mode: bool = False) -> Turn:
        """A turn whose start is stored; the test runs it."""
        request = TurnRequest(input=(TextPart(text="go"),), model=model, max_steps=max_steps, plan_mode=plan_mode)
        await self.journal.record(EntriesRecorded(turn_id=TURN, entries=(UserEntry(content=request.input),)))
        return Turn(TURN, request, self)

    async def events(self) -> list[Event]:
        """What is stored, read from the store."""
        return [stored.event async for stored in self.store.read("thread-1")]

    async def calls(self, call_id: str) -> list[Event]:
        """The stored start and end of one call."""
        events = [event for event in await self.events() if isinstance(event, CallStarted | CallEnded)]
        return [event for event in events if event.item.id == call_id]

    def items(self) -> Sequence[McpToolCallItem]:
        return [item for turn in self.journal.state.turns for item in turn.items if isinstance(item, McpToolCallItem)]


@asynccontextmanager
async def open_room(directory: Path, snapshot: Snapshot, rules: CallRules | None = None) -> AsyncIterator[Room]:
    """A Thread in which a turn runs."""
    async with (
        open_store(directory / "events.db") as store,
        Journal.open(store, "thread-1", Ticks()) as journal,
    ):
        await journal.record_all((ThreadStarted(), TurnStarted(turn_id=TURN)))
        yield Room(store, journal, snapshot, rules or CallRules())


@contextmanager
def cancelled_at(moment: int, tasks: anyio.abc.TaskGroup) -> Iterator[anyio.CancelScope]:
    """A scope that is cancelled after `moment` rounds of the event loop."""
    scope = anyio.CancelScope()

    async def cancel() -> None:
        for _ in range(moment):
            await anyio.lowlevel.checkpoint()
        scope.cancel()

    tasks.start_soon(cancel)
    with scope:
        yield scope
