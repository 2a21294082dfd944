"""Threads forked, rolled back, compacted and put away by clients."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from interlock import Host
from interlock.surfaces.rpc import app_server as app_server_of
from interlock.surfaces.rpc.application import Application
from interlock.surfaces.rpc.leftovers import NEAR_THE_START, forget_left_behind
from interlock.surfaces.rpc.listening import Listening, read_place
from interlock.testing import Call, Say, ScriptedModel
from interlock.vocabulary.conversation import ModelEvent, ModelRequest
from tests.manifest import requirement
from tests.surfaces.rpc.conftest import READ_ONLY, Serve
from tests.surfaces.rpc.driver import Driver, Refused, app_server

pytestmark = pytest.mark.anyio

PATIENCE = 60.0


async def thread_of(client: Driver, turns: int) -> tuple[str, list[str]]:
    """A thread with so many turns: its id and theirs."""
    thread_id: str = (await client.request("thread/start"))["thread"]["id"]
    ids = []
    for number in range(turns):
        said = [{"type": "text", "text": f"say {number}"}]
        ids.append((await client.request("turn/start", threadId=thread_id, input=said))["turn"]["id"])
        await client.completion(ids[-1])
    return thread_id, ids


def model(turns: int) -> ScriptedModel:
    return ScriptedModel(*[Say(f"answer {number}") for number in range(turns)])


def ids_of(result: Any) -> list[str]:
    return [turn["id"] for turn in result["thread"]["turns"]]


@requirement("RPC-1", "HIS-3")
async def test_turns_are_rolled_back(serve: Serve) -> None:
    async with serve(model=model(3)) as desk:
        client = await desk.connect()
        thread_id, turns = await thread_of(client, 3)
        assert ids_of(await client.request("thread/rollback", threadId=thread_id, numTurns=2)) == turns[:1]
        assert ids_of(await client.request("thread/read", threadId=thread_id, includeTurns=True)) == turns[:1]
        for number in (0, 9):
            with pytest.raises(Refused) as refused:
                await client.request("thread/rollback", threadId=thread_id, numTurns=number)
            assert refused.value.code == -32600


@requirement("RPC-1")
async def test_a_fork_has_the_turns_up_to_the_one_that_is_named(serve: Serve) -> None:
    async with serve(model=model(4)) as desk:
        client = await desk.connect()
        thread_id, turns = await thread_of(client, 3)
        whole = await client.request("thread/fork", threadId=thread_id)
        assert whole["thread"]["forkedFromId"] == thread_id
        assert ids_of(whole) == turns
        assert ids_of(await client.request("thread/fork", threadId=thread_id, lastTurnId=turns[1])) == turns[:2]
        assert ids_of(await client.request("thread/fork", threadId=thread_id, beforeTurnId=turns[1])) == turns[:1]
        assert ids_of(await client.request("thread/fork", threadId=thread_id, excludeTurns=True)) == []
        for wrong in (
            {"lastTurnId": "x"},
            {"beforeTurnId": turns[0]},
            {"lastTurnId": turns[0], "beforeTurnId": turns[1]},
        ):
            with pytest.raises(Refused) as refused:
                await client.request("thread/fork", threadId=thread_id, **wrong)
            assert refused.value.code == -32600
        said = [{"type": "text", "text": "go on"}]
        turn = await client.request("turn/start", threadId=whole["thread"]["id"], input=said)
        assert (await client.completion(turn["turn"]["id"]))["status"] == "completed"


@requirement("RPC-1", "HIS-4")
async def test_a_compaction_is_told_as_a_turn_and_the_items_stay(serve: Serve) -> None:
    async with serve(model=ScriptedModel(Say("answer"), Say("the summary"))) as desk:
        client = await desk.connect()
        thread_id, turns = await thread_of(client, 1)
        assert await client.request("thread/compact/start", threadId=thread_id) == {}
        compacted = await client.news("thread/compacted", threadId=thread_id)
        told = await client.completion(compacted["turnId"])
        assert told["status"] == "completed"
        read = await client.request("thread/read", threadId=thread_id, includeTurns=True)
        assert ids_of(read) == [*turns, compacted["turnId"]]
        found = read["thread"]["turns"][-1]
        assert {**found, "items": [], "itemsView": "notLoaded"} == told
        heard = await client.news("item/completed", turnId=compacted["turnId"])
        assert found["items"] == [heard["item"]]
        assert heard["item"]["type"] == "contextCompaction"
        listed = await client.request("thread/turns/list", threadId=thread_id)
        assert compacted["turnId"] in [turn["id"] for turn in listed["data"]]
        empty = (await client.request("thread/start"))["thread"]["id"]
        with pytest.raises(Refused, match="nothing to compact"):
            await client.request("thread/compact/start", threadId=empty)


class Slow(ScriptedModel):
    """Takes its time with the second answer, which is the summary."""

    def __init__(self, *steps: Say) -> None:
        super().__init__(*steps)
        self.asked, self.go_on = anyio.Event(), anyio.Event()
        self._samplings = 0

    async def sample(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self._samplings += 1
        if self._samplings == 2:
            self.asked.set()
            await self.go_on.wait()
        async with aclosing(super().sample(request)) as events:
            async for event in events:
                yield event


async def test_a_turn_and_a_rollback_that_follow_a_compaction_wait_for_it(serve: Serve) -> None:
    slow = Slow(Say("answer"), Say("the summary"), Say("another answer"))
    async with serve(model=slow) as desk, anyio.create_task_group() as tasks:
        client = await desk.connect()
        thread_id, _ = await thread_of(client, 1)
        await client.request("thread/compact/start", threadId=thread_id)
        await slow.asked.wait()
        said = [{"type": "text", "text": "go on"}]
        turn: list[str] = []

        async def go_on() -> None:
            turn.append((await client.request("turn/start", threadId=thread_id, input=said))["turn"]["id"])

        tasks.start_soon(go_on)
        await anyio.wait_all_tasks_blocked()
        assert turn == []
        slow.go_on.set()
        compacted = await client.news("thread/compacted", threadId=thread_id)
        assert (await client.completion(compacted["turnId"]))["status"] == "completed"
        while not turn:
            await anyio.lowlevel.checkpoint()
        assert (await client.completion(turn[0]))["status"] == "completed"
        await client.request("thread/rollback", threadId=thread_id, numTurns=2)


async def test_a_compaction_can_be_interrupted_like_any_turn(serve: Serve) -> None:
    slow = Slow(Say("answer"), Say("the summary"))
    async with serve(model=slow) as desk:
        client = await desk.connect()
        thread_id, turns = await thread_of(client, 1)
        await client.request("thread/compact/start", threadId=thread_id)
        await slow.asked.wait()
        read = await client.request("thread/read", threadId=thread_id, includeTurns=True)
        turn_id = ids_of(read)[-1]
        assert await client.request("turn/interrupt", threadId=thread_id, turnId=turn_id) == {}
        assert (await client.completion(turn_id))["status"] == "interrupted"
        with pytest.raises(Refused, match="it may have ended"):
            await client.request("turn/interrupt", threadId=thread_id, turnId=turn_id)
        await client.request("thread/rollback", threadId=thread_id, numTurns=1)
        assert ids_of(await client.request("thread/read", threadId=thread_id, includeTurns=True)) == turns


async def test_two_clients_that_want_another_compaction_meanwhile_have_one_after_the_other(serve: Serve) -> None:
    slow = Slow(Say("answer"), Say("a summary"), Say("a second one"), Say("a third one"))
    async with serve(model=slow) as desk, anyio.create_task_group() as tasks:
        client, other = await desk.connect(), await desk.connect()
        thread_id, _ = await thread_of(client, 1)
        await client.request("thread/compact/start", threadId=thread_id)
        await slow.asked.wait()
        for one in (client, other):
            tasks.start_soon(partial(one.request, "thread/compact/start", threadId=thread_id))
        await anyio.wait_all_tasks_blocked()
        slow.go_on.set()
        told = [(await client.news("thread/compacted", threadId=thread_id))["turnId"] for _ in range(3)]
        assert [(await client.completion(turn_id))["status"] for turn_id in told] == ["completed"] * 3


async def test_a_compaction_that_fails_says_so(serve: Serve) -> None:
    async with serve(model=model(1)) as desk:
        client = await desk.connect()
        thread_id, _ = await thread_of(client, 1)
        await client.request("thread/compact/start", threadId=thread_id)
        error = await client.news("error", threadId=thread_id)
        told = await client.completion(error["turnId"])
        assert told["error"] == error["error"]
        read = await client.request("thread/read", threadId=thread_id, includeTurns=True)
        assert {**read["thread"]["turns"][-1], "itemsView": "notLoaded"} == told


@requirement("RPC-1")
async def test_a_thread_is_put_away_and_taken_back(serve: Serve) -> None:
    async with serve(model=model(1)) as desk:
        client, other = await desk.connect(), await desk.connect()
        thread_id, _ = await thread_of(client, 1)
        assert await other.request("thread/archive", threadId=thread_id) == {}
        for one in (client, other):
            assert await one.news("thread/archived") == {"threadId": thread_id}
        assert (await client.request("thread/list"))["data"] == []
        (archived,) = (await client.request("thread/list", archived=True))["data"]
        assert archived["id"] == thread_id
        back = await client.request("thread/unarchive", threadId=thread_id)
        assert back["thread"]["id"] == thread_id
        assert await client.news("thread/unarchived") == {"threadId": thread_id}
        assert len((await client.request("thread/list"))["data"]) == 1
        with pytest.raises(Refused) as refused:
            await client.request("thread/archive", threadId="nope")
        assert refused.value.code == -32600


@requirement("RPC-3")
async def test_a_read_for_a_call_is_scoped_to_what_that_call_gave(serve: Serve) -> None:
    meta = {"connector_id": "conn", "connector_name": "Conn", "ui": {"resourceUri": "ui://view"}}
    tool = {"name": "show", "annotations": READ_ONLY, "_meta": meta, "do": [{"text": "shown"}]}
    resources = [{"uri": "ui://view", "name": "view", "text": "<p>"}, {"uri": "ui://other", "name": "o", "text": "no"}]
    script = {"tools": [tool], "resources": resources}
    settings = {"apps": {"grants_origins": True}}
    asked = ScriptedModel(Call("mcp__apps__show", {}, "c1"), Say("done"))
    async with serve({"apps": script, "plain": script}, settings=settings, model=asked) as desk:
        client = await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        turn = await client.request("turn/start", threadId=thread_id, input=[{"type": "text", "text": "go"}])
        await client.completion(turn["turn"]["id"])
        read = {"threadId": thread_id, "server": "apps", "uri": "ui://view"}
        scoped = await client.request("mcpServer/resource/read", originCallId="c1", **read)
        assert (scoped["originCallId"], scoped["contents"][0]["text"]) == ("c1", "<p>")
        for wrong in ({"originCallId": "c9"}, {"originCallId": "c1", "uri": "ui://other"}):
            with pytest.raises(Refused) as refused:
                await client.request("mcpServer/resource/read", **{**read, **wrong})
            assert refused.value.code == -32603
        ordinary = await client.request("mcpServer/resource/read", **{**read, "server": "plain"}, originCallId="c1")
        assert ordinary["originCallId"] is None
        (item,) = [
            m["params"]["item"]
            for m in client.hear()
            if m.get("method") == "item/completed" and m["params"]["item"]["type"] == "mcpToolCall"
        ]
        assert item["appContext"]["connectorId"] == "conn"
        assert item["mcpAppResourceUri"] == "ui://view"


async def test_an_ephemeral_thread_is_in_no_list_and_forgotten_when_it_is_closed(tmp_path: Path) -> None:
    model = ScriptedModel(Say("one"), Say("two"), Say("three"))
    go = [{"type": "text", "text": "go"}]
    async with Host(store=tmp_path / "interlock.db", model=model) as host:
        async with app_server(host) as desk:
            client = await desk.connect()
            kept = (await client.request("thread/start"))["thread"]
            passing = (await client.request("thread/start", ephemeral=True))["thread"]
            assert (kept["ephemeral"], passing["ephemeral"]) == (False, True)
            for thread in (kept, passing):
                turn = (await client.request("turn/start", threadId=thread["id"], input=go))["turn"]["id"]
                assert (await client.completion(turn))["status"] == "completed"
            fork = (await client.request("thread/fork", threadId=kept["id"], ephemeral=True))["thread"]
            assert (fork["ephemeral"], len(fork["turns"])) == (True, 1)
            assert (await client.request("thread/read", threadId=passing["id"]))["thread"]["ephemeral"]
            for archived in (False, True):
                listed = (await client.request("thread/list", archived=archived))["data"]
                assert [thread["id"] for thread in listed] == ([] if archived else [kept["id"]])
            assert "thread/archived" not in client.methods()
            await host.loaded_threads[passing["id"]].close()
            await client.news("thread/closed", threadId=passing["id"])
        assert [record.thread_id for record in await host.threads()] == [kept["id"]]


async def test_what_a_killed_app_server_could_not_forget_the_next_one_does(tmp_path: Path) -> None:
    store = tmp_path / "interlock.db"
    async with anyio.create_task_group() as tasks:
        async with Host(store=store) as host:
            killed = Application(host, tasks, home="")  # it follows nobody, so it forgets nobody
            passing, kept, plain, other = [await host.start_thread() for _ in range(4)]
            for _ in range(2 * NEAR_THE_START):
                await plain.annotate("theirs", {})
            passing_fork = await host.fork_thread(plain.id)
            for thread in (passing, passing_fork, kept, other):
                await killed.make_ephemeral(thread)
            fork_of_passing = await host.fork_thread(passing.id)
            await kept.archive(False)
            for thread in (fork_of_passing, kept, plain):
                await thread.archive()
            forgotten = {passing.id, passing_fork.id}
            stays = {fork_of_passing.id, kept.id, plain.id, other.id}
        async with Host(store=store) as host, Host(store=store) as another:
            await another.resume_thread(other.id)
            assert {record.thread_id for record in await host.threads(archived=True)} == forgotten | stays
            await forget_left_behind(Application(host, tasks, home=""))
            assert {record.thread_id for record in await host.threads(archived=True)} == stays


async def test_an_app_server_looks_for_what_another_one_has_left(tmp_path: Path) -> None:
    store = tmp_path / "interlock.db"
    async with anyio.create_task_group() as tasks:
        async with Host(store=store) as host:
            await Application(host, tasks, home="").make_ephemeral(await host.start_thread())
        async with Host(store=store) as host:
            listening = Listening(place=read_place(f"unix://{tmp_path / 'socket'}"))
            tasks.start_soon(partial(app_server_of.serve, host, listening, home=""))
            with anyio.fail_after(PATIENCE):
                while await host.threads(archived=True):
                    await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
