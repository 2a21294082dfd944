"""The catalogue of a Thread, kept in step with its servers.

Owns: which servers must be listed again, and the listings that run (one at a time for each server).
Never: publishes a half-made catalogue, or lets one server's listing delay another's (CAT-2, CON-1).
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import anyio

from interlock.catalog.refresh import apply, list_source, source_of
from interlock.catalog.registry import Registry
from interlock.vocabulary.errors import InterlockError
from interlock.vocabulary.server import ServerStatus
from interlock.vocabulary.snapshot import ServerView


@dataclass(slots=True)
class _Source:
    """One server under refresh. `tried` is the session that the newest listing ended in, None when there was none."""

    view: ServerView
    dirty: bool = True
    running: bool = False
    settled: bool = False
    failure: str | None = None
    tried: int | None = None


class Refresher:
    """Lists servers when they have become ready or said that their tools changed (CON-14).

    `published` is called after every change of the registry's catalogue; `failed` gets the server
    and a sentence when a listing could not be taken. Both must not wait.
    """

    def __init__(
        self, registry: Registry, *, published: Callable[[], None], failed: Callable[[str, str], None]
    ) -> None:
        self._registry = registry
        self._published = published
        self._failed = failed
        self._sources: dict[str, _Source] = {}
        self._changed = anyio.Event()

    def __repr__(self) -> str:
        dirty = sorted(name for name, source in self._sources.items() if source.dirty)
        return f"<Refresher servers={len(self._sources)} dirty={dirty} pending={list(self.pending)}>"

    @property
    def pending(self) -> tuple[str, ...]:
        """Servers whose tools are not known yet, and may still be: neither listed nor failed."""
        return tuple(sorted(name for name, source in self._sources.items() if not source.settled))

    @property
    def failures(self) -> Mapping[str, str]:
        """Why the newest listing of a server could not be taken, by server name."""
        return {name: source.failure for name, source in self._sources.items() if source.failure is not None}

    def watch(self, servers: Iterable[ServerView]) -> None:
        """From now on these servers make the catalogue; those that left take their tools with them.

        A server whose connection was carried over keeps its tools; its settings may have changed, so
        it is listed again.
        """
        views = {view.config.name: view for view in servers}
        for name in self._sources.keys() - views.keys():
            del self._sources[name]
            self._registry.remove_source(source_of(name))
        for name, view in views.items():
            old = self._sources.get(name)
            if old is None or old.view.connection is not view.connection:
                self._sources[name] = _Source(view)
            elif old.view != view:
                old.view, old.dirty = view, True
        self._published()
        self._wake()

    def tools_changed(self, server: str) -> None:
        """The server said so; a storm of such notices is one mark."""
        source = self._sources.get(server)
        if source is not None:
            source.dirty = True
            self._wake()

    def status_changed(self, server: str) -> None:
        """The server is in another state: a new session may have other tools."""
        source = self._sources.get(server)
        if source is not None and not source.running and _session(source.view) not in (None, source.tried):
            source.dirty = True
            self._wake()

    async def settled(self, deadline: float = math.inf) -> None:
        """Return when nothing is pending any more, at `deadline` (of anyio's clock) at the latest."""
        with anyio.CancelScope(deadline=deadline):
            while self.pending:
                await self._changed.wait()

    async def run(self) -> None:
        """The one refresh task of the Thread, until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                for source in self._sources.values():
                    if source.dirty and not source.running:
                        source.running = True
                        tasks.start_soon(self._refresh, source)
                await self._changed.wait()

    async def _refresh(self, source: _Source) -> None:
        """List until clean; a mark that comes meanwhile makes one more round."""
        try:
            while source.dirty and self._is_current(source):
                source.dirty = False
                await self._list(source)
        finally:
            source.running = False
            self._wake()

    async def _list(self, source: _Source) -> None:
        session = _session(source.view)
        try:
            listing = await list_source(source.view, source.view.config.startup_timeout)
            if self._is_current(source):
                apply(self._registry, listing, source.view.config)
                source.failure = None
                self._published()
        except InterlockError as error:
            self._note_failure(source, error.message, session)
        except anyio.get_cancelled_exc_class():
            source.dirty = True
            raise
        source.tried = _session(source.view)
        source.settled = True
        self._wake()

    def _note_failure(self, source: _Source, sentence: str, session: int | None) -> None:
        source.failure = sentence
        if self._is_current(source):
            self._failed(source.view.config.name, sentence)
        # The session may have been lost and replaced while we listed: nobody else would mark the new one.
        source.dirty = source.dirty or (session is not None and _session(source.view) not in (None, session))

    def _is_current(self, source: _Source) -> bool:
        return self._sources.get(source.view.config.name) is source

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _session(view: ServerView) -> int | None:
    """The number of the session that can be asked now."""
    report = view.connection.report()
    return report.restarts if report.status is ServerStatus.READY else None
