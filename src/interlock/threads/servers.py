"""What a Thread sees of its servers: one Snapshot at a time.

Owns: the published Snapshot (replaced in one assignment), the grace of a new Generation, notices about servers.
Never: changes what a lease has given out (CAT-6), or waits for an optional server beyond the grace (CON-3).
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import anyio

from interlock.catalog.registry import Registry
from interlock.connections.generation import Generation, Generations
from interlock.threads.direct import usable
from interlock.threads.refresh import Refresher
from interlock.threads.subscriptions import Subscriptions
from interlock.vocabulary.errors import InvalidRequest, ServerFailed
from interlock.vocabulary.notice import ListChangedNotice, Notice, ResourceUpdatedNotice, ServerNotice, WarningNotice
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.server import ServerConfig, ServerReport
from interlock.vocabulary.snapshot import ServerView, Snapshot

DEFAULT_GRACE = 1.0
"""Seconds that Steps wait for the optional servers of a new Generation, all together."""


class Servers:
    """The servers of one Thread. `generations` must publish without a grace of its own: the wait is here."""

    def __init__(
        self,
        generations: Generations,
        *,
        notify: Callable[[Notice], None],
        policy: Policy,
        grace: float = DEFAULT_GRACE,
    ) -> None:
        self._generations = generations
        self._registry = Registry()
        self._notify = notify
        self._policy = policy
        self._grace = grace
        self._deadline = 0.0
        self._snapshot = Snapshot(generation=0, policy=policy)
        self._generation = generations.current
        self._refresher = Refresher(self._registry, published=self._publish, failed=self._warn)
        self.subscriptions = Subscriptions(self.holding, updated=self._updated, warn=self._warn)
        self._wished = anyio.Event()
        self._adopted = anyio.Event()
        self._refusal: ServerFailed | None = None

    def __repr__(self) -> str:
        return f"<Servers generation={self._snapshot.generation} revision={self._snapshot.catalog.revision}>"

    @property
    def snapshot(self) -> Snapshot:
        """The newest one; a Step keeps its own."""
        return self._snapshot

    @property
    def pending(self) -> tuple[str, ...]:
        """Servers whose tools are not known yet, but may soon be."""
        return self._refresher.pending

    @property
    def failures(self) -> Mapping[str, str]:
        """Why the newest list of a server's tools could not be taken, by server name."""
        return self._refresher.failures

    def reports(self) -> tuple[ServerReport, ...]:
        """One for each configured server; nothing is started by asking (CON-16)."""
        return self._generations.reports()

    async def open(self, configs: tuple[ServerConfig, ...]) -> None:
        """Start these servers, and publish them once the required ones are ready.

        Raises:
            ServerFailed: required servers could not start; the sentence names them all (CON-2).
        """
        self._generations.want(configs)
        self._adopt(await self._generations.refresh())

    def follow(self, configs: tuple[ServerConfig, ...], policy: Policy) -> None:
        """Another reading of the configuration: from the next Step on, these servers and this policy (CFG-6).

        The policy holds at once, whatever becomes of the servers: those are prepared whole first, and where a
        required one cannot start, the old ones stay (CON-15).
        """
        self._policy = policy
        self._publish()
        self._generations.want(configs)
        self._wished.set()
        self._wished = anyio.Event()

    async def run(self) -> None:
        """Follow the servers, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._refresher.run)
            tasks.start_soon(self._prepare_wishes)
            tasks.start_soon(self._move_subscriptions)
            while True:
                await self._generations.changed()
                self._take_changes()

    @asynccontextmanager
    async def leased(self) -> AsyncIterator[Snapshot]:
        """The Snapshot of now, once its servers had their grace; its connections live while the block runs."""
        await self._bring_up_to_date()
        views = self._snapshot.servers
        await self._refresher.settled(name for name, view in views.items() if view.config.required)
        await self._refresher.settled(views, self._deadline)
        with self._generations.lease() as generation:
            self._adopt(generation)
            yield self._snapshot

    @contextmanager
    def latest(self) -> Iterator[Mapping[str, ServerView]]:
        """The servers of now, whatever their state; their connections live while the block runs."""
        with self._generations.lease() as generation:
            yield generation.views

    @asynccontextmanager
    async def leased_for(self, server: str) -> AsyncIterator[Snapshot]:
        """As `leased`, but waits for the tools of that one server, within its start-up deadline, and for no other."""
        await self._bring_up_to_date()
        view = self._snapshot.servers.get(server)
        if view is not None:
            await self._refresher.settled((server,), anyio.current_time() + view.config.startup_timeout)
        with self._generations.lease() as generation:
            self._adopt(generation)
            yield self._snapshot

    @asynccontextmanager
    async def holding(self, server: str) -> AsyncIterator[ServerView]:
        """One server of the newest Generation, for requests of the application. InvalidRequest, NotPermitted: none."""
        await self._bring_up_to_date()
        with self._generations.lease() as generation:
            usable({config.name: config for config in generation.configs}, server)
            yield generation.views[server]

    async def close(self, patience: float) -> None:
        """Wait `patience` seconds for leases, then end the connections that nobody else holds."""
        await self.subscriptions.close()
        await self._generations.close(patience)

    async def _prepare_wishes(self) -> None:
        """Prepare what was wished for before a Step asks for it."""
        while True:
            wished = self._wished
            try:
                await self._bring_up_to_date()
            except InvalidRequest:
                return  # closed meanwhile
            await wished.wait()

    async def _move_subscriptions(self) -> None:
        while True:
            adopted = self._adopted
            await self.subscriptions.follow(self._generation.views)
            await adopted.wait()

    async def _bring_up_to_date(self) -> None:
        """Do a refresh that is due; a failed one leaves what there was."""
        if not self._generations.due:
            return
        try:
            self._adopt(await self._generations.refresh())
        except ServerFailed as refusal:
            if refusal is not self._refusal:  # all who waited for one try hear of its failure, people once
                self._refusal = refusal
                self._warn(refusal.server, f"the changed servers are not used, and the old ones stay: {refusal}")

    def _take_changes(self) -> None:
        changes = self._generations.take_changes()
        if changes.generation:
            self._adopt(self._generations.current)
        self._refresher.take(changes)
        for report in self._generations.reports() if changes.status else ():
            if report.name in changes.status:
                self._notify(ServerNotice(report=report))
        for server in sorted(changes.resources):
            self._notify(ListChangedNotice(server=server, kind="resources"))
        for server in sorted(changes.prompts):
            self._notify(ListChangedNotice(server=server, kind="prompts"))
        for server, uri in sorted(changes.updated):
            if self.subscriptions.concerns(server, uri):
                self._updated(server, uri)

    def _adopt(self, generation: Generation) -> None:
        if generation.number == self._generation.number:
            return
        self._generation = generation
        self._deadline = anyio.current_time() + self._grace
        self._refresher.watch(generation.views.values())
        self._adopted.set()
        self._adopted = anyio.Event()

    def _publish(self) -> None:
        self._snapshot = Snapshot(
            generation=self._generation.number,
            servers=self._generation.views,
            disabled=frozenset(config.name for config in self._generation.configs if not config.enabled),
            catalog=self._registry.catalog,
            policy=self._policy,
        )

    def _updated(self, server: str, uri: str) -> None:
        self._notify(ResourceUpdatedNotice(server=server, uri=uri))

    def _warn(self, server: str, sentence: str) -> None:
        self._notify(WarningNotice(message=sentence, server=server))
