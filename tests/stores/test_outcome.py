"""A wait that a cancellation cannot tear apart."""

import asyncio

import anyio
import pytest

from interlock.stores.outcome import Outcome

pytestmark = pytest.mark.anyio


async def test_a_bare_cancel_is_delivered_once_the_outcome_is_known() -> None:
    outcome, known, afterwards = Outcome[str](), list[str](), list[str]()

    async def wait() -> None:
        known.append(await outcome.wait())
        await asyncio.sleep(0)
        afterwards.append("never")

    task = asyncio.ensure_future(wait())
    for _ in range(3):  # more than one cancel changes nothing
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    outcome.settle("stored")
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (known, afterwards) == (["stored"], [])


async def test_a_timeout_of_asyncio_still_ends_as_a_timeout() -> None:
    outcome, known = Outcome[str](), list[str]()
    asyncio.get_running_loop().call_later(0.02, outcome.settle, "stored")

    async def wait_and_go_on() -> None:
        async with asyncio.timeout(0.001):
            known.append(await outcome.wait())
            await asyncio.sleep(10)

    with pytest.raises(TimeoutError):
        await wait_and_go_on()
    assert known == ["stored"]


async def test_a_cancelled_scope_waits_for_the_outcome() -> None:
    outcome, known = Outcome[str](), list[str]()
    asyncio.get_running_loop().call_later(0.02, outcome.settle, "stored")
    with anyio.move_on_after(0.001) as scope:
        known.append(await outcome.wait())
        await anyio.sleep(10)
    assert scope.cancelled_caught
    assert known == ["stored"]


async def test_an_error_is_raised_where_the_outcome_is_awaited() -> None:
    outcome = Outcome[str]()
    outcome.settle(ValueError("full"))
    with pytest.raises(ValueError, match="full"):
        await outcome.wait()
