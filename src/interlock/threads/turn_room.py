"""What the turns of a Thread get from it: Steps, the Journal, calls that an earlier host left.

Owns: how a Step comes to be: what there is now, captured, stored and held for as long as it is open (CAT-6).
Never: knows which turn runs, or begins one.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.abc

from interlock.history.journal import Journal
from interlock.memory.usage import Accounting
from interlock.origins.store import Origins
from interlock.threads.binding import Binder
from interlock.threads.call import Caller
from interlock.threads.going_on import missing_outputs
from interlock.threads.identity import new_id
from interlock.threads.notices import Notices
from interlock.threads.servers import Servers
from interlock.threads.step import Step
from interlock.threads.turn import next_step
from interlock.vocabulary.conversation import OutputEntry
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.notice import Notice
from interlock.vocabulary.ports import Clock
from interlock.vocabulary.thread import HeldCall


@dataclass(slots=True, kw_only=True)
class ThreadRoom:
    """The TurnRoom of one Thread, over its parts. `tasks` are those of the Thread while it runs."""

    journal: Journal
    clock: Clock
    notices: Notices
    servers: Servers
    caller: Caller
    origins: Origins
    accounting: Accounting | None
    asked_to_close: Callable[[], bool]
    tasks: anyio.abc.TaskGroup | None = None
    binder: Binder = field(default_factory=Binder)

    @property
    def closing(self) -> bool:
        return self.asked_to_close()

    def refuse_if_closing(self) -> None:
        if self.closing:
            raise InvalidRequest(f"thread {self.journal.thread_id} is closed; resume it to go on")

    def notify(self, notice: Notice) -> None:
        self.notices.publish(notice)

    def origins_checkpoint(self) -> JsonObject:
        return self.origins.checkpoint()

    def count_uses(self, rollout_ids: Sequence[str]) -> None:
        if self.accounting is not None and self.tasks is not None and rollout_ids:
            self.tasks.start_soon(self.accounting.count, rollout_ids, name="memory uses")

    @asynccontextmanager
    async def open_step(self, turn_id: str) -> AsyncIterator[Step]:
        """Capture what there is now, and hold it while the block runs (CAT-6)."""
        self.refuse_if_closing()
        async with self.servers.leased() as snapshot:
            step_id = new_id(self.clock)
            pending = self.servers.pending
            binding = self.binder.bind(self.journal.thread_id, turn_id, step_id, snapshot, pending)
            captured = self.binder.captured(binding)
            await self.journal.record(captured)
            self.binder.stored(captured, binding)
            step = Step(binding, self.caller)
            try:
                yield step
            finally:
                step.end()

    async def take_up(self, held: HeldCall, *, waiting: Callable[[], None]) -> None:
        asked = {question.id for question in self.journal.facts.open_questions}
        await self.caller.take_up(held, asked, lambda turn_id: next_step(self, turn_id), waiting=waiting)

    def missing_outputs(self, turn_id: str) -> tuple[OutputEntry, ...]:
        return missing_outputs(self.journal, turn_id, self.caller.rules.output_limit)
