"""The catalogue of a Thread, kept in step with its servers.

Owns: which servers must be listed again, and the listings that run (one at a time for each server).
Never: publishes a half-made catalogue, or lets one server's listing delay another's (CAT-2, CON-1).
"""

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import anyio

from interlock.catalog.refresh import list_source, preparing, source_of
from interlock.catalog.registry import Registry
from interlock.connections.bell import Bell
from interlock.connections.changes import Changes
from interlock.connections.slices import in_slices
from interlock.vocabulary.errors import InterlockError
from interlock.vocabulary.server import ServerStatus
from interlock.vocabulary.snapshot import ServerView

logger = logging.getLogger(__name__)

HOPEFUL = frozenset({ServerStatus.NOT_STARTED, ServerStatus.STARTING, ServerStatus.READY})
"""States from which a server that was never listed may soon be."""


@dataclass(slots=True)
class _Source:
    """One server under refresh. `failure` says why its newest listing could not be taken."""

    view: ServerView
    dirty: bool = False
    running: bool = False
    listed: bool = False
    failure: str | None = None

    @property
    def status(self) -> ServerStatus:
        return self.view.connection.report().status

    @property
    def pending(self) -> bool:
        return not self.listed and self.failure is None and self.status in HOPEFUL


class Refresher:
    """Lists servers when they have become ready or said that their tools changed (CON-14).

    `published` is called after every change of the registry; `failed` gets the server and a
    sentence when a listing could not be taken. Both must not wait.
    """

    def __init__(
        self, registry: Registry, *, published: Callable[[], None], failed: Callable[[str, str], None]
    ) -> None:
        self._registry = registry
        self._published = published
        self._failed = failed
        self._sources: dict[str, _Source] = {}
        self._changed = Bell()

    def __repr__(self) -> str:
        dirty = sorted(name for name, source in self._sources.items() if source.dirty)
        return f"<Refresher servers={len(self._sources)} dirty={dirty} pending={list(self.pending)}>"

    @property
    def pending(self) -> tuple[str, ...]:
        """Servers whose tools are not known yet, but may soon be; sorted."""
        return tuple(sorted(name for name, source in self._sources.items() if source.pending))

    @property
    def failures(self) -> Mapping[str, str]:
        """Why the newest listing of a server could not be taken, by server name."""
        return {name: source.failure for name, source in self._sources.items() if source.failure is not None}

    def watch(self, servers: Iterable[ServerView]) -> None:
        """From now on these servers make the catalogue; those that left take their tools with them.

        One whose connection was carried over keeps its tools until they have been listed again
        under its new settings.
        """
        views = {view.config.name: view for view in servers}
        for name in self._sources.keys() - views.keys():
            del self._sources[name]
            self._registry.remove_source(source_of(name))
        for name, view in views.items():
            self._watch(name, view)
        self._published()
        self._changed.ring()

    def take(self, changes: Changes) -> None:
        """Act upon what servers said; a server whose tools changed is listed again."""
        for name in changes.tools & self._sources.keys():
            self._sources[name].dirty = True
        self._changed.ring()

    async def settled(self, servers: Iterable[str], deadline: float = math.inf) -> None:
        """Return when none of `servers` is pending any more, at `deadline` (of anyio's clock) at the latest."""
        waiting = [self._sources[name] for name in servers if name in self._sources]
        with anyio.CancelScope(deadline=deadline):
            while any(source.pending for source in waiting):
                await self._changed.next_ring()

    async def run(self) -> None:
        """The one refresh task of the Thread, until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                for source in self._sources.values():
                    if source.dirty and not source.running:
                        source.running = True
                        tasks.start_soon(self._refresh, source)
                await self._changed.next_ring()

    def _watch(self, name: str, view: ServerView) -> None:
        source = self._sources.get(name)
        if source is not None and source.view.connection is view.connection:
            source.dirty = source.dirty or source.view != view
            source.view = view
            return
        # A server that is not ready yet is marked by its connection once it is.
        self._sources[name] = source = _Source(view)
        source.dirty = source.status is ServerStatus.READY

    async def _refresh(self, source: _Source) -> None:
        """List until clean; a mark that comes meanwhile makes one more round."""
        try:
            while source.dirty and self._is_current(source):
                source.dirty = False
                await self._list(source)
                self._changed.ring()
        finally:
            source.running = False
            self._changed.ring()

    async def _list(self, source: _Source) -> None:
        try:
            listing = await list_source(source.view, source.view.config.startup_timeout)
            prepared = await in_slices(preparing(self._registry, listing, source.view.config))
            if self._is_current(source):
                self._registry.install(prepared)
                source.listed, source.failure = True, None
                self._published()
        except InterlockError as error:
            self._fail(source, error.message)
        except anyio.get_cancelled_exc_class():
            source.dirty = True
            raise
        except Exception as defect:  # what one server sent may meet a defect of ours; the others' Thread goes on
            name = source.view.config.name
            logger.exception("the tools of server %r met a defect of the host", name)
            self._fail(source, f"the tools of server {name!r} met a defect of the host ({type(defect).__name__})")

    def _fail(self, source: _Source, sentence: str) -> None:
        source.failure = sentence
        if self._is_current(source):
            self._failed(source.view.config.name, sentence)

    def _is_current(self, source: _Source) -> bool:
        return self._sources.get(source.view.config.name) is source
