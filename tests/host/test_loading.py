"""Threads come and go without touching each other, and leave nothing half-open."""

from collections.abc import Callable

import anyio
import anyio.lowlevel
import pytest

from interlock import Host, InvalidRequest, ServerConfig, Thread
from interlock.connections.generation import Generations
from interlock.testing import Gate, Say, ScriptedModel, Wait
from tests.host.conftest import OpenHost, answering
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

Servers = Callable[..., dict[str, ServerConfig]]


async def nothing_is_left(host: Host) -> None:
    """The pool closes what was released in the background; everything else is gone already."""
    assert dict(host.loaded_threads) == {}
    with anyio.fail_after(60):
        while host._open.pool.reports():  # noqa: ASYNC110 -- processes end on their own time
            await anyio.sleep(0.01)


async def test_a_defect_in_one_thread_ends_that_thread_alone_and_is_logged(
    open_host: OpenHost, servers: Servers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()
    async with open_host(servers(a={"tools": [answering("one", "1")]})) as host:
        healthy = await host.start_thread()

        changed = Generations.changed

        async def broken(generations: Generations) -> None:
            if healthy.id not in repr(generations):
                raise ZeroDivisionError("a defect")
            await changed(generations)

        monkeypatch.setattr(Generations, "changed", broken)
        doomed = await host.start_thread()
        with anyio.fail_after(60):
            await doomed.close()

        with pytest.raises(InvalidRequest, match="is closed"):
            await doomed.start_turn("hello", model=ScriptedModel(Say("no")))
        turn = await healthy.start_turn("hello", model=ScriptedModel([Wait(gate), Say("still here")]))
        gate.open()
        assert (await turn.finished()).last_message == "still here"
        assert list(host.loaded_threads) == [healthy.id]
    assert any("was closed by a defect" in record.message for record in caplog.records)


@pytest.mark.parametrize("moment", [0, 1, 2, 4, 8, 12, 16, 24, 32, 64, 128])
async def test_wherever_starting_a_thread_is_cancelled_the_host_goes_on(
    open_host: OpenHost, servers: Servers, moment: int
) -> None:
    async with open_host(servers({"required": True}, a={"tools": [answering("one", "1")]})) as host:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:

                async def cancel() -> None:
                    for _ in range(moment):
                        await anyio.lowlevel.checkpoint()
                    scope.cancel()

                tasks.start_soon(cancel)
                await host.start_thread()
        for thread in host.loaded_threads.values():  # it was there before the cancellation
            await thread.close()
        await nothing_is_left(host)

        thread = await host.start_thread()
        async with thread.step() as step:
            assert (await step.call("c1", "mcp__a__one")).text == "1"


@requirement("TRN-1")
@pytest.mark.parametrize("moment", range(0, 30, 2))
@pytest.mark.parametrize("begin", ["a step", "a turn"])
async def test_wherever_a_beginning_is_cancelled_no_turn_is_left_open(
    open_host: OpenHost, begin: str, moment: int
) -> None:
    async with open_host({}, model=ScriptedModel(*[Say("hello") for _ in range(2)])) as host:
        thread = await host.start_thread()

        async def use() -> None:
            if begin == "a turn":
                await thread.start_turn("hello")
            else:
                async with thread.step():
                    pass

        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope() as scope:

                async def cancel() -> None:
                    for _ in range(moment):
                        await anyio.lowlevel.checkpoint()
                    scope.cancel()

                tasks.start_soon(cancel)
                await use()

        if thread.running_turn is not None:
            await thread.running_turn.finished()
        assert thread.state.open_turn is None
        assert {turn.status for turn in thread.state.turns} <= {"completed", "failed", "interrupted"}
        assert (await (await thread.start_turn("again")).finished()).status == "completed"


async def test_a_thread_is_closed_from_any_task_any_number_of_times(open_host: OpenHost) -> None:
    async with open_host({}) as host:
        thread = await host.start_thread(name="first")
        await thread.rename("second")

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(thread.close)
        await thread.close()

        await nothing_is_left(host)
        (record,) = await host.threads()
        assert (record.name, thread.closed) == ("second", True)


@requirement("LIF-8")
async def test_a_thread_that_is_closing_is_resumed_as_a_new_one_after_it_has_closed(open_host: OpenHost) -> None:
    async with open_host({}) as host:
        first = await host.start_thread()
        resumed: list[Thread] = []

        async def resume() -> None:
            resumed.append(await host.resume_thread(first.id))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(first.close)
                await anyio.lowlevel.checkpoint()
                tasks.start_soon(resume)

        assert first.closed
        assert not resumed[0].closing
        assert list(host.loaded_threads) == [first.id]


async def test_servers_that_start_only_for_a_thread_end_with_it(open_host: OpenHost, servers: Servers) -> None:
    async with open_host(servers(a={"eras": ["handshake"]}, b={"eras": ["stateless"]})) as host:
        threads = [await host.start_thread() for _ in range(2)]
        for thread in threads:
            async with thread.step() as step:
                assert step.pending == ()
        for thread in threads:
            await thread.close()
        await nothing_is_left(host)
