"""The count of cited memories, on SQLite and on a real PostgreSQL."""

from collections.abc import AsyncIterator

import pytest

from interlock.stores import open_store
from interlock.vocabulary.errors import InvalidRequest, StorageFailed
from interlock.vocabulary.event import ThreadNamed, ThreadStarted
from interlock.vocabulary.memory import MemoryUse
from interlock.vocabulary.ports import Store
from tests.manifest import requirement
from tests.stores.conftest import Tamper

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(place: str) -> AsyncIterator[Store]:
    async with open_store(place) as opened:
        for thread_id in ("a", "b", "c"):
            await opened.append(thread_id, [ThreadStarted()], after=0, at=0)
        yield opened


@requirement("MEM-5")
async def test_each_id_counts_once_with_the_time_and_strangers_are_skipped(store: Store) -> None:
    await store.count_memory_uses(["b", "a", "a", "no thread of ours", "a\0", "\ud800"], at=10)
    await store.count_memory_uses(["b"], at=20)
    assert await store.memory_uses() == (
        MemoryUse(thread_id="b", uses=2, last_used_at=20),
        MemoryUse(thread_id="a", uses=1, last_used_at=10),
    )
    assert await store.memory_uses(limit=1) == (MemoryUse(thread_id="b", uses=2, last_used_at=20),)


@requirement("MEM-5")
async def test_the_uses_of_one_message_are_counted_all_or_none(store: Store, place: str, tamper: Tamper) -> None:
    if "://" in place:
        await tamper("ALTER TABLE memory_uses ADD CHECK (thread_id <> 'b')")
    else:
        await tamper(
            "CREATE TRIGGER no_b BEFORE INSERT ON memory_uses WHEN NEW.thread_id = 'b'"
            " BEGIN SELECT RAISE(ABORT, 'not b'); END"
        )
    with pytest.raises(StorageFailed):
        await store.count_memory_uses(["a", "b", "c"], at=1)
    assert await store.memory_uses() == ()


async def test_a_list_of_uses_is_bounded(store: Store) -> None:
    with pytest.raises(InvalidRequest, match="1 to"):
        await store.memory_uses(limit=0)


async def test_a_deleted_thread_leaves_nothing_behind(store: Store, tamper: Tamper) -> None:
    await store.append("a", [ThreadNamed(name="x")], after=1, at=0)
    await store.count_memory_uses(["a", "b"], at=1)
    async with store.claim("a"):
        await store.delete_thread("a")
    assert await store.find("a") is None
    assert [event async for event in store.read("a")] == []
    assert [use.thread_id for use in await store.memory_uses()] == ["b"]
    assert await tamper("SELECT count(*) FROM events WHERE thread_id = 'a'") == [(0,)]
    await store.delete_thread("never there")
    await store.append("a", [ThreadStarted(name="again")], after=0, at=0)
