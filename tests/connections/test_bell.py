"""The bell: all who wait are woken, nobody else, and nothing is remembered."""

from math import inf

import anyio
import pytest

from interlock.connections.bell import Bell, Once, first_of

pytestmark = pytest.mark.anyio


async def test_all_who_wait_are_woken_and_a_ring_is_not_remembered() -> None:
    bell, woken = Bell(), list[int]()

    async def wait(number: int) -> None:
        await bell.next_ring()
        woken.append(number)

    bell.ring()
    async with anyio.create_task_group() as tasks:
        for number in (1, 2):
            tasks.start_soon(wait, number)
        await anyio.wait_all_tasks_blocked()
        assert woken == []
        bell.ring()
        tasks.start_soon(wait, 3)
        await anyio.wait_all_tasks_blocked()
        assert sorted(woken) == [1, 2]
        bell.ring()
    assert woken[-1] == 3


async def test_who_gives_up_waiting_leaves_the_others_waiting() -> None:
    bell, woken = Bell(), list[str]()

    async def wait() -> None:
        await bell.next_ring()
        woken.append("stayed")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(0):
            await bell.next_ring()
        bell.ring()
    assert woken == ["stayed"]


async def test_whichever_happens_first_ends_the_wait_and_leaves_nobody_waiting_at_the_other() -> None:
    one, other = Once(), Once()

    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(first_of, one, other)
        await anyio.wait_all_tasks_blocked()
        other.set()
    assert (one.is_set(), other.is_set(), one._waiting) == (False, True, [])
    await first_of(one, other)  # what has happened is not waited for


async def test_a_wait_ends_at_its_deadline_at_the_latest() -> None:
    once, bell = Once(), Bell()
    await once.wait(anyio.current_time())
    await bell.next_ring(anyio.current_time() - 1)
    assert not once.is_set()
    with anyio.move_on_after(0) as waiting:
        await once.wait(inf)
    assert waiting.cancelled_caught
