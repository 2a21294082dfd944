"""One timer for many deadlines: each is told once, in time, and none after it was taken back."""

import asyncio

import anyio
import pytest

from interlock.connections.deadlines import Deadlines
from tests.clock import let_pass
from tests.connections.servers import PATIENCE

pytestmark = pytest.mark.anyio


class Waiting:
    def __init__(self, told: list[str], name: str) -> None:
        self.told, self.name = told, name
        self.over = anyio.Event()

    def look(self) -> None:
        self.told.append(self.name)
        self.over.set()


async def until(*waiting: Waiting) -> None:
    with anyio.fail_after(PATIENCE * 1000):  # the clock of this loop is moved on
        for one in waiting:
            await one.over.wait()


async def test_a_later_deadline_is_told_later_and_one_that_was_taken_back_never() -> None:
    loop, told = asyncio.get_running_loop(), list[str]()
    deadlines = Deadlines(loop)
    late, soon, never = (Waiting(told, name) for name in ("late", "soon", "never"))
    deadlines.put(late, loop.time() + 300)
    deadlines.put(never, loop.time() + 50)
    deadlines.put(soon, loop.time() + 100)
    assert deadlines.take(never)
    assert (deadlines.take(never), never in deadlines, soon in deadlines) == (False, False, True)
    let_pass(101)
    await until(soon)
    assert told == ["soon"]
    let_pass(201)
    await until(late)
    assert told == ["soon", "late"]


async def test_a_thousand_deadlines_that_are_answered_set_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, told, timers = asyncio.get_running_loop(), list[str](), list[float]()
    deadlines, call_at = Deadlines(loop), loop.call_at
    monkeypatch.setattr(loop, "call_at", lambda when, *rest, **how: timers.append(when) or call_at(when, *rest, **how))
    for _ in range(1000):
        waiting = Waiting(told, "answered")
        deadlines.put(waiting, loop.time() + 60)
        deadlines.take(waiting)
    assert len(timers) == 1
    deadlines.close()


async def test_who_is_told_may_wish_for_another_time() -> None:
    loop, told = asyncio.get_running_loop(), list[str]()
    deadlines = Deadlines(loop)

    class Twice(Waiting):
        def look(self) -> None:
            self.told.append("once")
            deadlines.put(last, loop.time())

    last = Waiting(told, "twice")
    deadlines.put(Twice(told, ""), loop.time())
    await until(last)
    assert told == ["once", "twice"]
