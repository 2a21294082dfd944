"""A store that fails in the middle of a turn: clients hear its end, and can take the thread up again."""

import anyio
import pytest

from interlock.testing import Call, Say, ScriptedModel
from interlock.vocabulary.conversation import ModelRequest
from tests.manifest import requirement
from tests.surfaces.rpc.conftest import READ_ONLY, Serve
from tests.surfaces.rpc.driver import PATIENCE, Desk

pytestmark = pytest.mark.anyio

BIG = "x" * 200_000
"""Small writes go another way, on which there is no trouble."""
SAID = [{"type": "text", "text": "go"}]


class Trouble:
    """Lets the database of a desk be read-only from a sampling on, until it is over."""

    def __init__(self) -> None:
        self.desk: Desk | None = None

    def begin(self, _: ModelRequest) -> Call:
        self._pragma("query_only = 1")
        return Call("mcp__s__note", {"big": BIG})

    def end(self) -> None:
        self._pragma("query_only = 0")

    def _pragma(self, pragma: str) -> None:
        assert self.desk is not None
        opened = self.desk.server.application.host._opened
        assert opened is not None
        opened.store._writer._connection.execute(f"PRAGMA {pragma}")  # type: ignore[attr-defined] # SQLite's


def script() -> dict[str, object]:
    return {"tools": [{"name": "note", "annotations": READ_ONLY}]}


@requirement("HIS-2", "TRN-1")
async def test_a_turn_whose_store_fails_is_told_to_its_end_and_the_thread_can_be_taken_up_again(serve: Serve) -> None:
    trouble = Trouble()
    async with serve({"s": script()}, model=ScriptedModel(trouble.begin, Say("on we go"))) as desk:
        trouble.desk = desk
        client = await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        turn_id = (await client.request("turn/start", threadId=thread_id, input=SAID))["turn"]["id"]
        completion = await client.completion(turn_id)
        assert completion["status"] == "failed"
        assert "read-only" in completion["error"]["message"]
        assert (await client.news("error"))["error"] == completion["error"]
        await client.news("thread/closed", threadId=thread_id)
        trouble.end()
        resumed = await client.request("thread/resume", threadId=thread_id)
        assert [turn["status"] for turn in resumed["thread"]["turns"]] == ["interrupted"]
        turn_id = (await client.request("turn/start", threadId=thread_id, input=SAID))["turn"]["id"]
        assert (await client.completion(turn_id))["status"] == "completed"


@requirement("RPC-6")
async def test_a_printed_conversation_ends_also_when_the_store_fails(serve: Serve) -> None:
    trouble = Trouble()
    async with serve({"s": script()}, model=ScriptedModel(trouble.begin)) as desk:
        trouble.desk = desk
        client = await desk.connect(half_closes=True)
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        turn_id = (await client.request("turn/start", threadId=thread_id, input=SAID))["turn"]["id"]
        client.end()
        assert (await client.completion(turn_id))["status"] == "failed"
        with anyio.fail_after(PATIENCE):
            while client.transport.closed is False:
                await client.transport.news.wait()
