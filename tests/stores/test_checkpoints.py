"""Kept checkpoints and copied Threads, on SQLite and on a real PostgreSQL."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from interlock.history import journal as journals
from interlock.history.fold import fold
from interlock.history.journal import Journal
from interlock.stores import checkpoint as layout
from interlock.stores import open_store
from interlock.vocabulary.errors import StorageFailed
from interlock.vocabulary.event import StoredEvent, ThreadNamed, ThreadRecord, ThreadStarted
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.ports import Store
from tests.history.thread_events import FixedClock, model_said, one_call, user_said, whole_thread
from tests.manifest import requirement
from tests.stores.conftest import Tamper

pytestmark = pytest.mark.anyio


class Counting:
    """A follower that counts, and remembers what it was restored from."""

    def __init__(self) -> None:
        self.seen = 0
        self.restored: JsonObject | None = None

    def observe(self, stored: StoredEvent) -> None:
        self.seen += 1

    def checkpoint(self) -> JsonObject:
        return {"seen": self.seen}

    def restore(self, checkpoint: JsonObject) -> None:
        self.restored = checkpoint
        self.seen = checkpoint["seen"]


@pytest.fixture
async def store(place: str) -> AsyncIterator[Store]:
    async with open_store(place) as opened:
        yield opened


@pytest.fixture(autouse=True)
def short_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "LONG_TAIL", 5)


async def events_of(store: Store, thread_id: str = "a") -> list[StoredEvent]:
    return [event async for event in store.read(thread_id)]


async def resumed(store: Store) -> Counting:
    """Open the Thread once more; it must be what its events say, from a checkpoint or not."""
    follower = Counting()
    async with Journal.open(store, "a", FixedClock(), followers={"c": follower}, checkpoints=store) as journal:
        history = await events_of(store)
        assert journal.state == fold("a", history)
        assert follower.seen == len(history)
    return follower


@pytest.fixture
async def long_thread(store: Store) -> Store:
    await store.append("a", whole_thread(), after=0, at=1)
    await resumed(store)
    return store


@requirement("HIS-1")
async def test_a_long_thread_is_resumed_from_its_checkpoint_and_the_events_after_it(long_thread: Store) -> None:
    last = len(whole_thread())
    await long_thread.append("a", model_said("done", "u2"), after=last, at=2)
    follower = await resumed(long_thread)
    assert follower.restored == {"seen": last}


async def test_a_short_tail_keeps_no_new_checkpoint(long_thread: Store) -> None:
    await long_thread.append("a", [ThreadNamed(name="x")], after=len(whole_thread()), at=2)
    await resumed(long_thread)
    kept = await long_thread.load_checkpoint("a")
    assert kept is not None
    assert kept.facts.last_sequence == len(whole_thread())


@requirement("HIS-1")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE checkpoints SET digest = 'x'",
        "UPDATE checkpoints SET version = version + 1",
        "UPDATE checkpoints SET sequence = sequence + 100",
        "UPDATE checkpoints SET sequence = sequence - 1",
        "UPDATE events SET at = 77 WHERE sequence = (SELECT sequence FROM checkpoints)",
        "DELETE FROM checkpoints",
    ],
)
async def test_a_checkpoint_that_does_not_fit_is_made_anew_from_the_events(
    long_thread: Store, tamper: Tamper, statement: str
) -> None:
    await tamper(statement)
    assert (await resumed(long_thread)).restored is None
    assert (await resumed(long_thread)).restored is not None


async def test_a_checkpoint_of_other_followers_is_not_used(long_thread: Store) -> None:
    async with Journal.open(long_thread, "a", FixedClock(), checkpoints=long_thread) as journal:
        assert journal.state == fold("a", await events_of(long_thread))


async def test_a_checkpoint_that_is_too_large_is_not_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "SIZE_LIMIT", 100)
    await store.append("a", whole_thread(), after=0, at=1)
    await resumed(store)
    assert await store.load_checkpoint("a") is None


async def test_no_checkpoint_is_kept_of_a_thread_that_is_gone(long_thread: Store, tamper: Tamper) -> None:
    kept = await long_thread.load_checkpoint("a")
    assert kept is not None
    await long_thread.delete_thread("a")
    await long_thread.save_checkpoint(kept)
    assert await tamper("SELECT count(*) FROM checkpoints") == [(0,)]


async def test_a_store_that_keeps_no_checkpoint_does_no_harm(long_thread: Store, tamper: Tamper) -> None:
    last = len(whole_thread())
    more = [event for turn in ("u3", "u4") for event in (*user_said("x", turn), *model_said("y", turn))]
    async with Journal.open(long_thread, "a", FixedClock(), checkpoints=long_thread) as journal:
        await journal.record_all([*model_said("done", "u2"), *more])
        await tamper("DROP TABLE checkpoints")
    assert len(await events_of(long_thread)) == last + 2 + len(more)


async def test_a_copied_thread_has_its_own_start_and_the_same_events(store: Store) -> None:
    history = [*whole_thread(), *one_call("c3", "u2")]
    await store.append("a", history, after=0, at=5)
    record = ThreadRecord(
        thread_id="b", created_at=9, updated_at=9, name="copy", preview="hello", model="m", turns=2, last_sequence=7
    )
    await store.copy_thread("a", ThreadStarted(forked_from="a"), record)

    copied = await events_of(store, "b")
    assert copied[0] == StoredEvent(thread_id="b", sequence=1, at=9, event=ThreadStarted(forked_from="a"))
    assert [(event.sequence, event.at, event.event) for event in copied[1:]] == [
        (sequence, 5, event) for sequence, event in enumerate(history[1:7], 2)
    ]
    assert await store.find("b") == record
    with pytest.raises(StorageFailed):
        await store.copy_thread("a", ThreadStarted(), record)
    assert len(await events_of(store, "b")) == 7
    await store.delete_thread("b")
    for last in (9, 8):
        more = replace(record, thread_id="c", last_sequence=last)
        with pytest.raises(StorageFailed, match=f"its events up to {last} are not stored any more"):
            await store.copy_thread("b", ThreadStarted(), more)
    assert (await store.find("c"), await store.unlisted()) == (None, ())
