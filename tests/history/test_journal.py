"""The journal: stored first, told in order, never slowed, never past a failure."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from interlock.history.journal import MAXIMUM_SUBSCRIBERS, MAXIMUM_TOGETHER, Journal
from interlock.history.subscriber import QUEUE_LIMIT
from interlock.stores import open_store
from interlock.vocabulary.errors import InvalidRequest, StorageFailed
from interlock.vocabulary.event import Event, StoredEvent, ThreadNamed, ThreadRecord, ThreadStarted, TurnStarted
from interlock.vocabulary.notice import LaggedNotice
from interlock.vocabulary.ports import EventStore
from tests.history.thread_events import FixedClock, call_ended, call_started, one_call, user_said, whole_thread
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

LARGE = "x" * 100_000
"""An event with it takes a while to store: small ones are stored before anybody else can run."""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EventStore]:
    async with open_store(tmp_path / "interlock.db") as opened:
        yield opened


def named(number: int) -> Event:
    return ThreadNamed(name=str(number))


def journal_of(store: EventStore) -> AbstractAsyncContextManager[Journal]:
    return Journal.open(store, "a", FixedClock())


async def stored_in(store: EventStore) -> list[StoredEvent]:
    async with aclosing(store.read("a")) as events:
        return [event async for event in events]


async def take(journal: Journal, count: int, *, after: int = 0) -> list[StoredEvent | LaggedNotice]:
    told: list[StoredEvent | LaggedNotice] = []
    async with aclosing(journal.subscribe(after=after)) as events:
        while len(told) < count:
            told.append(await anext(events))
    return told


class Hurdles:
    """A real store with hurdles: it counts, waits at a gate, fails, or takes a few moments."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self.failure: Exception | None = None
        self.gate: anyio.Event | None = None
        self.delay: anyio.Event | None = None
        """What the answer of the store waits for, when the events are stored already."""
        self.reached = anyio.Event()
        self.moments = 0

    async def append(self, thread_id: str, events: Sequence[Event], *, after: int, at: int) -> tuple[StoredEvent, ...]:
        self.reached.set()
        with anyio.CancelScope(shield=True):  # as the port promises
            if self.gate is not None:
                await self.gate.wait()
            for _ in range(self.moments):
                await anyio.lowlevel.checkpoint()
            if self.failure is not None:
                raise self.failure
            stored = await self.store.append(thread_id, events, after=after, at=at)
            if self.delay is not None:
                await self.delay.wait()
            for _ in range(self.moments):
                await anyio.lowlevel.checkpoint()
            return stored

    def read(self, thread_id: str, *, after: int = 0) -> "AsyncIterator[StoredEvent]":
        return self.store.read(thread_id, after=after)

    def claim(self, thread_id: str) -> object:
        return self.store.claim(thread_id)

    async def find(self, thread_id: str) -> ThreadRecord | None:
        return await self.store.find(thread_id)


@requirement("HIS-1")
async def test_two_resumes_of_one_store_give_equal_threads(store: EventStore) -> None:
    async with journal_of(store) as journal:
        for event in whole_thread():
            await journal.record(event)
        lived = journal.state
    resumed = []
    for _ in range(2):
        async with journal_of(store) as journal:
            resumed.append(journal.state)
    assert resumed == [lived, lived]


async def test_an_event_gets_its_place_and_the_clocks_time(store: EventStore) -> None:
    async with journal_of(store) as journal:
        first = await journal.record(ThreadStarted())
        both = await journal.record_all([named(2), named(3)])
    assert first == StoredEvent(thread_id="a", sequence=1, at=1000, event=ThreadStarted())
    assert [event.sequence for event in both] == [2, 3]


@requirement("LIF-4")
async def test_nobody_is_told_before_the_event_is_stored(store: EventStore) -> None:
    hurdles, told = Hurdles(store), list[StoredEvent]()
    async with Journal.open(hurdles, "a", FixedClock(), observers=[told.append]) as journal:  # type: ignore[arg-type] # threads() is not used
        hurdles.gate = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(journal.record, ThreadStarted())
            await hurdles.reached.wait()
            await anyio.wait_all_tasks_blocked()
            assert (told, journal.last_sequence) == ([], 0)
            hurdles.gate.set()
        assert [event.sequence for event in told] == [1]


async def test_observers_see_what_was_stored_before_and_what_comes(store: EventStore) -> None:
    async with journal_of(store) as journal:
        await journal.record_all([ThreadStarted(), named(2)])
    seen = list[int]()
    async with Journal.open(store, "a", FixedClock(), observers=[lambda event: seen.append(event.sequence)]) as journal:
        assert seen == [1, 2]
        await journal.record(named(3))
    assert seen == [1, 2, 3]


async def test_records_made_at_once_keep_their_order(store: EventStore) -> None:
    async with journal_of(store) as journal:
        await journal.record(ThreadStarted())
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(journal.record, named(number))
        told = await take(journal, 51)
    assert told == await stored_in(store)
    assert [getattr(event, "sequence", None) for event in told] == [*range(1, 52)]


@requirement("LIF-1", "LIF-8", "TRN-1")
@pytest.mark.parametrize(
    "event",
    [ThreadStarted(), TurnStarted(turn_id="u9"), call_started("c1"), call_ended("c1"), call_ended("unknown")],
    ids=lambda event: type(event).__name__,
)
async def test_what_contradicts_the_history_is_refused_and_changes_nothing(store: EventStore, event: Event) -> None:
    async with journal_of(store) as journal:
        await journal.record_all(whole_thread())
        state, before = journal.state, await stored_in(store)
        with pytest.raises(InvalidRequest, match="cannot record in thread 'a': "):
            await journal.record(event)
        assert (journal.state, await stored_in(store)) == (state, before)
        await journal.record(named(1))


async def test_a_value_that_json_cannot_carry_is_refused_and_the_thread_goes_on(store: EventStore) -> None:
    async with journal_of(store) as journal:
        await journal.record_all([ThreadStarted(), *user_said("go")])
        started = call_started("c1")
        bad = replace(started, item=replace(started.item, arguments=1e999))
        with pytest.raises(InvalidRequest, match="inf is not a JSON number"):
            await journal.record(bad)
        assert not journal.is_used("c1")
        await journal.record(call_started("c1"))


async def test_a_batch_is_bounded(store: EventStore) -> None:
    async with journal_of(store) as journal:
        with pytest.raises(InvalidRequest, match="record at most 1000 together"):
            await journal.record_all([ThreadStarted(), *[named(1)] * MAXIMUM_TOGETHER])


@requirement("HIS-2")
async def test_after_the_store_failed_nothing_more_is_recorded_until_the_thread_is_opened_again(
    store: EventStore,
) -> None:
    hurdles = Hurdles(store)
    async with Journal.open(hurdles, "a", FixedClock()) as journal:  # type: ignore[arg-type] # threads() is not used
        await journal.record(ThreadStarted())
        hurdles.failure = StorageFailed("the disk is full", path="/db")
        with pytest.raises(StorageFailed, match="the disk is full"):
            await journal.record(named(2))
        hurdles.failure = None
        with pytest.raises(StorageFailed, match=r"its store failed before \(the disk is full\); open the thread again"):
            await journal.record(named(3))
        assert (journal.last_sequence, len(await stored_in(store))) == (1, 1)
    async with journal_of(store) as journal:
        assert (await journal.record(named(2))).sequence == 2


async def test_an_error_that_nobody_foresaw_stops_the_journal_too(store: EventStore) -> None:
    hurdles = Hurdles(store)
    async with Journal.open(hurdles, "a", FixedClock()) as journal:  # type: ignore[arg-type] # threads() is not used
        hurdles.failure = RuntimeError("a bug")
        with pytest.raises(RuntimeError, match="a bug"):
            await journal.record(ThreadStarted())
        with pytest.raises(StorageFailed, match="RuntimeError while an event"):
            await journal.record(ThreadStarted())


@requirement("HIS-7")
async def test_a_thread_has_one_journal_at_a_time(store: EventStore) -> None:
    async with journal_of(store) as journal:
        await journal.record(ThreadStarted())
        with pytest.raises(StorageFailed, match="holds it"):
            async with journal_of(store):
                pass
        assert (await journal.record(named(2))).sequence == 2


async def test_a_closed_journal_records_nothing(store: EventStore) -> None:
    async with journal_of(store) as journal:
        await journal.record(ThreadStarted())
    with pytest.raises(InvalidRequest, match="it is closed here; open it again"):
        await journal.record(named(2))
    assert repr(journal) == "<Journal a closed at 1, 0 subscribers>"


@pytest.mark.parametrize("moment", range(12))
@requirement("HIS-2", "LIF-4")
async def test_a_record_cancelled_at_any_moment_is_stored_and_told_or_neither(store: EventStore, moment: int) -> None:
    hurdles, told, known = Hurdles(store), list[StoredEvent](), list[StoredEvent]()
    async with Journal.open(hurdles, "a", FixedClock(), observers=[told.append]) as journal:  # type: ignore[arg-type] # threads() is not used
        await journal.record(ThreadStarted())
        hurdles.moments = 2
        scope = anyio.CancelScope()

        async def cancel_after() -> None:
            for _ in range(moment):
                await anyio.lowlevel.checkpoint()
            scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_after)
            with scope:
                for number in (2, 3):
                    await anyio.lowlevel.checkpoint()
                    known.append(await journal.record(named(number)))

        assert told == await stored_in(store)
        assert told[1:] == known
        assert journal.last_sequence == len(told)
        assert (await journal.record(named(9))).sequence == len(told)  # the observer has it already


@pytest.mark.parametrize("moment", range(6))
async def test_a_record_whose_task_is_cancelled_behind_anyios_back_is_known_to_its_caller(
    store: EventStore, moment: int
) -> None:
    known = list[StoredEvent]()
    async with journal_of(store) as journal:

        async def record() -> None:
            known.append(await journal.record(ThreadStarted(name=LARGE)))
            await asyncio.sleep(0)
            known.append(await journal.record(ThreadNamed(name=LARGE)))

        task = asyncio.ensure_future(record())
        for _ in range(moment):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert known == await stored_in(store)
        assert journal.last_sequence == len(known)


@requirement("HIS-6")
async def test_a_subscriber_gets_stored_and_live_events_without_gap_or_repetition(store: EventStore) -> None:
    async with journal_of(store) as journal:
        await journal.record(ThreadStarted())
        told: dict[int, list[StoredEvent | LaggedNotice]] = {}

        async def listen(after: int) -> None:
            told[after] = await take(journal, 201 - after, after=after)

        async with anyio.create_task_group() as tasks:
            for number in range(1, 201):
                if number % 40 == 0:
                    tasks.start_soon(listen, number - 20)  # joins while events are being recorded
                await journal.record(named(number))
            tasks.start_soon(listen, 0)
        stored = await stored_in(store)
        assert told == {after: stored[after:] for after in (0, 20, 60, 100, 140, 180)}


@requirement("HIS-6")
async def test_an_event_that_is_read_before_it_is_told_is_not_given_twice(store: EventStore) -> None:
    hurdles = Hurdles(store)
    async with Journal.open(hurdles, "a", FixedClock()) as journal:  # type: ignore[arg-type] # threads() is not used
        await journal.record(ThreadStarted())
        hurdles.delay = anyio.Event()
        async with anyio.create_task_group() as tasks, aclosing(journal.subscribe()) as events:
            tasks.start_soon(journal.record, named(2))
            await anyio.wait_all_tasks_blocked()
            assert [(await anext(events)).sequence for _ in range(2)] == [1, 2]  # type: ignore[union-attr] # no notice
            following = asyncio.ensure_future(anext(events))
            await anyio.wait_all_tasks_blocked()
            hurdles.delay.set()
            await anyio.wait_all_tasks_blocked()
            await journal.record(named(3))
            assert (await following).sequence == 3  # type: ignore[union-attr] # no notice


@requirement("HIS-6")
async def test_a_slow_subscriber_is_told_what_it_missed_and_slows_nobody(store: EventStore) -> None:
    async with journal_of(store) as journal:
        await journal.record(ThreadStarted())
        async with aclosing(journal.subscribe()) as slow:
            assert (await anext(slow)).sequence == 1  # type: ignore[union-attr] # no notice yet
            waiting = asyncio.ensure_future(anext(slow))
            await anyio.wait_all_tasks_blocked()
            await journal.record(named(2))
            assert (await waiting).sequence == 2  # type: ignore[union-attr] # no notice yet
            await journal.record_all([named(number) for number in range(3, 903)])
            await journal.record_all([named(number) for number in range(903, 1203)])
            assert await anext(slow) == LaggedNotice(missed=QUEUE_LIMIT)
            following = await anext(slow)
            assert isinstance(following, StoredEvent)
            assert following.sequence == 3 + QUEUE_LIMIT
        missed = [event.sequence for event in await stored_in(store)][2 : 2 + QUEUE_LIMIT]
        assert missed == [*range(3, 3 + QUEUE_LIMIT)]


async def test_subscriptions_end_with_the_journal_after_their_last_event(store: EventStore) -> None:
    async with journal_of(store) as journal:
        await journal.record_all([ThreadStarted(), named(2)])
        subscription = journal.subscribe(after=1)
        assert (await anext(subscription)).sequence == 2  # type: ignore[union-attr] # no notice
        last = asyncio.ensure_future(anext(subscription))
        await anyio.wait_all_tasks_blocked()
        await journal.record_all([named(3), named(4)])
    assert [getattr(event, "sequence", None) for event in [await last, *[event async for event in subscription]]] == [
        3,
        4,
    ]


async def test_subscribers_are_bounded_and_one_that_leaves_makes_room(store: EventStore) -> None:
    async with journal_of(store) as journal:
        await journal.record(ThreadStarted())
        subscriptions = [journal.subscribe(after=1) for _ in range(MAXIMUM_SUBSCRIBERS + 1)]
        waiting = [asyncio.ensure_future(anext(one)) for one in subscriptions[:-1]]
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(InvalidRequest, match="it has 256 subscribers; close one"):
            await anext(subscriptions[-1])
        await journal.record(named(2))
        await asyncio.wait(waiting)
        for subscription in subscriptions:
            await subscription.aclose()
        assert repr(journal) == "<Journal a open at 2, 0 subscribers>"


async def test_closing_waits_for_the_record_in_progress(store: EventStore) -> None:
    hurdles = Hurdles(store)
    async with anyio.create_task_group() as tasks:
        async with Journal.open(hurdles, "a", FixedClock()) as journal:  # type: ignore[arg-type] # threads() is not used
            hurdles.gate = anyio.Event()
            tasks.start_soon(journal.record, ThreadStarted())
            await hurdles.reached.wait()
            asyncio.get_running_loop().call_soon(hurdles.gate.set)
        assert journal.last_sequence == 1
    assert len(await stored_in(store)) == 1


async def test_a_call_left_open_is_seen_at_the_next_start_and_can_be_ended(store: EventStore) -> None:
    async with journal_of(store) as journal:
        await journal.record_all([ThreadStarted(), *user_said("go"), *one_call("c1")[:2]])
    async with journal_of(store) as journal:
        assert [call.item.id for call in journal.state.open_calls] == ["c1"]
        await journal.record(call_ended("c1"))
        assert journal.state.open_calls == ()


@requirement("LIF-1", "LIF-4")
async def test_what_must_be_recorded_is_although_another_one_is_next_in_line_and_it_is_cancelled(
    store: EventStore,
) -> None:
    async with journal_of(store) as journal, anyio.create_task_group() as tasks:
        await journal.record(ThreadStarted())
        waiting = anyio.Event()

        async def next_in_line() -> None:
            waiting.set()
            await journal.record(ThreadNamed(name=LARGE[1:]))

        async def go_on_at_once() -> None:
            await journal.record(ThreadNamed(name=LARGE))  # the next one has come to the line meanwhile
            with anyio.CancelScope() as scope:
                scope.cancel()
                await journal.record_surely(named(3))

        tasks.start_soon(go_on_at_once)
        await anyio.lowlevel.checkpoint()
        tasks.start_soon(next_in_line)
        await waiting.wait()
    names = [one.event.name for one in await stored_in(store) if isinstance(one.event, ThreadNamed)]
    assert names == [LARGE, LARGE[1:], "3"]
