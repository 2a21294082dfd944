"""What every store promises, on SQLite and on a real PostgreSQL."""

import os
import signal
import socket
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any
from uuid import uuid4

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.stores import open_store
from interlock.stores.sequence import numbered
from interlock.stores.summary import record_after
from interlock.vocabulary.conversation import TextPart
from interlock.vocabulary.errors import InvalidRequest, StorageFailed
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    Event,
    StoredEvent,
    ThreadArchived,
    ThreadNamed,
    ThreadRecord,
    ThreadStarted,
    TurnEnded,
    TurnStarted,
)
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.ports import EventStore, Store
from tests.manifest import requirement
from tests.stores.conftest import Tamper
from tests.stores.events import events

pytestmark = pytest.mark.anyio

STARTED = ThreadStarted(name="first")


@pytest.fixture
async def store(place: str) -> AsyncIterator[Store]:
    async with open_store(place) as opened:
        yield opened


async def stored_in(store: EventStore, thread_id: str, *, after: int = 0) -> list[StoredEvent]:
    async with aclosing(store.read(thread_id, after=after)) as stored:
        return [event async for event in stored]


def named(number: int) -> Event:
    return ThreadNamed(name=str(number))


def call(arguments: Any) -> Event:
    item = McpToolCallItem(id="c", server="s", tool="t", public_name="p", arguments=arguments)
    return CallStarted(turn_id="u", step_id="s", item=item)


def call_ended() -> Event:
    item = McpToolCallItem(id="c", server="s", tool="t", public_name="p", arguments={}, status="completed")
    return CallEnded(turn_id="u", step_id="s", item=item, effect="done")


@requirement("HIS-2")
async def test_what_was_stored_is_read_in_order_also_by_the_next_process(place: str) -> None:
    async with open_store(place) as store:
        first = await store.append("a", [STARTED, named(2)], after=0, at=1000)
        second = await store.append("a", [named(3)], after=2, at=2000)
        assert await stored_in(store, "a") == [*first, *second]
    async with open_store(place) as store:
        assert await stored_in(store, "a") == [*first, *second]
        assert await stored_in(store, "a", after=2) == [*second]
        assert await stored_in(store, "a", after=9) == []
        assert await stored_in(store, "unknown") == []
    assert [(event.sequence, event.at) for event in (*first, *second)] == [(1, 1000), (2, 1000), (3, 2000)]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(events, min_size=1, max_size=20))
async def test_any_events_come_back_as_they_were(store: EventStore, batch: list[Event]) -> None:
    thread_id = str(uuid4())
    stored = await store.append(thread_id, batch, after=0, at=5)
    assert await stored_in(store, thread_id) == [*stored]
    assert [event.event for event in stored] == batch


async def test_storing_nothing_makes_no_thread(store: EventStore) -> None:
    assert await store.append("a", [], after=0, at=0) == ()
    assert await store.find("a") is None


@pytest.mark.parametrize("after", [0, 1, 3, 10])
async def test_an_append_out_of_its_place_is_refused_and_changes_nothing(store: EventStore, after: int) -> None:
    before = await store.append("a", [STARTED, named(2)], after=0, at=1000)
    record = await store.find("a")
    with pytest.raises(
        StorageFailed, match=f"cannot store event {after + 1} of thread 'a': its last stored event is 2"
    ):
        await store.append("a", [named(3)], after=after, at=2000)
    assert await stored_in(store, "a") == [*before]
    assert await store.find("a") == record


async def test_an_append_to_a_thread_that_never_started_is_refused(store: EventStore) -> None:
    with pytest.raises(StorageFailed, match="its last stored event is 0"):
        await store.append("a", [named(2)], after=1, at=0)
    assert await store.find("a") is None


async def test_an_event_that_json_cannot_carry_is_refused_with_its_whole_batch(store: EventStore) -> None:
    with pytest.raises(InvalidRequest, match="nan is not a JSON number"):
        await store.append("a", [STARTED, call({"x": float("nan")})], after=0, at=0)
    assert await stored_in(store, "a") == []
    assert await store.find("a") is None


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(events, min_size=1, max_size=6), st.lists(events, min_size=1, max_size=6))
async def test_what_is_listed_at_last_is_as_if_it_had_been_appended(
    store: Store, earlier: list[Event], later: list[Event]
) -> None:
    appended, listed = str(uuid4()), str(uuid4())
    first = await store.append(appended, earlier, after=0, at=5)
    second = await store.append(appended, later, after=len(earlier), at=6)
    record = None
    for page in (first, second):
        moved = tuple(replace(one, thread_id=listed) for one in page)
        record = record_after(record, moved)
        await store.store_unlisted(moved)
        assert await store.find(listed) is None
        assert listed in await store.unlisted()
    assert record is not None
    await store.list_thread(record)
    assert [one.event for one in await stored_in(store, listed)] == [*earlier, *later]
    expected = await store.find(appended)
    assert expected is not None
    assert await store.find(listed) == record
    assert replace(record, updated_at=6) == replace(expected, thread_id=listed, updated_at=6)
    assert listed not in await store.unlisted()


async def test_what_is_not_whole_is_not_listed_and_can_be_forgotten(store: Store) -> None:
    events = numbered("a", 0, 5, [STARTED, named(2), named(3)])
    await store.store_unlisted((events[0], events[2]))
    for last in (1, 2, 3, 4):
        with pytest.raises(StorageFailed, match=f"not exactly its events 1 to {last} are stored"):
            await store.list_thread(ThreadRecord(thread_id="a", created_at=5, updated_at=5, last_sequence=last))
    assert (await store.find("a"), await store.threads(), await store.unlisted()) == (None, (), ("a",))
    await store.append("b", [STARTED], after=0, at=5)
    await store.delete_thread("a")
    assert await store.unlisted() == ()
    with pytest.raises(StorageFailed, match="listed already"):
        await store.list_thread(ThreadRecord(thread_id="b", created_at=5, updated_at=5, last_sequence=1))


@pytest.mark.parametrize("thread_id", ["", "a\0b", "\ud800", "x" * 201])
async def test_an_id_that_no_database_could_hold_is_refused(store: EventStore, thread_id: str) -> None:
    with pytest.raises(InvalidRequest, match="as a thread id"):
        await store.append(thread_id, [STARTED], after=0, at=0)
    with pytest.raises(InvalidRequest, match="as a thread id"):
        await store.find(thread_id)
    with pytest.raises(InvalidRequest, match="as a thread id"):
        await stored_in(store, thread_id)
    with pytest.raises(InvalidRequest, match="as a thread id"):
        store.claim(thread_id)


@requirement("HIS-2")
async def test_many_threads_written_at_once_do_not_mix(store: EventStore) -> None:
    async def write(thread_id: str) -> None:
        await store.append(thread_id, [ThreadStarted(name=thread_id)], after=0, at=0)
        for number in range(1, 20):
            await store.append(thread_id, [ThreadNamed(name=f"{thread_id} {number}")], after=number, at=number)

    threads = [f"thread-{number}" for number in range(20)]
    async with anyio.create_task_group() as tasks:
        for thread_id in threads:
            tasks.start_soon(write, thread_id)

    for thread_id in threads:
        stored = await stored_in(store, thread_id)
        assert [event.sequence for event in stored] == [*range(1, 21)]
        assert stored[-1].event == ThreadNamed(name=f"{thread_id} 19")


async def test_of_two_appends_for_one_place_one_is_stored(store: EventStore) -> None:
    await store.append("a", [STARTED], after=0, at=0)
    outcomes: list[str] = []

    async def write(name: str) -> None:
        try:
            await store.append("a", [ThreadNamed(name=name)], after=1, at=0)
            outcomes.append(name)
        except StorageFailed:
            outcomes.append("refused")

    async with anyio.create_task_group() as tasks:
        for name in ("one", "two"):
            tasks.start_soon(write, name)

    (winner,) = {*outcomes} - {"refused"}
    assert "refused" in outcomes
    assert [event.event for event in await stored_in(store, "a", after=1)] == [ThreadNamed(name=winner)]


async def test_the_index_tells_name_preview_model_and_turns(store: EventStore) -> None:
    await store.append("a", [ThreadStarted(name="first", model="m1")], after=0, at=10)
    begin = TurnStarted(turn_id="u1", input=(TextPart(text="  What\nchanged \ud800 today\0?" + "x" * 300),), model="m2")
    await store.append("a", [begin, TurnEnded(turn_id="u1", status="completed")], after=1, at=20)
    await store.append("a", [TurnStarted(turn_id="u2", input=(TextPart(text="later"),))], after=3, at=30)
    record = ThreadRecord(
        thread_id="a",
        created_at=10,
        updated_at=30,
        name="first",
        preview=("What changed ? today\ufffd?" + "x" * 300)[:200],
        model="m2",
        turns=2,
        last_sequence=4,
    )
    assert await store.find("a") == record

    await store.append("a", [ThreadNamed(name=None)], after=4, at=31)
    found = await store.find("a")
    assert found is not None
    assert (found.name, found.last_sequence) == (None, 5)


async def test_the_calls_of_a_turn_are_counted_at_once_and_move_the_thread_with_the_turn(store: EventStore) -> None:
    await store.append("a", [STARTED, TurnStarted(turn_id="t")], after=0, at=10)
    await store.append("a", [call({})], after=2, at=20)
    await store.append("a", [call_ended()], after=3, at=30)

    found = await store.find("a")
    assert found is not None
    assert found.last_sequence == 4
    assert 10 <= found.updated_at <= 30
    assert await store.threads() == (found,)

    await store.append("a", [call({}), TurnEnded(turn_id="t", status="completed")], after=4, at=40)
    found = await store.find("a")
    assert found is not None
    assert (found.last_sequence, found.updated_at) == (6, 40)


@pytest.mark.parametrize("after", [1, 2, 10])
async def test_the_event_of_a_call_out_of_its_place_is_refused_and_changes_nothing(
    store: EventStore, after: int
) -> None:
    before = await store.append("a", [STARTED], after=0, at=0)
    before += await store.append("a", [call({})], after=1, at=0)
    before += await store.append("a", [call_ended()], after=2, at=0)
    with pytest.raises(
        StorageFailed, match=f"cannot store event {after + 1} of thread 'a': its last stored event is 3"
    ):
        await store.append("a", [call({})], after=after, at=0)
    assert await stored_in(store, "a") == [*before]


async def test_threads_are_listed_newest_first_page_by_page_also_when_they_are_of_one_moment(store: EventStore) -> None:
    for number in range(7):
        await store.append(f"thread-{number}", [STARTED], after=0, at=100 + number // 4)

    listed, last = list[str](), None
    while page := await store.threads(
        limit=2, before=last and last.updated_at, before_id=last.thread_id if last else None
    ):
        last = page[-1]
        listed += [record.thread_id for record in page]

    assert listed == ["thread-6", "thread-5", "thread-4", "thread-3", "thread-2", "thread-1", "thread-0"]
    assert [record.thread_id for record in await store.threads(before=101)] == [
        "thread-3",
        "thread-2",
        "thread-1",
        "thread-0",
    ]


async def test_a_list_is_of_those_that_are_put_away_or_of_the_others_when_asked(store: EventStore) -> None:
    for number in range(4):
        thread_id = f"thread-{number}"
        await store.append(thread_id, [STARTED, ThreadArchived(archived=number % 2 == 0)], after=0, at=100 + number)

    away = await store.threads(limit=2, archived=True)
    others = await store.threads(limit=2, archived=False)

    assert [record.thread_id for record in away] == ["thread-2", "thread-0"]
    assert [record.thread_id for record in others] == ["thread-3", "thread-1"]
    assert len(await store.threads()) == 4


@pytest.mark.parametrize("limit", [0, -1, 1001])
async def test_a_list_is_bounded(store: EventStore, limit: int) -> None:
    with pytest.raises(InvalidRequest, match="ask for 1 to 1000"):
        await store.threads(limit=limit)


async def test_a_long_thread_is_read_in_bounded_memory(store: EventStore) -> None:
    megabyte = "x" * 1024 * 1024
    await store.append("a", [STARTED], after=0, at=0)
    for number in range(1, 41):
        await store.append("a", [call(megabyte)], after=number, at=0)
    tracemalloc.start()
    try:
        async with aclosing(store.read("a")) as stored:
            count = len([True async for _ in stored])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 41
    assert peak < 16 * 1024 * 1024


@requirement("HIS-8")
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("UPDATE events SET kind = 'thread_dreamt' WHERE sequence = 2", "kind 'thread_dreamt' is unknown"),
        ("UPDATE events SET version = 99 WHERE sequence = 2", "version 99"),
        ("UPDATE events SET payload = '{' WHERE sequence = 2", "payload is broken"),
        ("DELETE FROM events WHERE sequence = 2", "event 2 is missing"),
    ],
)
async def test_an_event_that_cannot_be_read_is_named_and_left_alone(
    store: EventStore, tamper: Tamper, damage: str, reason: str
) -> None:
    await store.append("a", [STARTED, named(2), named(3)], after=0, at=0)
    await tamper(damage)
    before = await tamper("SELECT * FROM events ORDER BY sequence")
    with pytest.raises(StorageFailed, match=reason) as failed:
        await stored_in(store, "a")
    assert (failed.value.facts["thread_id"], failed.value.facts["sequence"]) == ("a", 2)
    assert await tamper("SELECT * FROM events ORDER BY sequence") == before


async def test_a_schema_of_a_newer_version_is_refused_and_left_alone(place: str, tamper: Tamper) -> None:
    async with open_store(place) as store:
        await store.append("a", [STARTED], after=0, at=0)
    await tamper("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StorageFailed, match=r"its schema 9999 is newer than this interlock's \d+; upgrade interlock"):
        async with open_store(place):
            pass
    assert await tamper("SELECT version_num FROM alembic_version") == [("9999",)]
    assert await tamper("SELECT count(*) FROM events") == [(1,)]


async def test_two_hosts_may_make_one_store_at_the_same_moment(place: str) -> None:
    async def start(thread_id: str) -> None:
        async with open_store(place) as store:
            await store.append(thread_id, [STARTED], after=0, at=0)

    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(start, f"thread-{number}")
    async with open_store(place) as store:
        assert len(await store.threads()) == 4


@requirement("HIS-7")
async def test_a_thread_has_one_writer_also_within_one_process(place: str) -> None:
    async with open_store(place) as store, open_store(place) as other:
        async with store.claim("a"):
            for second in (store, other):
                with pytest.raises(StorageFailed, match=f"process {os.getpid()} on {socket.gethostname()} since"):
                    async with second.claim("a"):
                        pass
            async with other.claim("b"):
                pass
        async with other.claim("a"):
            pass


async def test_a_claim_survives_a_failure_inside_and_is_free_afterwards(store: EventStore) -> None:
    with pytest.raises(RuntimeError, match="inside"):
        async with store.claim("a"):
            raise RuntimeError("inside")
    async with store.claim("a"):
        pass


class Child:
    """Another process that works on the store; ended by its own id."""

    def __init__(self, place: str, *words: str) -> None:
        command = [sys.executable, "-m", "tests.stores.child", place, *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def kill(self) -> list[str]:
        """SIGKILL; the lines that it had still written."""
        self.process.send_signal(signal.SIGKILL)
        assert self.process.stdout is not None
        with self.process.stdout as rest:
            lines = rest.read().split()
        self.process.wait(10)
        return lines


@requirement("HIS-7")
async def test_a_second_process_is_refused_with_the_name_of_the_owner_and_inherits_from_a_dead_one(place: str) -> None:
    async with open_store(place) as store:
        child = Child(place, "hold", "a")
        try:
            assert child.line() == "held"
            with pytest.raises(StorageFailed, match="holds it; close it there first, or fork it") as refused:
                async with store.claim("a"):
                    pass
            facts = refused.value.facts
            assert (facts["process_id"], facts["host"]) == (child.process.pid, socket.gethostname())
            assert facts["since"] > 1_600_000_000_000
        finally:
            child.kill()
        await claimed_within_bounds(store, "a")


async def claimed_within_bounds(store: EventStore, thread_id: str) -> None:
    """PostgreSQL notices the end of a killed client on its own time: ask until it has."""
    with anyio.fail_after(60):
        while True:
            try:
                async with store.claim(thread_id):
                    return
            except StorageFailed:
                await anyio.lowlevel.checkpoint()


@requirement("HIS-2", "LIF-4")
@pytest.mark.parametrize("acknowledged", [1, 30, 200])
async def test_a_killed_process_loses_no_event_that_it_was_told_is_stored(place: str, acknowledged: int) -> None:
    async with open_store(place):
        pass
    child = Child(place, "append", "a")
    try:
        lines = [child.line() for _ in range(acknowledged)]
    finally:
        lines += child.kill()
    complete = [int(line) for line in lines if line.endswith(".") for line in [line[:-1]]]

    async with open_store(place) as store:
        stored = await stored_in(store, "a")
        assert [event.sequence for event in stored] == [*range(1, len(stored) + 1)]
        assert len(stored) >= complete[-1]
        record = await store.find("a")
        assert record is not None
        assert record.last_sequence == len(stored)
        await store.append("a", [named(0)], after=len(stored), at=0)


@pytest.mark.parametrize("moment", range(8))
async def test_an_append_cancelled_at_any_moment_is_stored_whole_or_not_at_all(store: EventStore, moment: int) -> None:
    await store.append("a", [STARTED], after=0, at=0)
    scope, known = anyio.CancelScope(), list[int]()

    async def cancel_after() -> None:
        for _ in range(moment):
            await anyio.lowlevel.checkpoint()
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel_after)
        with scope:
            await anyio.lowlevel.checkpoint()
            known += [event.sequence for event in await store.append("a", [named(2), named(3)], after=1, at=0)]

    assert [event.sequence for event in await stored_in(store, "a", after=1)] == known
