"""The one writer of a Thread.

Owns: the order of a Thread's events; that each is stored before anybody is told (LIF-4); subscribers.
Never: waits for a subscriber, goes on after the store failed, or records what contradicts its history.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from typing import Protocol

import anyio
import anyio.lowlevel

from interlock.history.consistency import contradiction
from interlock.history.fold import Fold, ThreadState, TurnState
from interlock.history.subscriber import Subscriber
from interlock.vocabulary.conversation import Entry
from interlock.vocabulary.errors import InvalidRequest, StorageFailed
from interlock.vocabulary.event import Event, StoredEvent
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.notice import LaggedNotice
from interlock.vocabulary.ports import Checkpoints, Clock, EventStore

Observer = Callable[[StoredEvent], None]
"""Another owner's fold. Called for every event in order, stored ones first; it must not wait or raise."""


class Follower(Protocol):
    """Another owner's fold that can be kept and taken up again, so that a long Thread need not be read whole."""

    def observe(self, stored: StoredEvent) -> None:
        """As an Observer."""
        ...

    def checkpoint(self) -> JsonObject:
        """What all events so far made of it."""
        ...

    def restore(self, checkpoint: JsonObject) -> None:
        """Be as the follower was whose checkpoint this is; it must not raise, whatever is in it."""
        ...


LONG_TAIL = 1000
"""Events after the newest checkpoint from which on another one is kept. A long Thread waits for a twentieth of
itself, so that all checkpoints together cost little beside the events."""

MAXIMUM_SUBSCRIBERS = 256
MAXIMUM_TOGETHER = 1000
"""Events of one `record_all`: they are one transaction."""


class Journal:
    """Made by `Journal.open`; used on one event loop. `state` is always what has been stored."""

    def __init__(
        self,
        store: EventStore,
        thread_id: str,
        clock: Clock,
        observers: Sequence[Observer],
        followers: Mapping[str, Follower],
        checkpoints: Checkpoints | None,
    ) -> None:
        self.thread_id = thread_id
        self._store = store
        self._clock = clock
        self._followers = dict(followers)
        self._observers = (*observers, *(follower.observe for follower in followers.values()))
        self._checkpoints = None if observers else checkpoints  # an observer wants to see every event
        self._covered = 0
        self._fold = Fold(thread_id)
        self._writing = anyio.Lock(fast_acquire=True)
        """Handed from one task to the next: asyncio's is free for a moment in between, in which the way of
        `record_surely` that cannot be cancelled is not taken, and the end of a call can be lost."""
        self._subscribers: list[Subscriber] = []
        self._failure: StorageFailed | None = None
        self.failed = anyio.Event()
        """Set once the store has failed: nothing is recorded any more until the Thread is opened again."""
        self._closed = False

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        store: EventStore,
        thread_id: str,
        clock: Clock,
        *,
        observers: Sequence[Observer] = (),
        followers: Mapping[str, Follower] | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> AsyncIterator["Journal"]:
        """Claim the Thread and fold what is stored of it; a Thread without events is new.

        With `checkpoints`, a long Thread is taken up from the newest one, and one is kept when there is
        much after it. `followers` are restored from it by their names, then see the events after it.

        StorageFailed when somebody else is its writer (HIS-7), or an event cannot be read. Leaving
        waits for the record in progress, ends all subscriptions and frees the claim.
        """
        async with store.claim(thread_id):
            journal = cls(store, thread_id, clock, observers, followers or {}, checkpoints)
            await journal._restore()
            async with aclosing(store.read(thread_id, after=journal.last_sequence)) as events:
                async for stored in events:
                    journal._take(stored)
            await journal._keep_checkpoint()
            try:
                yield journal
            finally:
                with anyio.CancelScope(shield=True):
                    await journal._close()

    def __repr__(self) -> str:
        status = "closed" if self._closed else "failed" if self._failure else "open"
        return f"<Journal {self.thread_id} {status} at {self.last_sequence}, {len(self._subscribers)} subscribers>"

    @property
    def state(self) -> ThreadState:
        return self._fold.state

    @property
    def last_sequence(self) -> int:
        return self._fold.last_sequence

    @property
    def open_turn(self) -> str | None:
        return self._fold.open_turn

    @property
    def facts(self) -> ThreadState:
        """The state without turns and entries; costs next to nothing."""
        return self._fold.facts

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The model's history."""
        return self._fold.entries

    @property
    def context_tokens(self) -> int:
        """About how many tokens the next sampling would take in."""
        return self._fold.context_tokens

    @property
    def turn_ids(self) -> tuple[str, ...]:
        return self._fold.turn_ids

    def turn(self, turn_id: str) -> TurnState | None:
        """One Turn as it is now; costs nothing for the others."""
        return self._fold.turn(turn_id)

    @property
    def failure(self) -> StorageFailed | None:
        """Why the store failed; see `failed`."""
        return self._failure

    def refuse_if_failed(self) -> None:
        """Raise StorageFailed when the store has failed before: nothing more is recorded then."""
        if self._failure is not None:
            raise StorageFailed(
                f"cannot record in thread '{self.thread_id}': its store failed before ({self._failure.message});"
                " open the thread again",
                **self._failure.facts,
            )

    def refuse_if_new(self) -> None:
        """Raise InvalidRequest when nothing is stored of the Thread."""
        if self.last_sequence == 0:
            raise InvalidRequest(f"there is no thread {self.thread_id!r} in the store")

    def is_used(self, call_id: str) -> bool:
        """Whether a call of that id has ever begun in this Thread (LIF-8)."""
        return self._fold.is_used(call_id)

    async def record(self, event: Event) -> StoredEvent:
        """Store one event, then fold it and tell; the place it got. See `record_all`."""
        (stored,) = await self.record_all((event,))
        return stored

    async def record_all(self, events: Sequence[Event]) -> tuple[StoredEvent, ...]:
        """Store all of `events` or none, then fold them and tell.

        A cancellation before the store was asked leaves nothing recorded; one that comes later is
        put off until the events are stored and told, and this returns normally: whoever called
        knows what became of its event. What must be recorded while cancelled is called in a
        shielded scope.

        InvalidRequest, and nothing recorded, when an event contradicts the history or cannot be
        stored as JSON. StorageFailed when the store fails; from then on every record fails, until
        the Thread is opened again.
        """
        await anyio.lowlevel.checkpoint_if_cancelled()
        async with self._writing:
            return await self._record(events)

    async def record_surely(self, event: Event) -> StoredEvent:
        """Store one event like `record`, also when the caller has been cancelled or is cancelled meanwhile."""
        if self._writing.locked():
            with anyio.CancelScope(shield=True):
                await self._writing.acquire()
        else:
            self._writing.acquire_nowait()
        try:
            (stored,) = await self._record((event,))
        finally:
            self._writing.release()
        return stored

    async def subscribe(self, *, after: int = 0) -> AsyncGenerator[StoredEvent | LaggedNotice, None]:
        """The events above `after`: stored ones, then new ones as they come, without gap or repetition.

        A subscriber that takes its events too slowly gets a LaggedNotice in place of those it
        missed, and reads them from the store if it needs them (HIS-6). Ends when the Journal
        closes. The caller closes it (contextlib.aclosing).
        """
        cursor = after
        while cursor < self.last_sequence:  # reading takes time, in which more may be recorded
            async with aclosing(self._store.read(self.thread_id, after=cursor)) as events:
                async for stored in events:
                    cursor = stored.sequence
                    yield stored
        with self._subscribed() as subscriber:  # nothing has waited since the comparison above
            async for told in subscriber:
                if isinstance(told, LaggedNotice) or told.sequence > cursor:  # read when stored, and not yet told
                    yield told

    @contextmanager
    def _subscribed(self) -> Iterator[Subscriber]:
        if len(self._subscribers) >= MAXIMUM_SUBSCRIBERS:
            raise InvalidRequest(
                f"cannot subscribe to thread '{self.thread_id}': it has {MAXIMUM_SUBSCRIBERS} subscribers; close one"
            )
        subscriber = Subscriber()
        self._subscribers.append(subscriber)
        if self._closed:
            subscriber.end()
        try:
            yield subscriber
        finally:
            self._subscribers.remove(subscriber)

    def _check(self, events: Sequence[Event]) -> None:
        if self._closed:
            raise InvalidRequest(f"cannot record in thread '{self.thread_id}': it is closed here; open it again")
        self.refuse_if_failed()
        if len(events) > MAXIMUM_TOGETHER:
            raise InvalidRequest(
                f"cannot record {len(events)} events of thread '{self.thread_id}' at once;"
                f" record at most {MAXIMUM_TOGETHER} together"
            )
        reason = contradiction(self._fold, events)
        if reason is not None:
            raise InvalidRequest(f"cannot record in thread '{self.thread_id}': {reason}", thread_id=self.thread_id)

    async def _record(self, events: Sequence[Event]) -> tuple[StoredEvent, ...]:
        """Only while `_writing` is held. Not cut short by a cancellation: the store sees it through."""
        self._check(events)
        at = self._clock.now_milliseconds()
        try:
            recorded = await self._store.append(self.thread_id, events, after=self._fold.last_sequence, at=at)
            for stored in recorded:
                self._take(stored)
        except InvalidRequest:
            raise  # refused before anything was stored
        except BaseException as error:
            self._failure = self._failed(error)
            self.failed.set()
            raise
        return recorded

    async def _restore(self) -> None:
        if self._checkpoints is None:
            return
        kept = await self._checkpoints.load_checkpoint(self.thread_id)
        if kept is None or kept.followers.keys() != self._followers.keys():
            return
        self._fold = Fold(self.thread_id, kept)
        self._covered = self.last_sequence
        for name, follower in self._followers.items():
            follower.restore(kept.followers[name])

    async def _keep_checkpoint(self) -> None:
        tail = self.last_sequence - self._covered
        if self._checkpoints is None or self._failure or tail < max(LONG_TAIL, self.last_sequence // 20):
            return
        followers = {name: follower.checkpoint() for name, follower in self._followers.items()}
        with suppress(StorageFailed):  # the events are all there is to lose, and they are stored
            await self._checkpoints.save_checkpoint(self._fold.checkpoint(followers))
            self._covered = self.last_sequence

    def _take(self, stored: StoredEvent) -> None:
        self._fold.apply(stored)
        for observer in self._observers:
            observer(stored)
        for subscriber in self._subscribers:
            subscriber.tell(stored)

    def _failed(self, error: BaseException) -> StorageFailed:
        if isinstance(error, StorageFailed):
            return error
        return StorageFailed(f"{type(error).__name__} while an event of thread '{self.thread_id}' was being stored")

    async def _close(self) -> None:
        async with self._writing:  # let the record in progress end first
            self._closed = True
        for subscriber in self._subscribers:
            subscriber.end()
        await self._keep_checkpoint()
