"""The gate: calls run side by side, except those that must run alone, in order of arrival."""

import anyio
import anyio.lowlevel
import pytest

from interlock.threads.gate import Gate, Ticket
from tests.manifest import requirement

pytestmark = pytest.mark.anyio


def admitted(ticket: Ticket) -> bool:
    return ticket.may_run


@requirement("LIF-5")
async def test_calls_that_may_share_run_at_once() -> None:
    gate = Gate()
    with gate.arriving(alone=False) as first, gate.arriving(alone=False) as second:
        assert admitted(first)
        assert admitted(second)


@requirement("LIF-5")
async def test_a_call_that_runs_alone_waits_for_all_before_it_and_holds_back_all_after_it() -> None:
    gate = Gate()
    with gate.arriving(alone=True) as last:
        assert admitted(last)
        with gate.arriving(alone=False) as reader:
            assert not admitted(reader)
    with gate.arriving(alone=False) as before, gate.arriving(alone=True) as alone:
        with gate.arriving(alone=False) as after:
            assert (admitted(before), admitted(alone), admitted(after)) == (True, False, False)
        assert repr(gate) == "<Gate running=1 waiting=1>"


@requirement("LIF-5")
async def test_nobody_overtakes_a_waiting_call() -> None:
    gate, order = Gate(), []

    async def call(name: str, alone: bool) -> None:
        with gate.arriving(alone=alone) as ticket:
            await ticket.admitted()
            order.append(name)
            await anyio.lowlevel.checkpoint()
            order.append(name)

    async with anyio.create_task_group() as tasks:
        for name in ("r1", "r2", "W1", "r3", "r4", "W2", "W3"):
            tasks.start_soon(call, name, name.startswith("W"))

    assert order == ["r1", "r2", "r1", "r2", "W1", "W1", "r3", "r4", "r3", "r4", "W2", "W2", "W3", "W3"]
    assert repr(gate) == "<Gate running=0 waiting=0>"


@requirement("LIF-5")
@pytest.mark.parametrize("moment", range(8))
@pytest.mark.parametrize("victim", range(5))
async def test_wherever_a_call_is_cancelled_the_others_still_get_their_turn(moment: int, victim: int) -> None:
    gate, running, finished = Gate(), set[int](), set[int]()
    scopes = [anyio.CancelScope() for _ in range(5)]

    async def call(number: int, alone: bool) -> None:
        with scopes[number], gate.arriving(alone=alone) as ticket:
            await ticket.admitted()
            assert not running if alone else not any(other in (1, 3) for other in running)
            running.add(number)
            try:
                await anyio.lowlevel.checkpoint()
            finally:
                running.discard(number)
            finished.add(number)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(call, number, number in (1, 3))
            for _ in range(moment):
                await anyio.lowlevel.checkpoint()
            scopes[victim].cancel()

    assert finished >= {0, 1, 2, 3, 4} - {victim}
    assert repr(gate) == "<Gate running=0 waiting=0>"
