"""What all connections of one app server share.

Owns: the Host, the threads that clients follow, the budget of what waits to be sent.
Never: speaks to a client itself.
"""

import logging
import os
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from importlib.metadata import version
from typing import Any, Final

import anyio
import anyio.abc

from interlock.host.host import Host
from interlock.surfaces.rpc import projection, shapes
from interlock.surfaces.rpc.client import Client
from interlock.surfaces.rpc.live import UNLOAD_AFTER, LiveThread
from interlock.surfaces.rpc.outgoing import Budget
from interlock.threads.thread import Thread
from interlock.vocabulary.errors import InterlockError, InvalidRequest
from interlock.vocabulary.event import ThreadRecord
from interlock.vocabulary.thread import ThreadState

logger = logging.getLogger(__name__)

EPHEMERAL: Final = "interlock/ephemeral"
"""The key of the annotation that marks an ephemeral thread: `{"threadId": its own id}`."""
EPHEMERAL_PATIENCE: Final = 60.0
"""Seconds after which an ephemeral thread that nobody follows and that runs no turn is closed, and forgotten."""
FORGETTING_PATIENCE: Final = 10.0


class Application:
    """Made for an open Host; `tasks` are those in which threads are followed."""

    def __init__(self, host: Host, tasks: anyio.abc.TaskGroup, *, home: str) -> None:
        self.host = host
        self.home = home
        self.budget = Budget()
        self.version = version("interlock")
        self.working_folder = os.getcwd()
        self._tasks = tasks
        self._live: dict[str, LiveThread] = {}
        self._ephemeral: set[str] = set()

    def __repr__(self) -> str:
        return f"<Application live={sorted(self._live)} {self.budget!r}>"

    # ---- threads

    def loaded(self, thread_id: str) -> LiveThread:
        """The loaded thread of that id.

        Raises:
            InvalidRequest: no thread of that id is loaded.
        """
        thread = self.host.loaded_threads.get(thread_id)
        if thread is None:
            raise InvalidRequest(f"no thread {thread_id[:100]!r} is loaded; start one, or resume a stored one first")
        return self.attend(thread)

    async def stored(self, thread_id: str) -> ThreadState:
        """All of a thread, loaded or not. InvalidRequest: there is none."""
        thread = self.host.loaded_threads.get(thread_id)
        return thread.state if thread is not None else await self.host.read_thread(thread_id)

    def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Work that goes on when whoever asked for it is gone."""
        self._tasks.start_soon(work)

    def attend(self, thread: Thread) -> LiveThread:
        """The thread as it is followed; following begins when it is asked for the first time."""
        live = self._live.get(thread.id)
        if live is None or live.thread is not thread:
            patience = EPHEMERAL_PATIENCE if self.is_ephemeral(thread.id) else UNLOAD_AFTER
            live = self._live[thread.id] = LiveThread(thread, provider=self.provider, unload_after=patience)
            self._tasks.start_soon(self._follow, live, name=f"following thread {thread.id}")
        return live

    def followed_by(self, client: Client) -> tuple[LiveThread, ...]:
        return tuple(live for live in self._live.values() if live.is_followed_by(client))

    def forget(self, client: Client) -> None:
        """The client is gone."""
        for live in tuple(self._live.values()):
            self.part(client, live)

    def part(self, client: Client, live: LiveThread) -> bool:
        """The client follows the thread no longer. False when it did not before."""
        left = live.pauses.leave(client)
        if left:
            self.run(partial(live.pauses.end_later, left))
        return live.unfollow(client)

    async def make_ephemeral(self, thread: Thread) -> None:
        """Have the thread, which nobody follows yet, in no list, and forgotten when it is closed.

        The archive keeps it out of lists. If this process is killed before it can forget it, the next one does, by the
        mark (leftovers.py).
        """
        self._ephemeral.add(thread.id)
        await thread.annotate(EPHEMERAL, {"threadId": thread.id})
        await thread.archive()

    def is_ephemeral(self, thread_id: str) -> bool:
        return thread_id in self._ephemeral

    def is_in_use(self, thread_id: str) -> bool:
        return thread_id in self._ephemeral or thread_id in self.host.loaded_threads

    async def _follow(self, live: LiveThread) -> None:
        thread_id = live.thread.id
        try:
            await live.run()
        finally:
            if self._live.get(thread_id) is live:
                del self._live[thread_id]
            if self.is_ephemeral(thread_id):
                await self._forget_stored(thread_id)

    async def _forget_stored(self, thread_id: str) -> None:
        with anyio.move_on_after(FORGETTING_PATIENCE, shield=True):
            try:
                await self.host.delete_thread(thread_id)
            except InterlockError as error:
                logger.warning("the ephemeral thread %s could not be forgotten: %s", thread_id, error.message)
        self._ephemeral.discard(thread_id)

    # ---- how they look

    @property
    def provider(self) -> str:
        return self.host.configuration.model.provider.key

    def status(self, thread_id: str) -> shapes.ThreadStatus:
        thread = self.host.loaded_threads.get(thread_id)
        return projection.NOT_LOADED if thread is None else self.attend(thread).status

    def thread_shape(
        self, record: ThreadRecord, *, forked_from: str | None = None, turns: Iterable[shapes.Turn] = ()
    ) -> shapes.Thread:
        return projection.thread_shape(
            record,
            status=self.status(record.thread_id),
            provider=self.provider,
            cwd=self.working_folder,
            version=self.version,
            ephemeral=self.is_ephemeral(record.thread_id),
            forked_from=forked_from,
            turns=turns,
        )
