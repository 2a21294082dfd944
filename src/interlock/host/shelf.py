"""What is done with stored Threads as wholes: forked, taken out, brought in, put away, forgotten.

Owns: these five, each all or nothing as far as anybody can see.
Never: changes a Thread that somebody else writes, or one that is loaded behind its back.
"""

from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import anyio

from interlock.history.journal import Journal
from interlock.host.arriving import Arriving
from interlock.host.loading import LoadedThreads
from interlock.origins.store import Origins
from interlock.stores import exchange
from interlock.threads.identity import new_id
from interlock.vocabulary.errors import InvalidRequest, StorageFailed
from interlock.vocabulary.event import (
    StoredEvent,
    ThreadArchived,
    ThreadNamed,
    ThreadRecord,
    ThreadRolledBack,
    ThreadStarted,
    TurnEnded,
    TurnStarted,
)
from interlock.vocabulary.ports import Clock, Store
from interlock.vocabulary.thread import ThreadCheckpoint


class Shelf:
    """The stored Threads of one Host."""

    def __init__(self, store: Store, threads: LoadedThreads, clock: Clock) -> None:
        self._store = store
        self._threads = threads
        self._clock = clock

    async def fork(self, source: str, turn_id: str | None = None) -> str:
        """The id of a new Thread that stands where `source` stood at the end of `turn_id`, its last turn by default.

        The source may be loaded, running (its running turn is left out), or held by another process.

        Raises:
            InvalidRequest: there is no such Thread, or no such turn that has ended and was not rolled back.
        """
        record, first = await self._find(source), await self._first_event(source)
        places = await self._places(source, turn_id)
        cut = places.end_of(turn_id)
        if cut == 0:  # deleted since it was found
            raise _unknown(source)
        now, target = self._clock.now_milliseconds(), new_id(self._clock)
        copied = replace(
            record,
            thread_id=target,
            created_at=now,
            updated_at=now,
            name=places.labels_at(cut).name,
            model=places.labels_at(cut).model,
            turns=places.turns_at(cut),
            last_sequence=cut,
            archived=False,
        )
        birth = ThreadStarted(name=first.name, model=first.model, forked_from=source)
        await self._store.copy_thread(source, birth, copied)
        return target

    async def lines(self, thread_id: str) -> AsyncGenerator[str, None]:
        """All that is stored of a Thread, an event a line.

        Raises:
            InvalidRequest: no such Thread is stored.
        """
        await self._find(thread_id)
        async with aclosing(self._store.read(thread_id)) as events:
            async for stored in events:
                yield exchange.to_line(stored)

    async def bring_in(self, lines: AsyncIterable[str], *, new: bool = False) -> str:
        """Store the Thread of exported `lines` under its own id, or a new one; the id comes back.

        Nobody finds it before it is whole, whenever the process is killed; what a killed one left is forgotten here.

        Raises:
            InvalidRequest: a line cannot be read or contradicts those before, or the Thread is stored already.
                Then nothing of it stays.
        """
        await self._forget_unfinished()
        arriving = Arriving(new_id(self._clock) if new else None, self._clock)
        async with aclosing(arriving.pages(lines)) as pages:
            first = await anext(pages, None)
            if first is None:
                raise InvalidRequest("cannot import a thread from no lines at all")
            thread_id = first[0].thread_id
            async with self._store.claim(thread_id):
                if await self._store.find(thread_id) is not None:
                    raise InvalidRequest(
                        f"cannot import thread {thread_id}: it is stored already; delete it first, or import it as new"
                    )
                try:
                    await self._store.delete_thread(thread_id)  # an import of it may have been killed since
                    await self._store.store_unlisted(first)
                    async for page in pages:
                        await self._store.store_unlisted(page)
                    await self._store.list_thread(arriving.record())
                except BaseException:
                    with anyio.CancelScope(shield=True):
                        await self._store.delete_thread(thread_id)
                    raise
        return thread_id

    async def archive(self, thread_id: str, archived: bool) -> None:
        """Put a Thread away in lists, or take it back.

        Raises:
            InvalidRequest: no such Thread is stored.
            StorageFailed: another process writes it (HIS-7).
        """
        loaded = self._threads.get(thread_id)
        if loaded is not None and not loaded.closing:
            await loaded.archive(archived)
            return
        await self._find(thread_id)
        async with Journal.open(
            self._store, thread_id, self._clock, followers={"origins": Origins()}, checkpoints=self._store
        ) as journal:
            journal.refuse_if_new()
            await journal.record(ThreadArchived(archived=archived))

    async def delete(self, thread_id: str) -> None:
        """Forget a Thread for ever; a loaded one is closed first.

        Raises:
            InvalidRequest: no such Thread is stored.
            StorageFailed: another process writes it (HIS-7).
        """
        await self._find(thread_id)
        loaded = self._threads.get(thread_id)
        if loaded is not None:
            await loaded.close()
        async with self._store.claim(thread_id):
            await self._store.delete_thread(thread_id)

    async def _first_event(self, thread_id: str) -> ThreadStarted:
        async with aclosing(self._store.read(thread_id)) as events:
            async for stored in events:
                if isinstance(stored.event, ThreadStarted):
                    return stored.event
                break
        return ThreadStarted()

    async def _places(self, source: str, turn_id: str | None) -> "_Places":
        """From the newest checkpoint on, where that says enough; of an old turn only the events know the place."""
        kept = await self._store.load_checkpoint(source)
        if kept is not None:
            places = await self._read(source, _Places.after(kept))
            if places.know(turn_id):
                return places
        return await self._read(source, _Places(source))

    async def _read(self, source: str, places: "_Places") -> "_Places":
        async with aclosing(self._store.read(source, after=places.last_sequence)) as events:
            async for stored in events:
                places.take(stored)
        return places

    async def _find(self, thread_id: str) -> ThreadRecord:
        record = await self._store.find(thread_id)
        if record is None:
            raise _unknown(thread_id)
        return record

    async def _forget_unfinished(self) -> None:
        """Delete what imports have left that were killed; those that still run hold their claims."""
        for thread_id in await self._store.unlisted():
            with suppress(StorageFailed):
                async with self._store.claim(thread_id):
                    if await self._store.find(thread_id) is None:
                        await self._store.delete_thread(thread_id)


def _unknown(thread_id: str) -> InvalidRequest:
    return InvalidRequest(f"there is no thread {thread_id!r} in the store")


@dataclass(slots=True)
class _Places:
    """Where in a Thread's events its turns began and ended, and which of them count; nothing of what they hold."""

    thread_id: str
    last_sequence: int = 0
    _turns: dict[str, None] = field(default_factory=dict[str, None])
    """Ids of those that count, in their order."""
    _running: str | None = None
    _began: dict[str, int] = field(default_factory=dict[str, int])
    _ended: dict[str, int] = field(default_factory=dict[str, int])
    _labels: list["_Labels"] = field(default_factory=lambda: [_Labels(0, None, None)])

    @classmethod
    def after(cls, kept: ThreadCheckpoint) -> "_Places":
        """As they are after the events of a checkpoint, which does not know where its turns began and ended."""
        facts = kept.facts
        return cls(
            facts.thread_id,
            facts.last_sequence,
            _turns=dict.fromkeys(turn.turn_id for turn in kept.turns),
            _running=facts.open_turn,
            _labels=[_Labels(facts.last_sequence, facts.name, facts.model)],
        )

    def know(self, turn_id: str | None) -> bool:
        """Whether `end_of` can tell."""
        if turn_id is None:
            return self._running is None or self._running in self._began
        return turn_id in self._ended or turn_id not in self._turns

    def take(self, stored: StoredEvent) -> None:
        self.last_sequence = stored.sequence
        match stored.event:
            case TurnStarted(turn_id=turn_id, model=model):
                self._turns[turn_id], self._began[turn_id], self._running = None, stored.sequence, turn_id
                self._label(self._labels[-1].name, model or self._labels[-1].model)
            case TurnEnded(turn_id=turn_id):
                self._ended[turn_id] = stored.sequence
                self._running = None if self._running == turn_id else self._running
            case ThreadRolledBack(turns=turns):
                for turn_id in list(self._turns)[-turns:] if turns > 0 else ():
                    del self._turns[turn_id]
                self._running = self._running if self._running in self._turns else None
            case ThreadStarted(name=name, model=model):
                self._label(name, model)
            case ThreadNamed(name=name):
                self._label(name, self._labels[-1].model)
            case _:
                pass

    def end_of(self, turn_id: str | None) -> int:
        """The sequence of the last event that a fork takes along."""
        if turn_id is None:
            return self.last_sequence if self._running is None else self._began[self._running] - 1
        if turn_id not in self._turns or turn_id not in self._ended:
            raise InvalidRequest(
                f"cannot fork thread {self.thread_id} at turn {turn_id!r}: it has no such turn that has ended and "
                "was not rolled back"
            )
        return self._ended[turn_id]

    def turns_at(self, cut: int) -> int:
        return sum(1 for turn_id in self._turns if self._began.get(turn_id, 0) <= cut)

    def labels_at(self, cut: int) -> "_Labels":
        return next(labels for labels in reversed(self._labels) if labels.since <= cut)

    def _label(self, name: str | None, model: str | None) -> None:
        if (name, model) != self._labels[-1][1:]:
            self._labels.append(_Labels(self.last_sequence, name, model))


class _Labels(NamedTuple):
    """How a Thread was labelled from its event `since` on."""

    since: int
    name: str | None
    model: str | None
