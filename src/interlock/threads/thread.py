"""One conversation: the face that applications see, and the owner of everything that runs for it.

Owns: the Thread's tasks, its one running turn, the order of opening and closing.
Never: outlives its Host, or leaves a call, a lease or a task behind (ARCHITECTURE section 4).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress

import anyio
import anyio.abc

from interlock.connections.generation import Generations
from interlock.history.fold import ThreadState
from interlock.history.journal import Journal
from interlock.memory.usage import Accounting
from interlock.origins.read import connector_meta
from interlock.origins.store import Origins
from interlock.questions.asking import Asking
from interlock.questions.audience import Listener, Until
from interlock.questions.respondent import Desk
from interlock.resources.client import ResourceClient
from interlock.resources.skills import DEFAULT_SERVER, Skills
from interlock.threads.call import Caller
from interlock.threads.compaction import compacted
from interlock.threads.direct import DirectRequests
from interlock.threads.going_on import turn_to_go_on_with
from interlock.threads.identity import new_id
from interlock.threads.notices import Notices, NoticeStream
from interlock.threads.reading import read_for_call
from interlock.threads.recovery import going_on
from interlock.threads.servers import Servers
from interlock.threads.settings import ThreadSettings
from interlock.threads.step import Step
from interlock.threads.turn import DEFAULT_MAX_STEPS, Turn, TurnRequest, as_parts
from interlock.threads.turn_room import ThreadRoom
from interlock.vocabulary.conversation import Part, UserEntry
from interlock.vocabulary.errors import InterlockError, InvalidRequest, StorageFailed
from interlock.vocabulary.event import (
    EntriesRecorded,
    Event,
    MessageCompleted,
    StoredEvent,
    ThreadAnnotated,
    ThreadArchived,
    ThreadNamed,
    ThreadRolledBack,
    ThreadStarted,
    TurnEnded,
    TurnOptions,
    TurnStarted,
    TurnStatus,
)
from interlock.vocabulary.item import ThreadItem, UserMessageItem
from interlock.vocabulary.json import JsonObject, copied
from interlock.vocabulary.notice import LaggedNotice, Notice
from interlock.vocabulary.overrides import ThreadOverrides
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.ports import Clock, Model
from interlock.vocabulary.question import Answer, Question
from interlock.vocabulary.resource import ResourceRead
from interlock.vocabulary.server import ServerReport
from interlock.vocabulary.snapshot import Snapshot

CLOSING_PATIENCE = 5.0
"""Seconds that closing waits for Steps that are still open."""


class Thread:
    """A loaded Thread. Made by `Host.start_thread` and `Host.resume_thread`; all methods work from any task."""

    def __init__(
        self,
        journal: Journal,
        generations: Generations,
        settings: ThreadSettings,
        clock: Clock,
        *,
        accounting: Accounting | None = None,
        origins: Origins | None = None,
        overrides: ThreadOverrides | None = None,
    ) -> None:
        """`origins` follows the journal; without it no call of the past grants a read."""
        self._configured = settings
        self._overrides = self._wished = overrides or ThreadOverrides()
        settings = settings.overridden(self._overrides)
        self._journal = journal
        self._origins = origins or Origins()
        self._settings = settings
        self._clock = clock
        self._notices = Notices()
        self._servers = Servers(generations, notify=self.notify, policy=settings.policy, grace=settings.grace)
        self._asking = Asking(
            journal,
            new_id=lambda: new_id(clock),
            policy=lambda: self.snapshot.policy,
            reviewer=settings.reviewer,
            keeps=self._goes_on,
            turn_options=self._options_of,
        )
        self._caller = Caller(
            journal=journal,
            clock=clock,
            notify=self.notify,
            rules=settings.rules,
            asking=self._asking,
            keeps=self._goes_on,
        )
        self._closing = anyio.Event()
        self._closed = anyio.Event()
        self._room = self._turn_room(accounting)
        self._requests = DirectRequests(self._servers.holding, Desk(self._asking))
        self._resources = ResourceClient(self._servers.latest)
        self._skills: dict[str, Skills] = {}
        self._turn: Turn | None = None
        self._taken_up: Turn | None = None
        self._beginning, self._ending = anyio.Lock(), anyio.Lock()
        self._compacting: anyio.CancelScope | None = None

    def __repr__(self) -> str:
        status = "closed" if self.closed else "closing" if self._closing.is_set() else "open"
        return f"<Thread {self.id} {status} turn={self._journal.open_turn} {self._servers!r}>"

    # ---- what it is

    @property
    def id(self) -> str:
        return self._journal.thread_id

    @property
    def state(self) -> ThreadState:
        """All that has been stored of this Thread, folded: turns, items, the model's history."""
        return self._journal.state

    @property
    def items(self) -> tuple[ThreadItem, ...]:
        """Messages and calls of all turns, in the order in which they began."""
        return tuple(item for turn in self.state.turns for item in turn.items)

    @property
    def snapshot(self) -> Snapshot:
        """The servers and the catalogue that the next Step would see."""
        return self._servers.snapshot

    @property
    def next_policy(self) -> Policy:
        """The policy with which the next turn begins, if the configuration stays as it is."""
        return self._wished.policy(self._configured.policy)

    @property
    def running_turn(self) -> Turn | None:
        """The turn that `start_turn` began and that has not ended."""
        return self._turn if self._turn is not None and self._turn.id == self._journal.open_turn else None

    @property
    def taken_up_turn(self) -> Turn | None:
        """The turn of an earlier host with which this one went on when the Thread was loaded; it may have ended."""
        return self._taken_up

    @property
    def closing(self) -> bool:
        """Whether it was asked to close, or has closed; nothing new is begun then."""
        return self._closing.is_set()

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    @property
    def requests(self) -> DirectRequests:
        """Requests of the application over this Thread's connections; no item, no history (RPC-2)."""
        return self._requests

    @property
    def resources(self) -> ResourceClient:
        """Resources over the connections of now, for consumers that keep what they read by its `cache_key` (SKL-2)."""
        return self._resources

    def skills(self, server: str = DEFAULT_SERVER) -> Skills:
        """The skills that `server` offers; what is known of them is kept in the Thread (SKL-1).

        For the model: `start_turn(..., instructions=await thread.skills().instructions())`.
        """
        return self._skills.setdefault(server, Skills(self._resources, server))

    @property
    def journal(self) -> Journal:
        return self._journal

    def reports(self) -> tuple[ServerReport, ...]:
        """The state of each configured server; nothing is started by asking (CON-16)."""
        return self._servers.reports()

    @property
    def listing_failures(self) -> Mapping[str, str]:
        """Why the newest list of a server's tools could not be taken, by server name; its older tools stay (CAT-2)."""
        return self._servers.failures

    def events(self, *, after: int = 0) -> AsyncGenerator[StoredEvent | LaggedNotice, None]:
        """Stored facts above sequence `after`, old and new, in order; ends when the Thread closes.

        A reader that is too slow gets a LaggedNotice in place of what it missed (HIS-6). Close the
        generator when leaving it early (contextlib.aclosing).
        """
        return self._journal.subscribe(after=after)

    def notify(self, notice: Notice) -> None:
        """Tell all who listen to the Thread."""
        self._notices.publish(notice)

    def notices(self) -> NoticeStream:
        """Deltas, progress and server states from now on: transient, may lag, never the authority."""
        return self._notices.subscribe()

    # ---- what people are asked

    @asynccontextmanager
    async def audience(self, until: Until = "turn") -> AsyncIterator[Listener]:
        """Listen to questions while the block runs: elicitations of servers and approvals of calls alike.

        Iterating gives the open questions, each once; it ends with the turn that runs or begins next, or, `until`
        "thread", with the Thread. When the last listener leaves, open questions are declined (QST-4).

            async with thread.audience() as questions:
                turn = await thread.start_turn("What changed today?")
                async for question in questions:
                    await thread.answer(question.id, interlock.Accept({"name": "Ada"}))
        """
        async with self._asking.audience(until) as questions:
            yield questions

    async def answer(self, question_id: str, answer: Answer, *, server: str | None = None) -> None:
        """Answer an open question. When this returns, the answer is stored and on its way to who asked, once (QST-1).

        `server`: the one that is meant; the answer is refused if the question is another's.

        Raises:
            InvalidRequest: nobody waits for it any more; or it does not fit the form, and the question stays open
                (`facts["problems"]` name the fields).
            StorageFailed: it could not be stored, and was not sent.
        """
        await self._asking.answer(question_id, answer, server=server)

    @property
    def open_questions(self) -> tuple[Question, ...]:
        """The questions that can be answered now, oldest first."""
        return self._asking.questions

    async def question_closed(self, question_id: str) -> None:
        """Return once a question is not open any more, whoever settled it; what shows it can then go."""
        await self._asking.closed(question_id)

    @property
    def desk(self) -> Desk:
        """Who answers servers of this Thread where no call is known (QST-11)."""
        return Desk(self._asking)

    def deadlines_paused(self) -> AbstractContextManager[None]:
        """While the block runs, deadlines of the Thread's calls stand still, as while a question is open (CON-11).

        For an application that asks people something by other means than `answer`. Blocks may overlap.
        """
        return self._asking.standstill.span()

    # ---- what it does

    async def start_turn(
        self,
        user_input: str | Sequence[Part],
        *,
        model: Model | None = None,
        instructions: str = "",
        output_schema: JsonObject | None = None,
        plan_mode: bool = False,
        overrides: ThreadOverrides | None = None,
        max_steps: int = DEFAULT_MAX_STEPS,
    ) -> Turn:
        """Begin a turn and return once its start is stored; it goes on in a task of the Thread.

        `plan_mode`: the plans that the model proposes are left out of its visible messages (MEM-2).
        `overrides` hold for this turn and the later ones, over those that held before.

        Raises:
            InvalidRequest: a turn is running already (TRN-1), there is no model, or the Thread is closed.
            StorageFailed: the start could not be stored.
        """
        parts = as_parts(user_input)
        chosen = model or self._settings.model()
        request = TurnRequest(
            input=parts,
            model=chosen,
            instructions=instructions,
            output_schema=output_schema,
            plan_mode=plan_mode,
            max_steps=max_steps,
            compact_at=self._settings.compact_at,
        )
        turn = Turn(new_id(self._clock), request, self._room)
        async with self._beginning:
            tasks = await self._begin_turn(
                TurnStarted(turn_id=turn.id, input=parts, model=chosen.name),
                MessageCompleted(turn_id=turn.id, item=UserMessageItem(id=new_id(self._clock), content=parts)),
                EntriesRecorded(turn_id=turn.id, entries=(UserEntry(content=parts),)),
            )
            self._adopt_overrides(overrides)
            self._turn = turn
            tasks.start_soon(self._run_turn, turn, name=f"turn {turn.id}")
        return turn

    @asynccontextmanager
    async def step(self) -> AsyncIterator[Step]:
        """One Step for a loop of your own: it opens an implicit turn, which ends with the block.

        Raises:
            InvalidRequest: a turn is running, or the Thread is closed.
            StorageFailed: a fact could not be stored.
        """
        turn_id = new_id(self._clock)
        async with self._beginning:
            await self._begin_turn(TurnStarted(turn_id=turn_id, implicit=True))
            self._adopt_overrides()
        status: TurnStatus
        error: str | None
        status, error = "failed", "the block of the step raised"
        try:
            async with self._room.open_step(turn_id) as step:
                yield step
            status, error = "completed", None
        except anyio.get_cancelled_exc_class():
            status, error = "interrupted", None
            raise
        finally:
            await self._end_turn(turn_id, status, error)

    async def read_resource(self, server: str, uri: str, *, connector_id: str | None = None) -> ResourceRead:
        """Read `uri` for the application, exactly as it is given; `connector_id` only tells the server who it is for.

        Raises:
            InvalidRequest, NotPermitted, ServerFailed: as `requests`.
        """
        meta = None if connector_id is None else connector_meta(connector_id)
        return await self._requests.read_resource(server, uri, meta=meta)

    async def read_resource_for_call(self, call_id: str, server: str, uri: str) -> ResourceRead:
        """Read what the completed call `call_id` gave to an app, over today's connection, for as long as it stands.

        Raises:
            NotPermitted: it may not be read now (ORI-4); `facts["reason"]` is an `origins.authorise.Reason`.
            ServerFailed: the server did not give it.
        """
        return await read_for_call(self._servers, self._origins, self.id, call_id=call_id, server=server, uri=uri)

    async def subscribe_resource(self, server: str, uri: str) -> None:
        """Have a ResourceUpdatedNotice whenever the resource changes, over restarts and reloads; then read it again.

        The notice carries no content (RES-12). A second subscription changes nothing; all end with the Thread.

        Raises:
            InvalidRequest, NotPermitted: there is no such server, or it is disabled.
            ServerFailed: it offers no subscriptions (kind unsupported), refused, or cannot be asked.
        """
        await self._servers.subscriptions.add(server, uri)

    async def unsubscribe_resource(self, server: str, uri: str) -> None:
        """Hear no more of it; what was not subscribed to is no error."""
        await self._servers.subscriptions.remove(server, uri)

    async def compact(self, *, model: Model | None = None, instructions: str = "", as_turn: str | None = None) -> str:
        """Replace the model's history by a summary that the model writes; items stay. The summary comes back.

        `as_turn`: it is a turn of its own under that new id, with one item, and a rollback of it takes it back.

        Raises:
            InvalidRequest: a turn runs, there is nothing to compact, there is no model, or the Thread was closed.
            ModelFailed: the model gave no summary, and nothing has changed.
            StorageFailed: it could not be stored.
        """
        chosen = model or self._settings.model()
        async with self._beginning:
            self._refuse_if_busy("compact")
            if not self._journal.entries:
                raise InvalidRequest(f"cannot compact thread {self.id}: its model has no history yet")
            if as_turn is not None:
                await self._begin_turn(TurnStarted(turn_id=as_turn, model=chosen.name))
            self._compacting = scope = anyio.CancelScope()
        status: TurnStatus
        error: str | None
        status, error = "failed", "the compaction broke inside the host"
        try:
            with scope:
                fact = await compacted(
                    chosen,
                    self._journal.entries,
                    instructions=instructions,
                    origins=self._origins.checkpoint(),
                    turn_id=as_turn,
                )
                await self._journal.record(fact)
                status, error = "completed", None
                return fact.summary
            status, error = "interrupted", None
        except InterlockError as failure:
            error = failure.message
            raise
        except anyio.get_cancelled_exc_class():
            status, error = "interrupted", None
            raise
        finally:
            self._compacting = None
            if as_turn is not None:
                await self._end_turn(as_turn, status, error)
        raise InvalidRequest(f"thread {self.id} was closed before its history was compacted; resume it to go on")

    async def rollback(self, turns: int) -> None:
        """Drop the last `turns` turns: their items, their part of the model's history, their origins (HIS-3, ORI-6).

        What they did in the world stays done.

        Raises:
            InvalidRequest: a turn runs, the Thread has fewer turns, or it is closed.
            StorageFailed: it could not be stored.
        """
        async with self._beginning:
            self._refuse_if_busy("roll back")
            for turn_id in self._journal.turn_ids[-turns:] if turns > 0 else ():
                self._asking.withdraw_turn(turn_id, "its turn was rolled back")
            with anyio.CancelScope(shield=True):
                await self._journal.record(ThreadRolledBack(turns=turns))

    async def archive(self, archived: bool = True) -> None:
        """Put the Thread away in lists, or take it back; nothing else changes."""
        await self._journal.record(ThreadArchived(archived=archived))

    async def rename(self, name: str | None) -> None:
        """Give the Thread a name for lists, or take it away."""
        await self._journal.record(ThreadNamed(name=name))

    async def annotate(self, key: str, value: JsonObject) -> None:
        """Keep something of the application with the Thread: `state.annotations[key]`, where another run finds it."""
        await self._journal.record(ThreadAnnotated(key=key, value=copied(value)))

    async def close(self) -> None:
        """End the Thread: its turn, its calls, its servers. Bounded; from any task, any number of times.

        What is stored stays, and can be resumed.
        """
        self._closing.set()
        await self._closed.wait()

    def follow(self, settings: ThreadSettings) -> None:
        """Take over another reading of the configuration from the next Step on; a running one keeps its own (CFG-6)."""
        if self.closing:
            return
        self._configured, settings = settings, settings.overridden(self._overrides)
        self._settings = settings
        self._caller.rules = settings.rules
        self._servers.follow(settings.servers, settings.policy)

    def override(self, overrides: ThreadOverrides) -> None:
        """Have these hold from the next turn on, over those that held before; a running turn keeps its own."""
        self._wished = overrides.over(self._wished)
        if self._journal.open_turn is None:
            self._adopt_overrides()

    # ---- its life, run by the Host

    async def run(
        self, birth: ThreadStarted | None, *, task_status: anyio.abc.TaskStatus["Thread"] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Own everything that runs for the Thread, until `close` or cancellation.

        `birth` is stored as the first event of a new Thread, once its required servers are ready.

        Raises:
            ServerFailed: before it is started: required servers could not start (CON-2).
        """
        failure: InterlockError | None = None
        try:
            async with anyio.create_task_group() as tasks:
                self._room.tasks = tasks
                try:
                    await self._servers.open(self._settings.servers)
                    if birth is not None:
                        await self._journal.record(birth)
                    tasks.start_soon(self._servers.run, name=f"servers of {self.id}")
                    await self._go_on(tasks)
                    task_status.started(self)
                    await self._closing.wait()
                except InterlockError as error:
                    failure = error  # raised below: here the group would wrap it
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._wind_up()
                    tasks.cancel_scope.cancel()
        finally:
            self._room.tasks = None
        if failure is not None:
            raise failure

    def left(self) -> None:
        """Nothing is left of the Thread, its claim included: whoever waits in `close` may go on."""
        self._closed.set()

    def _turn_room(self, accounting: Accounting | None) -> ThreadRoom:
        return ThreadRoom(
            journal=self._journal,
            clock=self._clock,
            notices=self._notices,
            servers=self._servers,
            caller=self._caller,
            origins=self._origins,
            accounting=accounting,
            asked_to_close=self._closing.is_set,
        )

    async def _wind_up(self) -> None:
        """Inside out: no new Steps, questions are withdrawn, calls and the turn end, connections close."""
        self._closing.set()
        self._asking.close()
        self._caller.close()
        async with self._beginning:  # a turn that was just beginning has begun; the next one is refused
            turn = self.running_turn
        if turn is not None:
            await turn.stop()
        if self._compacting is not None:
            self._compacting.cancel()
        await self._servers.close(CLOSING_PATIENCE)
        if self._journal.open_turn is not None and not going_on(self._journal.facts):
            with suppress(StorageFailed):  # where the store has failed, the next to open the Thread writes this end
                await self._end_turn(self._journal.open_turn, "interrupted", None)
        self._notices.close()

    async def _begin_turn(self, start: TurnStarted, *more: Event) -> anyio.abc.TaskGroup:
        self._refuse_if_busy("start a turn in")
        tasks = self._room.tasks
        assert tasks is not None  # noqa: S101 -- set before anybody gets the Thread, until it is closed
        with anyio.CancelScope(shield=True):  # a start that may be stored is seen through to its end
            await self._journal.record_all((start, *more))
        return tasks

    def _adopt_overrides(self, overrides: ThreadOverrides | None = None) -> None:
        self._wished = self._wished if overrides is None else overrides.over(self._wished)
        if self._wished != self._overrides:
            self._overrides = self._wished
            self.follow(self._configured)

    async def _go_on(self, tasks: anyio.abc.TaskGroup) -> None:
        """Go on with the turn whose calls wait for people since another host ran it (QST-9)."""
        turn = turn_to_go_on_with(self._journal, self._room, lambda: self._settings)
        if turn is not None:
            self._turn = self._taken_up = turn
            await tasks.start(self._run_turn, turn, name=f"turn {turn.id}")

    def _options_of(self, turn_id: str) -> TurnOptions:
        return self._turn.options if self._turn is not None and self._turn.id == turn_id else TurnOptions()

    def _goes_on(self, turn_id: str) -> bool:
        """Whether calls of the turn that wait for people are left to the next host when this one stops."""
        return self._turn is not None and self._turn.id == turn_id and self._turn.keeps_calls()

    async def _run_turn(
        self, turn: Turn, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        try:
            await turn.run(task_status=task_status)
        finally:
            self._turn_is_over(turn.id, interrupted=turn.interrupted)

    def _turn_is_over(self, turn_id: str, *, interrupted: bool) -> None:
        """What a cancelled turn wanted to know is not asked any more (BEHAVIOUR section 6)."""
        if interrupted:
            self._asking.withdraw_turn(turn_id)
        self._asking.turn_ended()

    async def _end_turn(self, turn_id: str, status: TurnStatus, error: str | None) -> None:
        with anyio.CancelScope(shield=True):
            async with self._ending:  # its block and the Thread that closes may both come to end it
                if self._journal.open_turn == turn_id:
                    await self._journal.record(TurnEnded(turn_id=turn_id, status=status, error=error))
        self._turn_is_over(turn_id, interrupted=status == "interrupted")

    def _refuse_if_busy(self, action: str) -> None:
        """What changes the history does not begin while something else does."""
        self._room.refuse_if_closing()
        self._journal.refuse_if_failed()
        if self._journal.open_turn is not None:
            raise InvalidRequest(
                f"cannot {action} thread {self.id}: turn {self._journal.open_turn} is running; "
                "wait for its end, or interrupt it"
            )
        if self._compacting is not None:
            raise InvalidRequest(f"cannot {action} thread {self.id}: it is being compacted; wait for the end of that")
