"""The bell: all who wait are woken, nobody else, and nothing is remembered."""

import anyio
import pytest

from interlock.connections.bell import Bell

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
