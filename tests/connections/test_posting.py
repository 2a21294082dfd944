"""What is sent though nobody waits for it, and seen off before the end."""

import anyio
import anyio.lowlevel
import pytest

from interlock.connections.diagnostics import Diagnostics
from interlock.connections.posting import POSTS_LIMIT, Errands, Outbox
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject
from tests.connections.servers import PATIENCE
from tests.connections.test_dispatcher import PlayedChannel

pytestmark = pytest.mark.anyio


class Slow(PlayedChannel):
    """Takes nothing before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = anyio.Event()

    async def send(self, message: JsonObject, **rest: object) -> None:
        await self.may.wait()
        await super().send(message)


async def _let(channel: Slow) -> None:
    await anyio.lowlevel.checkpoint()
    channel.may.set()


async def test_posts_leave_in_order_and_are_seen_off() -> None:
    channel = Slow()
    outbox = Outbox(channel, Diagnostics())
    async with anyio.create_task_group() as group:
        for number in range(3):
            outbox.post({"id": number}, group)
        await anyio.wait_all_tasks_blocked()
        assert channel.sent == []
        group.start_soon(_let, channel)
        with anyio.fail_after(PATIENCE):
            await outbox.drain()
        assert [message["id"] for message in channel.sent] == [0, 1, 2]
        assert channel.flushed
        outbox.post({"id": 3}, group)
    assert channel.sent[-1] == {"id": 3}


async def test_a_line_that_nobody_takes_is_bounded_and_what_is_refused_is_counted() -> None:
    channel, diagnostics = Slow(), Diagnostics()
    outbox = Outbox(channel, diagnostics)
    async with anyio.create_task_group() as group:
        for number in range(POSTS_LIMIT + 5):
            outbox.post({"id": number}, group)
        channel.refuse = ServerFailed("full", server="played")
        channel.may.set()
    counts = {entry.kind: entry.count for entry in diagnostics.report()}
    assert counts == {"dropped_answer": 5, "not_delivered": POSTS_LIMIT}


async def test_errands_are_waited_for_also_when_they_fail_or_are_cancelled() -> None:
    errands, go_on = Errands(), anyio.Event()
    await errands.all_done()  # there are none
    done = anyio.Event()

    async def wait() -> None:
        await errands.all_done()
        done.set()

    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as group:
            errands.start_soon(group, go_on.wait)
            errands.start_soon(group, anyio.sleep_forever)
            tasks.start_soon(wait)
            go_on.set()
            await anyio.wait_all_tasks_blocked()
            assert not done.is_set()
            group.cancel_scope.cancel()
        with anyio.fail_after(PATIENCE):
            await done.wait()
