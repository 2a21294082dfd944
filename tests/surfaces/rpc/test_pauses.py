"""Questions that clients put to people elsewhere: deadlines stand still, and not for ever."""

from pathlib import Path
from typing import Any

import pytest

from interlock.surfaces.rpc.client import Client
from interlock.surfaces.rpc.pauses import Pauses
from tests.manifest import requirement
from tests.surfaces.rpc.conftest import READ_ONLY, Serve
from tests.surfaces.rpc.driver import Desk, Driver, Refused

pytestmark = pytest.mark.anyio

SILENT: dict[str, Any] = {"tools": [{"name": "never", "annotations": READ_ONLY, "do": [{"silence": True}]}]}
SPEAKING: dict[str, Any] = {"tools": [{"name": "speak", "annotations": READ_ONLY, "do": [{"text": "here"}]}]}
LIMITED = {"s": {"tool_timeout": 0.2, "required": True}}


async def started(client: Driver) -> str:
    thread_id: str = (await client.request("thread/start"))["thread"]["id"]
    return thread_id


def call(client: Driver, thread_id: str) -> int:
    return client.begin("mcpServer/tool/call", {"threadId": thread_id, "server": "s", "tool": "never"})


async def runs_out(client: Driver, request: int) -> None:
    with pytest.raises(Refused) as late:
        await client.answer_to(request)
    assert late.value.data["kind"] == "deadline"


def is_answered(client: Driver, request: int) -> bool:
    return any(message.get("id") == request and "method" not in message for message in client.hear())


async def counted(client: Driver, method: str, thread_id: str) -> tuple[int, bool]:
    answer = await client.request(f"thread/{method}_elicitation", threadId=thread_id)
    return answer["count"], answer["paused"]


@requirement("CON-11", "RPC-1")
async def test_deadlines_of_one_thread_stand_still_while_its_client_asks_somebody_by_other_means(serve: Serve) -> None:
    async with serve({"s": SILENT}, settings=LIMITED) as desk:
        client = await desk.connect()
        paused, other = await started(client), await started(client)
        assert await counted(client, "increment", paused) == (1, True)
        assert await counted(client, "increment", paused) == (2, True)
        held = call(client, paused)
        await runs_out(client, call(client, other))  # as long, and begun later
        await runs_out(client, call(client, other))
        assert not is_answered(client, held)
        assert await counted(client, "decrement", paused) == (1, True)
        await runs_out(client, call(client, other))
        assert not is_answered(client, held)
        assert await counted(client, "decrement", paused) == (0, False)
        await runs_out(client, held)
        with pytest.raises(Refused) as none:
            await counted(client, "decrement", paused)
        assert none.value.code == -32600


@requirement("CON-11")
@pytest.mark.parametrize("leaves", ["disconnect", "unsubscribe"])
async def test_another_client_can_end_what_one_began_that_has_left(serve: Serve, leaves: str) -> None:
    async with serve({"s": SILENT}, settings=LIMITED) as desk:
        client, helper = await desk.connect(), await desk.connect()
        thread_id = await started(client)
        assert await counted(helper, "increment", thread_id) == (1, True)
        assert await counted(client, "increment", thread_id) == (2, True)
        if leaves == "disconnect":
            helper.end()
            await gone(desk, helper)
        else:
            await helper.request("thread/unsubscribe", threadId=thread_id)
        assert await counted(client, "decrement", thread_id) == (1, True)
        assert await counted(client, "decrement", thread_id) == (0, False)


async def gone(desk: Desk, client: Driver) -> None:
    while client.transport.closed is False:
        await client.transport.news.wait()


@requirement("CON-11")
async def test_what_a_client_began_that_has_left_ends_by_itself(serve: Serve) -> None:
    async with serve({"s": SILENT}, settings=LIMITED) as desk:
        client = await desk.connect()
        thread_id = await started(client)
        thread = desk.server.application.loaded(thread_id).thread
        pauses = Pauses(thread, patience=0.0)
        helper, stays = (Client(None, None, None) for _ in range(2))  # type: ignore[arg-type] -- nothing is said
        for who in (helper, helper, stays):
            pauses.begin(who)
        left = pauses.leave(helper)
        assert (len(left), pauses.count) == (2, 3)
        held = call(client, thread_id)
        pauses.end(stays)
        await pauses.end_later(left)
        assert pauses.count == 0
        await runs_out(client, held)


@requirement("CON-11")
async def test_a_call_that_waits_for_its_server_to_start_stands_still_too(serve: Serve, tmp_path: Path) -> None:
    begin = tmp_path / "begin"
    script = {"on": {"start": [{"wait_for_file": str(begin), "within": 60}]}, **SPEAKING}
    async with serve(
        {"slow": script, "s": SILENT}, settings={"slow": {"tool_timeout": 0.2}, **LIMITED}, grace=0.0
    ) as desk:
        client = await desk.connect()
        thread_id, other = await started(client), await started(client)
        await counted(client, "increment", thread_id)
        waiting = client.begin("mcpServer/tool/call", {"threadId": thread_id, "server": "slow", "tool": "speak"})
        await runs_out(client, call(client, other))  # as long, and begun later
        begin.touch()
        assert (await client.answer_to(waiting))["content"][0]["text"] == "here"
