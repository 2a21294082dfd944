"""The sets of connections that a Thread has had: one is current, older ones end with their last lease.

Owns: the numbering, publication, leases and retirement of a Thread's Generations, and the marks of what changed.
Never: starts a process (the pool does), lists tools, or changes a Generation that was published.

    generations.want(configs)                 # at once; the newest wish counts
    await generations.refresh()               # prepare whole, publish in one assignment (CON-15)
    with generations.lease() as generation:   # its connections live at least as long as this block
        ...
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

import anyio

from interlock.connections.bell import Bell
from interlock.connections.changes import Changes, Marks
from interlock.connections.connection import SupervisedConnection
from interlock.connections.notices import Change
from interlock.connections.pool import Pool
from interlock.vocabulary.errors import InvalidRequest, ServerFailed
from interlock.vocabulary.server import ServerConfig, ServerReport, ServerStatus, unstarted_report
from interlock.vocabulary.snapshot import ServerView

DEFAULT_GRACE: Final = 1.0
"""Seconds that a new Generation waits for its optional servers, all together (CON-3)."""
CLOSING_PATIENCE: Final = 5.0
"""Seconds that closing waits for leases."""

UNDECIDED: Final = frozenset({ServerStatus.NOT_STARTED, ServerStatus.STARTING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One set of servers. `views` are the enabled servers by name, in the order of the configuration."""

    number: int = 0
    configs: tuple[ServerConfig, ...] = ()
    connections: Mapping[str, SupervisedConnection] = field(default_factory=dict[str, SupervisedConnection])
    views: Mapping[str, ServerView] = field(default_factory=dict[str, ServerView])

    @property
    def pending(self) -> tuple[str, ...]:
        """The servers that are still starting right now, sorted."""
        states = ((name, connection.supervisor.state.status) for name, connection in self.connections.items())
        return tuple(sorted(name for name, status in states if status in UNDECIDED))


class Generations:
    """The Generations of one owner. All methods belong to the event loop of the pool."""

    def __init__(self, pool: Pool, *, owner: str, grace: float = DEFAULT_GRACE) -> None:
        self._pool = pool
        self._owner = owner
        self._grace = grace
        self._current = Generation()
        self._held: dict[int, Generation] = {}
        self._leases: dict[int, int] = {}
        self._leftovers: list[SupervisedConnection] = []
        self._wanted: tuple[ServerConfig, ...] | None = None
        self._wishes = 0
        self._failure: ServerFailed | None = None
        self._failed_tries = 0
        self._preparing = anyio.Lock()
        self._preparation: anyio.CancelScope | None = None
        self._in_preparation: Mapping[str, SupervisedConnection] = {}
        self._marks = Marks()
        self._unlisten: dict[SupervisedConnection, Callable[[], None]] = {}
        self._woken = Bell()
        self._closed = False

    def __repr__(self) -> str:
        return (
            f"<Generations {self._owner!r} current={self._current.number} held={sorted(self._held)}"
            f" leases={sum(self._leases.values())} due={self.due}>"
        )

    # ---- what is current

    @property
    def current(self) -> Generation:
        """The newest published Generation, for looking; to use its connections over an await, take a lease."""
        return self._current

    @property
    def due(self) -> bool:
        """Whether a refresh has something to do."""
        return self._wanted is not None

    @contextmanager
    def lease(self) -> Iterator[Generation]:
        """The current Generation; its connections stay open at least until the block ends."""
        self._refuse_if_closed()
        generation = self._current
        self._leases[generation.number] = self._leases.get(generation.number, 0) + 1
        try:
            yield generation
        finally:
            self._returned(generation)

    def reports(self) -> tuple[ServerReport, ...]:
        """One report for each configured server, disabled ones included; nothing is started by asking (CON-16)."""
        configs = self._current.configs if self._wanted is None else self._wanted
        connections = {**self._current.connections, **self._in_preparation}
        return tuple(_report(config, connections.get(config.name)) for config in configs)

    # ---- refresh

    def want(self, configs: tuple[ServerConfig, ...]) -> None:
        """Wish for these servers. The newest wish counts; a preparation for an older one is given up."""
        self._refuse_if_closed()
        self._wanted = configs
        self._wishes += 1
        if self._preparation is not None:
            self._preparation.cancel()

    async def refresh(self) -> Generation:
        """Prepare what is wanted, all servers side by side, and publish it; the Generation that is then current.

        Waits for required servers until they are ready or have failed, for optional ones until the shared grace
        deadline. Refreshes run one at a time; one that is cancelled stays due, and the next one does its work.

        Raises:
            ServerFailed: required servers could not start (CON-2); the old Generation stays, whole.
        """
        failed_before = self._failed_tries
        async with self._preparing:
            if self._wanted is None and self._failed_tries > failed_before and self._failure is not None:
                raise self._failure  # the try that we waited for was for our wish too
            while (wanted := self._wanted) is not None:
                self._refuse_if_closed()
                await self._try_once(wanted)
        return self._current

    async def _try_once(self, wanted: tuple[ServerConfig, ...]) -> None:
        wish = self._wishes
        with anyio.CancelScope() as scope:
            self._preparation = scope
            try:
                prepared = await self._prepare(wanted)
            except ServerFailed as error:
                if wish == self._wishes:
                    self._note_failure(error)
                    raise
                return
            finally:
                self._preparation = None
            if wish == self._wishes and not self._closed:
                self._publish(prepared)
            else:
                self._set_aside(prepared.connections.values())  # superseded, thrown away unseen

    async def _prepare(self, configs: tuple[ServerConfig, ...]) -> Generation:
        held: dict[str, SupervisedConnection] = {}
        try:
            for config in configs:
                if config.enabled:
                    held[config.name] = self._pool.acquire(config, owner=self._owner)
            self._release_leftovers()
            self._in_preparation = held
            await self._settle(configs, held)
        except ServerFailed:
            self._release(held.values())
            raise
        except BaseException:
            self._set_aside(held.values())
            raise
        finally:
            self._in_preparation = {}
        views = {c.name: ServerView(config=c, connection=held[c.name]) for c in configs if c.enabled}
        return Generation(configs=configs, connections=held, views=views)

    async def _settle(self, configs: tuple[ServerConfig, ...], held: Mapping[str, SupervisedConnection]) -> None:
        """Wait until required servers are decided, and for optional ones until the grace deadline."""
        failures: dict[str, ServerFailed] = {}
        grace = anyio.current_time() + self._grace
        async with anyio.create_task_group() as tasks:
            for config in configs:
                if config.enabled:
                    tasks.start_soon(self._first_answer, config, held[config.name], grace, failures)
        if failures:
            raise _required_failed(failures)

    async def _first_answer(
        self, config: ServerConfig, connection: SupervisedConnection, grace: float, failures: dict[str, ServerFailed]
    ) -> None:
        with anyio.CancelScope(deadline=inf if config.required else grace):
            try:
                await connection.ready(inf)
            except ServerFailed as error:
                if config.required:
                    failures[config.name] = error

    def _publish(self, prepared: Generation) -> None:
        self._wanted = None
        if prepared.configs == self._current.configs and prepared.connections == self._current.connections:
            self._release(prepared.connections.values())
            return
        old = self._current
        self._current = replace(prepared, number=old.number + 1)
        self._held[self._current.number] = self._current
        self._listen_only_to(self._current.connections.values())
        self._marks.forget(frozenset(old.connections.keys() - self._current.connections.keys()))
        self._marks.mark_generation()
        self._woken.ring()
        if old.number not in self._leases:
            self._retire(old)

    def _note_failure(self, error: ServerFailed) -> None:
        self._wanted = None
        self._failed_tries += 1
        self._failure = error

    # ---- what changed

    async def changed(self) -> None:
        """Return once `take_changes` has something to give."""
        while (due := self._marks.due_at(anyio.current_time())) > anyio.current_time():
            with anyio.CancelScope(deadline=due):
                await self._woken.next_ring()

    def take_changes(self) -> Changes:
        """What changed in the current Generation since the last time: a storm of notices is one mark (CON-14)."""
        return self._marks.take(anyio.current_time())

    def put_back(self, changes: Changes) -> None:
        """The changes could not be acted upon (cancelled, say); they stay due."""
        self._marks.put_back(changes, anyio.current_time())
        self._woken.ring()

    def _heard(self, change: Change) -> None:
        now = anyio.current_time()
        self._marks.mark(change, now)
        connection = self._current.connections.get(change.server)
        if change.kind == "status" and connection is not None and connection.supervisor.session is not None:
            self._marks.mark(Change(server=change.server, kind="tools"), now)  # a new process may have other tools
        self._woken.ring()

    def _listen_only_to(self, connections: Iterable[SupervisedConnection]) -> None:
        wanted = set(connections)
        for connection in self._unlisten.keys() - wanted:
            self._unlisten.pop(connection)()
        for connection in wanted - self._unlisten.keys():
            self._unlisten[connection] = connection.listen(self._heard)

    # ---- the end of Generations

    async def close(self, patience: float = CLOSING_PATIENCE) -> None:
        """Take no more leases or wishes, wait `patience` seconds for the leases, then give every connection back.

        Returns when those that nobody else holds are closed; all of them are closed side by side.
        """
        self._closed = True
        if self._preparation is not None:
            self._preparation.cancel()
        with anyio.move_on_after(patience):
            while self._leases:
                await self._woken.next_ring()
        connections = {c for generation in self._held.values() for c in generation.connections.values()}
        self._listen_only_to(())
        self._release_leftovers()
        for generation in tuple(self._held.values()):
            self._retire(generation)
        async with anyio.create_task_group() as tasks:
            for connection in connections:
                if connection.supervisor.closing:
                    tasks.start_soon(connection.supervisor.wait_closed)

    def _returned(self, generation: Generation) -> None:
        left = self._leases[generation.number] - 1
        if left:
            self._leases[generation.number] = left
            return
        del self._leases[generation.number]
        if generation is not self._current:
            self._retire(generation)
        if self._closed:  # nobody else waits for leases
            self._woken.ring()

    def _retire(self, generation: Generation) -> None:
        if self._held.pop(generation.number, None) is not None:
            self._release(generation.connections.values())

    def _set_aside(self, connections: Iterable[SupervisedConnection]) -> None:
        """Hold them until the next try has taken its own: what has begun to start is not killed to be started again."""
        self._leftovers += connections
        if self._closed:
            self._release_leftovers()

    def _release_leftovers(self) -> None:
        leftovers, self._leftovers = self._leftovers, []
        self._release(leftovers)

    def _release(self, connections: Iterable[SupervisedConnection]) -> None:
        for connection in connections:
            self._pool.release(connection)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise InvalidRequest(f"the servers of {self._owner!r} are closed")


def _report(config: ServerConfig, connection: SupervisedConnection | None) -> ServerReport:
    if config.enabled and connection is not None:
        return replace(connection.report(), required=config.required)
    return unstarted_report(config)


def _required_failed(failures: Mapping[str, ServerFailed]) -> ServerFailed:
    names = sorted(failures)
    reasons = "; ".join(failures[name].message for name in names)
    plural = "servers" if len(names) > 1 else "server"
    return ServerFailed(
        f"could not start the required {plural} {', '.join(names)}: {reasons}",
        server=", ".join(names),
        kind=failures[names[0]].kind if len(names) == 1 else "unavailable",
        failures=tuple((name, failures[name].message) for name in names),
    )
