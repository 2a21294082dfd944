"""A loaded thread as its clients follow it.

Owns: who hears of the thread, the settings of its next turns on this wire, the two tasks that follow it.
Never: misses a stored event, or waits for a client.
"""

import time
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final

import anyio
import anyio.lowlevel

from interlock.surfaces.rpc.attendance import Attendance
from interlock.surfaces.rpc.client import Broadcast, Client
from interlock.surfaces.rpc.compacting import Compaction
from interlock.surfaces.rpc.pauses import Pauses
from interlock.surfaces.rpc.projection import NOT_LOADED
from interlock.surfaces.rpc.shapes import ThreadStatus
from interlock.surfaces.rpc.translator import Translator, startup_news
from interlock.surfaces.rpc.turn_settings import KEY, TurnSettings, annotation, kept_settings
from interlock.threads.thread import Thread
from interlock.vocabulary.event import StoredEvent
from interlock.vocabulary.server import ServerStatus

UNLOAD_AFTER: Final = 30 * 60.0
"""Seconds after which a thread that nobody follows and that runs no turn is closed; it can be resumed."""


class LiveThread:
    """Made while the thread is loaded; `run` follows it to its end."""

    def __init__(self, thread: Thread, *, provider: str, unload_after: float = UNLOAD_AFTER) -> None:
        """`provider` of models is the one that is in use."""
        facts = thread.journal.facts
        self.thread = thread
        self.settings = kept_settings(facts.annotations, provider)
        self._provider = provider
        self.pauses = Pauses(thread)
        self._after = facts.last_sequence
        self._notices = thread.notices()
        turn = None if facts.open_turn is None else thread.journal.turn(facts.open_turn)
        self._translator = Translator(
            thread.id,
            usage=facts.usage,
            open_turn=facts.open_turn,
            open_questions=tuple(question.id for question in facts.open_questions),
            open_calls=tuple(call.item.id for call in facts.open_calls),
            turn_began=0 if turn is None else turn.started_at,
        )
        self.compaction: Compaction | None = None
        self._followers: dict[Client, Attendance] = {}
        self._joining: dict[Client, Attendance] = {}
        self._unload_after = unload_after
        self._stir = anyio.Event()
        self._over = False

    def __repr__(self) -> str:
        return f"<LiveThread {self.thread.id} followers={len(self._followers)}>"

    @property
    def status(self) -> ThreadStatus:
        return self._translator.status

    async def settle(self, settings: TurnSettings) -> None:
        """Take these over, and keep what of them a later run has to know."""
        kept = annotation(settings, self._provider)
        if kept != annotation(self.settings, self._provider):
            await self.thread.annotate(KEY, kept)
        self.settings = settings

    async def compaction_over(self) -> None:
        """Wait for the compaction that a client asked for: what it asks for next is meant for afterwards.

        Others may have waited for the same end, and one of them may have begun another by now.
        """
        while self.compaction is not None and self.compaction.is_running:
            await self.compaction.over()

    # ---- who follows

    async def join(self, client: Client) -> None:
        """From here on the client can be asked; it is, and hears of the thread, once it follows."""
        if client in self._followers or client in self._joining:
            return
        attendance = self._joining[client] = Attendance(client, self.thread)
        await client.tasks.start(attendance.run, name=f"questions of {self.thread.id}")

    def follow(self, client: Client) -> None:
        """Tell the client, which has joined, all that happens from now on."""
        attendance = self._joining.pop(client, None)
        if attendance is not None:
            self._followers[client] = attendance
            attendance.begin()
            self._stirred()

    def unfollow(self, client: Client) -> bool:
        """False when it did not follow."""
        self._joining.pop(client, None)
        attendance = self._followers.pop(client, None)
        if attendance is not None:
            attendance.end()
        self._stirred()
        return attendance is not None

    def stop_asking(self, client: Client) -> None:
        """The client says nothing any more, but still hears."""
        attendance = self._followers.get(client)
        if attendance is not None:
            attendance.end()

    def is_followed_by(self, client: Client) -> bool:
        return client in self._followers

    def tell(self, news: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        for method, params in news:
            broadcast = Broadcast(method, params)
            for client in self._followers:
                client.tell(broadcast)

    def tell_starts(self, client: Client) -> None:
        """What became of the servers' starts so far, to a client that has just come."""
        for report in self.thread.reports():
            if report.status in (ServerStatus.STARTING, ServerStatus.READY, ServerStatus.FAILED):
                for method, params in startup_news(report, self.thread.id):
                    client.notify(method, params)

    async def told_ends(self) -> None:
        """Return once clients have heard of the end of every turn that began."""
        while not self._over and (self.thread.running_turn is not None or self._translator.turn is not None):
            await self._stir.wait()

    # ---- its tasks

    async def run(self) -> None:
        """Tell the followers all that happens, until the thread is closed."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._follow_notices)
                tasks.start_soon(self._close_when_deserted)
                tasks.start_soon(self._close_when_its_store_failed)
                await self._follow_events()
                tasks.cancel_scope.cancel()
        finally:
            self.pauses.close()
        failure = self.thread.journal.failure
        if failure is not None:
            self.tell(self._translator.given_up(failure.message, time.time_ns() // 1_000_000))
        about = {"threadId": self.thread.id}
        self.tell([("thread/status/changed", {**about, "status": NOT_LOADED}), ("thread/closed", about)])
        self._over = True
        self._stirred()

    async def _follow_events(self) -> None:
        while True:
            async with aclosing(self.thread.events(after=self._after)) as events:
                async for stored in events:
                    if not isinstance(stored, StoredEvent):
                        break  # we lagged: what was missed is read from the store
                    await anyio.lowlevel.checkpoint()  # deltas that came before it are heard before it
                    self._after = stored.sequence
                    self.tell(self._translator.event(stored))
                    self._stirred()
                else:
                    return

    async def _follow_notices(self) -> None:
        async for notice in self._notices:
            self.tell(self._translator.notice(notice, time.time_ns() // 1_000_000))

    async def _close_when_deserted(self) -> None:
        while True:
            stir = self._stir
            if self._followers or self.thread.running_turn is not None:
                await stir.wait()
                continue
            with anyio.move_on_after(self._unload_after) as patience:
                await stir.wait()
            if patience.cancelled_caught:
                await self.thread.close()
                return

    async def _close_when_its_store_failed(self) -> None:
        """It can do nothing more until it is opened again, which only a closed thread can be."""
        await self.thread.journal.failed.wait()
        await self.thread.close()

    def _stirred(self) -> None:
        self._stir.set()
        self._stir = anyio.Event()
