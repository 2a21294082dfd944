"""Which Threads are loaded, and how one comes to be.

Owns: the map from thread id to the one loaded Thread, and the task in which each lives.
Never: loads a Thread twice (LIF-8), or lets a defect in one end the others.
"""

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

import anyio
import anyio.abc

from interlock.connections.generation import Generations
from interlock.connections.pool import Pool
from interlock.history.journal import Journal
from interlock.memory.usage import Accounting
from interlock.origins.store import Origins
from interlock.questions.respondent import Desk
from interlock.threads.recovery import close_what_was_left_open
from interlock.threads.settings import ThreadSettings
from interlock.threads.thread import Thread
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.event import ThreadStarted
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.notice import Notice
from interlock.vocabulary.overrides import ThreadOverrides
from interlock.vocabulary.ports import Clock, Store

logger = logging.getLogger(__name__)


class Wishes(NamedTuple):
    """What whoever loads a Thread wants of it; None: nothing."""

    overrides: ThreadOverrides | None = None
    extensions: Mapping[str, JsonObject] | None = None


class LoadedThreads:
    """The loaded Threads of one Host, run in `tasks`. `settings` gives those of now."""

    def __init__(
        self,
        store: Store,
        pool: Pool,
        tasks: anyio.abc.TaskGroup,
        clock: Clock,
        settings: Callable[[], ThreadSettings],
    ) -> None:
        self._settings = settings
        self._store = store
        self._pool = pool
        self._tasks = tasks
        self._clock = clock
        self._loaded: dict[str, Thread] = {}
        self._loading: dict[str, anyio.Event] = {}
        self._extensions: dict[str, Mapping[str, JsonObject]] = {}
        self._closing = False

    def __repr__(self) -> str:
        return f"<LoadedThreads {sorted(self._loaded)} loading={sorted(self._loading)}>"

    def get(self, thread_id: str) -> Thread | None:
        return None if thread_id in self._loading else self._loaded.get(thread_id)

    def desk(self, owner: str) -> Desk | None:
        """Who answers servers for that owner; nobody before its Thread has begun."""
        thread = self._loaded.get(owner)
        return thread.desk if thread is not None and thread.journal.last_sequence > 0 else None

    def extensions(self, owner: str) -> Mapping[str, JsonObject]:
        """What servers are told for the Thread of that id; nothing, if there is none."""
        return self._extensions.get(owner, {})

    @property
    def all(self) -> Mapping[str, Thread]:
        return {thread_id: thread for thread_id, thread in self._loaded.items() if thread_id not in self._loading}

    async def start(self, thread_id: str, birth: ThreadStarted, wishes: Wishes) -> Thread:
        """A new Thread. ServerFailed when required servers could not start; nothing is stored then."""
        return await self._open(thread_id, birth, wishes)

    def follow(self) -> None:
        """Have every Thread, those that are just opening included, take over the settings of now (CFG-6)."""
        settings = self._settings()
        for thread in self._loaded.values():
            thread.follow(settings)

    def notify(self, notice: Notice) -> None:
        """Tell all who listen to any Thread."""
        for thread in self.all.values():
            thread.notify(notice)

    async def resume(self, thread_id: str, wishes: Wishes) -> Thread:
        """The Thread of that id: the loaded one, or a new one made from what is stored.

        A loaded one whose store has failed can do nothing any more, so it is closed and opened again.

        Raises:
            InvalidRequest: no such Thread is stored.
            StorageFailed: another process writes it; the sentence names it (HIS-7).
        """
        while (busy := self._loading.get(thread_id)) is not None or thread_id in self._loaded:
            if busy is not None:
                await busy.wait()
            elif not ((thread := self._loaded[thread_id]).closing or thread.journal.failed.is_set()):
                if wishes.overrides is not None:
                    thread.override(wishes.overrides)
                return thread
            else:
                await thread.close()
        return await self._open(thread_id, None, wishes)

    async def close(self) -> None:
        """Close all of them, side by side; each is bounded, so a cancellation does not cut it short."""
        self._closing = True
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for thread in list(self._loaded.values()):
                    tasks.start_soon(thread.close)

    async def _open(self, thread_id: str, birth: ThreadStarted | None, wishes: Wishes) -> Thread:
        if self._closing:
            raise InvalidRequest(f"cannot open thread {thread_id}: the host is closing")
        self._loading[thread_id] = anyio.Event()
        try:
            if birth is None and await self._store.find(thread_id) is None:
                raise InvalidRequest(f"there is no thread {thread_id!r} in the store")
            thread: Thread = await self._tasks.start(self._own, thread_id, birth, wishes, name=f"thread {thread_id}")
            return thread
        finally:
            self._loading.pop(thread_id).set()

    async def _own(
        self,
        thread_id: str,
        birth: ThreadStarted | None,
        wishes: Wishes,
        *,
        task_status: anyio.abc.TaskStatus[Thread],
    ) -> None:
        """The task of one Thread. What breaks before it is open goes to whoever opens it, later defects to the log."""
        if wishes.extensions:
            self._extensions[thread_id] = wishes.extensions
        try:
            origins = Origins()
            async with Journal.open(
                self._store, thread_id, self._clock, followers={"origins": origins}, checkpoints=self._store
            ) as journal:
                if birth is None:
                    journal.refuse_if_new()  # it may have been deleted since it was found
                    await close_what_was_left_open(journal, output_limit=self._settings().rules.output_limit)
                generations = Generations(self._pool, owner=thread_id, grace=0.0)
                self._loaded[thread_id] = opened = Thread(
                    journal,
                    generations,
                    self._settings(),
                    self._clock,
                    accounting=Accounting(self._store, self._clock),
                    origins=origins,
                    overrides=wishes.overrides,
                )
                await opened.run(birth, task_status=task_status)
        except Exception:
            if thread_id in self._loading:
                raise
            logger.exception("thread %s was closed by a defect of the host", thread_id)
        finally:
            self._extensions.pop(thread_id, None)
            thread = self._loaded.pop(thread_id, None)
            if thread is not None:
                thread.left()
