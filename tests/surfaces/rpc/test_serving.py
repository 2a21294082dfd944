"""Threads, turns, servers and resources through the app server, every message checked against the schemas."""

import os
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from interlock.configuration import documents
from interlock.testing import Call, Gate, Say, ScriptedModel, Wait
from interlock.vocabulary.conversation import TextDelta
from tests.manifest import requirement
from tests.surfaces.rpc.conftest import READ_ONLY, Serve
from tests.surfaces.rpc.driver import Desk, Driver, Refused

pytestmark = pytest.mark.anyio

NOTES: dict[str, Any] = {
    "name": "notes",
    "tools": [
        {"name": "search", "annotations": READ_ONLY, "do": [{"progress": [1, 2, "half"]}, {"text": "found"}]},
        {"name": "broken", "annotations": READ_ONLY, "do": [{"error": {"code": -32001, "message": "x"}}]},
    ],
    "resources": [
        {"uri": "n://one", "name": "one", "mimeType": "text/plain", "text": "first"},
        {"uri": "n://two", "name": "two", "mimeType": "image/png", "blob": "AAE="},
    ],
    "templates": [{"uriTemplate": "n://{x}", "name": "any"}],
}


async def no_process_is_left(desk: Desk) -> None:
    """A server that was started for one request ends behind its answer."""
    with anyio.fail_after(60):
        while any(r.process_id for r in desk.server.application.host.reports()):  # noqa: ASYNC110 -- a process ends
            await anyio.sleep(0.01)


async def test_nothing_is_served_before_initialize_and_it_comes_once(serve: Serve) -> None:
    async with serve() as desk:
        client = await desk.connect(initialize=False)
        with pytest.raises(Refused) as early:
            await client.request("model/list")
        assert early.value.code == -32600
        result = await client.initialize()
        assert result["codexHome"] == "/home/of/interlock"
        with pytest.raises(Refused) as again:
            await client.initialize()
        assert again.value.code == -32600


async def test_an_unknown_method_is_named(serve: Serve) -> None:
    async with serve() as desk:
        client = await desk.connect()
        with pytest.raises(Refused, match="'review/start'") as refused:
            await client.request("review/start")
        assert refused.value.code == -32601


@requirement("RPC-4")
@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("model/list", [], "they must be an object"),
        ("thread/read", {}, "`threadId` is missing"),
        ("thread/read", {"threadId": 1}, "`threadId` must be a string"),
        ("thread/read", {"threadId": "x", "includeTurns": "y"}, "`includeTurns` must be true or false"),
        ("thread/rollback", {"threadId": "x", "numTurns": "y"}, "`numTurns` must be an integer"),
        ("turn/start", {"threadId": "x", "input": "hi"}, "`input` must be an array"),
        ("thread/start", {"config": 1}, "`config` must be an object"),
    ],
)
async def test_what_is_malformed_is_said_in_the_words_of_json(
    serve: Serve, method: str, params: Any, said: str
) -> None:
    async with serve() as desk:
        client = await desk.connect()
        with pytest.raises(Refused) as refused:
            await client.answer_to(client.begin(method, params))
        assert refused.value.code == -32600
        assert refused.value.message == f"the parameters of {method} are malformed: {said}"


@requirement("RPC-1")
async def test_a_turn_is_heard_from_its_start_to_its_end(serve: Serve) -> None:
    model = ScriptedModel([Call("mcp__notes__search", {"q": 1}, "c1")], Say("done", piece=2))
    async with serve({"notes": NOTES}, model=model) as desk:
        client = await desk.connect()
        started = await client.request("thread/start", cwd="/anywhere")
        thread_id = started["thread"]["id"]
        await client.news("mcpServer/startupStatus/updated", name="notes", status="ready")
        turn = (await client.request("turn/start", threadId=thread_id, input=[{"type": "text", "text": "go"}]))["turn"]
        assert turn["status"] == "inProgress"
        completed = await client.news("turn/completed", threadId=thread_id)

        assert completed["turn"]["id"] == turn["id"]
        assert completed["turn"]["status"] == "completed"
        assert [item["text"] for item in completed["turn"]["items"]] == ["done"]
        heard = client.methods()
        assert heard.index("turn/started") < heard.index("item/started") < heard.index("item/mcpToolCall/progress")
        deltas = [m["params"]["delta"] for m in client.messages if m.get("method") == "item/agentMessage/delta"]
        assert deltas == ["do", "ne"]
        lives = [
            (m["method"].rpartition("/")[2], m["params"]["item"]["type"], m["params"]["item"]["id"])
            for m in client.messages
            if m.get("method") in ("item/started", "item/completed")
        ]
        begun = [life[1:] for life in lives if life[0] == "started"]
        assert begun == [life[1:] for life in lives if life[0] == "completed"]
        assert [kind for kind, _ in begun] == ["userMessage", "mcpToolCall", "agentMessage"]


async def test_the_answer_to_turn_start_comes_before_the_news_of_the_turn(serve: Serve) -> None:
    async with serve(model=ScriptedModel(Say("done"))) as desk:
        client = await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        identity = client.begin("turn/start", {"threadId": thread_id, "input": [{"type": "text", "text": "go"}]})
        await client.news("turn/completed")
        places = {m.get("id") or m.get("method"): place for place, m in reversed(list(enumerate(client.messages)))}
        assert places[identity] < places["turn/started"]


@requirement("RPC-1", "HIS-5")
async def test_a_thread_is_read_back_as_it_was_heard_also_after_a_restart(serve: Serve) -> None:
    model = ScriptedModel([Call("mcp__notes__search", {"q": 1}, "c1")], Say("done"))
    async with serve({"notes": NOTES}, model=model) as desk:
        client = await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        await client.request("turn/start", threadId=thread_id, input=[{"type": "text", "text": "go"}])
        await client.news("turn/completed")
        live = await client.request("thread/read", threadId=thread_id, includeTurns=True)
        completed = [m["params"]["item"] for m in client.messages if m.get("method") == "item/completed"]
        assert live["thread"]["turns"][0]["items"] == completed
        assert live["thread"]["status"] == {"type": "idle"}
    async with serve() as desk:
        client = await desk.connect()
        stored = await client.request("thread/read", threadId=thread_id, includeTurns=True)
        assert stored["thread"]["status"] == {"type": "notLoaded"}
        assert stored["thread"]["turns"] == live["thread"]["turns"]
        listed = await client.request("thread/list")
        assert [thread["id"] for thread in listed["data"]] == [thread_id]
        assert listed["data"][0]["preview"] == "go"
        assert (await client.request("thread/loaded/list"))["data"] == []
        resumed = await client.request("thread/resume", threadId=thread_id)
        assert resumed["thread"]["turns"] == live["thread"]["turns"]
        assert (await client.request("thread/loaded/list"))["data"] == [thread_id]


async def test_turns_and_items_come_page_by_page(serve: Serve) -> None:
    model = ScriptedModel(*[Say(f"answer {n}") for n in range(5)])
    async with serve(model=model) as desk:
        client = await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        ids = []
        for number in range(5):
            turn = await client.request(
                "turn/start", threadId=thread_id, input=[{"type": "text", "text": f"say {number}"}]
            )
            ids.append(turn["turn"]["id"])
            await client.until(lambda m: m.get("method") == "turn/completed" and m["params"]["turn"]["id"] == ids[-1])
        first = await client.request("thread/turns/list", threadId=thread_id, limit=2)
        assert [turn["id"] for turn in first["data"]] == ids[:2:-1]
        assert [item["type"] for item in first["data"][0]["items"]] == ["userMessage", "agentMessage"]
        rest = await client.request("thread/turns/list", threadId=thread_id, cursor=first["nextCursor"])
        assert [turn["id"] for turn in rest["data"]] == ids[2::-1]
        back = await client.request(
            "thread/turns/list", threadId=thread_id, cursor=rest["backwardsCursor"], sortDirection="asc"
        )
        assert [turn["id"] for turn in back["data"]] == ids[2:]
        items = await client.request("thread/items/list", threadId=thread_id, turnId=ids[1])
        assert [entry["item"]["type"] for entry in items["data"]] == ["userMessage", "agentMessage"]
        assert {entry["turnId"] for entry in items["data"]} == {ids[1]}
        with pytest.raises(Refused, match="cursor"):
            await client.request("thread/turns/list", threadId=thread_id, cursor="bogus")


async def test_an_interrupted_turn_ends_once_and_the_next_one_runs(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([Wait(gate)], Say("later"))
    async with serve(model=model) as desk:
        client = await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        said = [{"type": "text", "text": "go"}]
        turn = (await client.request("turn/start", threadId=thread_id, input=said))["turn"]
        with pytest.raises(Refused, match="is running"):
            await client.request("turn/start", threadId=thread_id, input=said)
        with pytest.raises(Refused):
            await client.request("turn/interrupt", threadId=thread_id, turnId="another")
        assert await client.request("turn/interrupt", threadId=thread_id, turnId=turn["id"]) == {}
        ended = await client.news("turn/completed")
        assert ended["turn"]["status"] == "interrupted"
        await client.request("turn/start", threadId=thread_id, input=said)
        await client.until(
            lambda m: m.get("method") == "turn/completed" and m["params"]["turn"]["status"] == "completed"
        )


async def test_a_message_that_was_cut_off_ends_with_what_was_heard_of_it(serve: Serve) -> None:
    gate = Gate()

    class Halting(ScriptedModel):
        async def sample(self, request: Any) -> Any:
            yield TextDelta(text="half")
            await gate.wait()

    async with serve(model=Halting()) as desk:
        client = await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        turn = await client.request("turn/start", threadId=thread_id, input=[{"type": "text", "text": "go"}])
        delta = await client.news("item/agentMessage/delta")
        await client.request("turn/interrupt", threadId=thread_id, turnId=turn["turn"]["id"])
        assert (await client.completion(turn["turn"]["id"]))["status"] == "interrupted"
        ended = [m["params"]["item"] for m in client.messages if m.get("method") == "item/completed"]
        assert (ended[-1]["id"], ended[-1]["text"]) == (delta["itemId"], "half")


async def test_a_failed_turn_says_why_and_ends(serve: Serve) -> None:
    async with serve(model=ScriptedModel()) as desk:
        client = await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        await client.request("turn/start", threadId=thread_id, input=[{"type": "text", "text": "go"}])
        ended = await client.news("turn/completed")
        error = await client.news("error")
        assert ended["turn"]["status"] == "failed"
        assert ended["turn"]["error"] == error["error"]


@requirement("RPC-2", "RPC-4")
async def test_a_resource_is_read_with_a_thread_and_without_one_and_leaves_no_trace(serve: Serve) -> None:
    async with serve({"notes": NOTES}) as desk:
        client = await desk.connect()
        read = {"server": "notes", "uri": "n://one"}
        without = await client.request("mcpServer/resource/read", **read)
        content = {"uri": "n://one", "mimeType": "text/plain", "text": "first"}
        assert without == {"contents": [content], "originCallId": None}
        assert await client.request("mcp/resource/read", **read) == without
        await no_process_is_left(desk)
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        before = (await client.request("thread/read", threadId=thread_id, includeTurns=True))["thread"]
        assert await client.request("mcpServer/resource/read", threadId=thread_id, **read) == without
        blob = await client.request("mcpServer/resource/read", threadId=thread_id, server="notes", uri="n://two")
        assert blob["contents"] == [{"uri": "n://two", "mimeType": "image/png", "blob": "AAE="}]
        assert (await client.request("thread/read", threadId=thread_id, includeTurns=True))["thread"] == before


@requirement("RPC-3", "RPC-4")
@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"server": "notes"}, -32600),
        ({"server": 5, "uri": "n://one"}, -32600),
        ({"server": "notes", "uri": "n://one", "originCallId": "c1"}, -32600),
        ({"server": "notes", "uri": "n://one", "threadId": "not-a-thread"}, -32600),
        ({"server": "notes", "uri": "n://one", "threadId": "01a22eaf-0000-7000-8000-000000000000"}, -32600),
        ({"server": "nope", "uri": "n://one"}, -32603),
        ({"server": " notes ", "uri": "n://one"}, -32603),
        ({"server": "notes", "uri": "n://none"}, -32603),
        ({"server": "notes", "uri": " n://one"}, -32603),
    ],
)
async def test_a_read_that_cannot_be_served_has_one_error_shape(
    serve: Serve, params: dict[str, Any], code: int
) -> None:
    async with serve({"notes": NOTES}) as desk:
        client = await desk.connect()
        with pytest.raises(Refused) as refused:
            await client.request("mcpServer/resource/read", **params)
        assert refused.value.code == code
        assert refused.value.message


async def test_a_slow_read_holds_nobody_up(serve: Serve, tmp_path: Any) -> None:
    gate = tmp_path / "gate"
    slow = {"resources": [{"uri": "s://one", "name": "one", "text": "x", "do": [{"wait_for_file": str(gate)}]}]}
    async with serve({"notes": NOTES, "slow": slow}) as desk:
        client = await desk.connect()
        waiting = client.begin("mcpServer/resource/read", {"server": "slow", "uri": "s://one"})
        await client.request("mcpServer/resource/read", server="notes", uri="n://one")
        assert not any(message.get("id") == waiting for message in client.hear())
        gate.touch()
        assert (await client.answer_to(waiting))["contents"][0]["text"] == "x"


async def test_a_direct_call_gives_the_result_as_it_is(serve: Serve) -> None:
    async with serve({"notes": NOTES}, settings={"notes": {"disabled_tools": ("off",)}}) as desk:
        client = await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        call = {"threadId": thread_id, "server": "notes"}
        result = await client.request("mcpServer/tool/call", tool="search", arguments={"a": 1}, **call)
        assert result == {"content": [{"type": "text", "text": "found"}]}
        for tool, arguments, code in (("off", {}, -32603), ("broken", {}, -32603), ("search", [1], -32603)):
            with pytest.raises(Refused) as refused:
                await client.request("mcpServer/tool/call", tool=tool, arguments=arguments, **call)
            assert refused.value.code == code
        with pytest.raises(Refused) as unknown:
            await client.request("mcpServer/tool/call", threadId="nope", server="notes", tool="search")
        assert unknown.value.code == -32600


async def test_servers_are_listed_with_what_they_offer(serve: Serve) -> None:
    settings = {"off": {"enabled": False}, "notes": {"disabled_tools": ("broken",)}}
    async with serve({"notes": NOTES, "off": {}, "zed": {"tools": []}}, settings=settings) as desk:
        client = await desk.connect()
        page = await client.request("mcpServerStatus/list", limit=2)
        notes, off = page["data"]
        assert (notes["name"], off["name"], page["nextCursor"]) == ("notes", "off", "2")
        assert notes["runtimeStatus"] is None
        assert notes["serverInfo"]["name"] == "notes"
        assert list(notes["tools"]) == ["search"]
        assert [resource["uri"] for resource in notes["resources"]] == ["n://one", "n://two"]
        assert [template["uriTemplate"] for template in notes["resourceTemplates"]] == ["n://{x}"]
        rest = await client.request("mcpServerStatus/list", cursor="2", detail="toolsAndAuthOnly")
        assert [server["name"] for server in rest["data"]] == ["zed"]
        assert rest["nextCursor"] is None
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        of_thread = await client.request("mcpServerStatus/list", threadId=thread_id)
        assert [server["runtimeStatus"] for server in of_thread["data"]] == ["connected", "disabled", "connected"]
        for cursor in ("bogus", "", "-1", "99"):
            with pytest.raises(Refused, match="cursor"):
                await client.request("mcpServerStatus/list", cursor=cursor)


async def test_what_a_client_asks_about_the_host_has_an_answer(serve: Serve) -> None:
    async with serve({"notes": NOTES}) as desk:
        client = await desk.connect()
        config = (await client.request("config/read", includeLayers=True))["config"]
        assert set(config["mcp_servers"]) == {"notes"}
        assert (await client.request("model/list"))["data"] == []
        assert (await client.request("account/read"))["account"] is None
        assert (await client.request("skills/list", cwds=["/a"]))["data"][0]["skills"] == []
        assert (await client.request("hooks/list", cwds=["/a"]))["data"][0]["hooks"] == []
        assert (await client.request("configRequirements/read")) == {"requirements": None}
        assert (await client.request("config/mcpServer/reload")) == {}
        with pytest.raises(Refused, match="OAuth"):
            await client.request("mcpServer/oauth/login", name="notes")


@requirement("RPC-6")
async def test_two_connections_hear_only_of_their_own_threads(serve: Serve) -> None:
    model = ScriptedModel(Say("one"), Say("two"))
    async with serve(model=model) as desk:
        first, second = await desk.connect(), await desk.connect(versioned=True)
        ours = (await first.request("thread/start"))["thread"]["id"]
        theirs = (await second.request("thread/start"))["thread"]["id"]
        await first.request("turn/start", threadId=ours, input=[{"type": "text", "text": "go"}])
        await first.news("turn/completed")
        await second.request("turn/start", threadId=theirs, input=[{"type": "text", "text": "go"}])
        await second.news("turn/completed")
        for client, own, other in ((first, ours, theirs), (second, theirs, ours)):
            said = str(client.hear())
            assert own in said
            assert other not in said


async def test_a_client_that_left_a_thread_hears_no_more_of_it(serve: Serve) -> None:
    async with serve(model=ScriptedModel(Say("one"))) as desk:
        client, other = await desk.connect(), await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        assert await client.request("thread/unsubscribe", threadId=thread_id) == {"status": "unsubscribed"}
        assert await client.request("thread/unsubscribe", threadId=thread_id) == {"status": "notSubscribed"}
        assert await client.request("thread/unsubscribe", threadId="nope") == {"status": "notLoaded"}
        await other.request("turn/start", threadId=thread_id, input=[{"type": "text", "text": "go"}])
        await other.news("turn/completed")
        assert "turn/started" not in client.methods()


async def test_unwanted_notifications_are_not_sent(serve: Serve) -> None:
    async with serve(model=ScriptedModel(Say("one"))) as desk:
        client = await desk.connect(initialize=False)
        await client.initialize(optOutNotificationMethods=["turn/started"])
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        await client.request("turn/start", threadId=thread_id, input=[{"type": "text", "text": "go"}])
        await client.news("turn/completed")
        assert "turn/started" not in client.methods()


async def test_a_thread_gets_another_name(serve: Serve) -> None:
    async with serve() as desk:
        client = await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        assert await client.request("thread/name/set", threadId=thread_id, name="a talk") == {}
        assert (await client.news("thread/name/updated"))["threadName"] == "a talk"
        with pytest.raises(Refused):
            await client.request("thread/name/set", threadId=thread_id, name="  ")


async def test_requests_about_one_thread_are_served_in_the_order_in_which_they_came(serve: Serve) -> None:
    async with serve(model=ScriptedModel(Say("done"))) as desk:
        client = await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
    async with serve(model=ScriptedModel(Say("done"))) as desk:
        client = await desk.connect(half_closes=True)
        client.begin("thread/resume", {"threadId": thread_id})
        client.begin("turn/start", {"threadId": thread_id, "input": [{"type": "text", "text": "go"}]})
        client.end()
        await client.news("turn/completed")
        with anyio.fail_after(60):
            while client.transport.closed is False:
                await client.transport.news.wait()


@requirement("RPC-1")
async def test_a_running_turn_is_told_more(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([Wait(gate), Say("one")], Say("two"))
    async with serve(model=model) as desk:
        client = await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        said = [{"type": "text", "text": "go"}]
        turn = (await client.request("turn/start", threadId=thread_id, input=said))["turn"]
        more = {"threadId": thread_id, "input": [{"type": "text", "text": "and more"}]}
        with pytest.raises(Refused):
            await client.request("turn/steer", expectedTurnId="another", **more)
        assert await client.request("turn/steer", expectedTurnId=turn["id"], **more) == {"turnId": turn["id"]}
        gate.open()
        await client.completion(turn["id"])
        read = await client.request("thread/read", threadId=thread_id, includeTurns=True)
        said_and_answered = [item["type"] for item in read["thread"]["turns"][0]["items"]]
        assert said_and_answered == ["userMessage", "agentMessage", "userMessage", "agentMessage"]
        with pytest.raises(Refused):
            await client.request("turn/steer", expectedTurnId=turn["id"], **more)


async def test_settings_of_a_turn_hold_for_the_later_ones_and_are_told(serve: Serve) -> None:
    model = ScriptedModel(Say("one"), Say("two"))
    async with serve(model=model) as desk:
        client = await desk.connect()
        started = await client.request("thread/start", baseInstructions="Be brief.", developerInstructions="Be kind.")
        thread_id = started["thread"]["id"]
        mode = {"mode": "default", "settings": {"model": "", "developer_instructions": "Be bold."}}
        for extra in ({}, {"collaborationMode": mode}):
            said = [{"type": "text", "text": "go"}]
            turn = await client.request("turn/start", threadId=thread_id, input=said, **extra)
            await client.completion(turn["turn"]["id"])
        assert [request.instructions for request in model.requests] == [
            "Be brief.\n\nBe kind.",
            "Be brief.\n\nBe bold.",
        ]
        settings = (await client.news("thread/settings/updated"))["threadSettings"]
        assert settings["collaborationMode"]["settings"]["developer_instructions"] == "Be bold."
        with pytest.raises(Refused, match="not in use"):
            await client.request("thread/start", modelProvider="another")


@requirement("MEM-2")
async def test_a_plan_is_an_item_of_its_own_and_plan_mode_holds_for_later_turns(serve: Serve) -> None:
    planned = "Well\n<proposed_plan>\n1. do it\n</proposed_plan>\nso"
    async with serve(model=ScriptedModel(Say(planned, piece=4), Say(planned, piece=4))) as desk:
        client = await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        mode = {"mode": "plan", "settings": {"model": ""}}
        for extra in ({"collaborationMode": mode}, {}):
            said = [{"type": "text", "text": "go"}]
            turn = (await client.request("turn/start", threadId=thread_id, input=said, **extra))["turn"]["id"]
            await client.completion(turn)
            of_turn = [m for m in client.messages if m.get("params", {}).get("turnId") == turn]
            text = [m["params"]["delta"] for m in of_turn if m["method"] == "item/plan/delta"]
            assert "".join(text) == "1. do it\n"
            items = [m["params"]["item"] for m in of_turn if m["method"] == "item/completed"]
            assert [item["text"] for item in items if item["type"] == "plan"] == ["1. do it\n"]
            assert [item["text"] for item in items if item["type"] == "agentMessage"] == ["Well\nso"]
            started = [m["params"]["item"]["type"] for m in of_turn if m["method"] == "item/started"]
            assert started.count("plan") == 1
        settings = (await client.news("thread/settings/updated"))["threadSettings"]
        assert settings["collaborationMode"]["mode"] == "plan"
        await found_again(client, thread_id)


async def found_again(client: Driver, thread_id: str) -> None:
    """Every item whose end was told is read later as it was told, by every way of reading, in pages of one too."""
    told = [m["params"] for m in client.hear() if m.get("method") == "item/completed"]
    expected = {(p["turnId"], p["item"]["id"]): p["item"] for p in told if p["threadId"] == thread_id}
    thread = (await client.request("thread/read", threadId=thread_id, includeTurns=True))["thread"]
    assert {(turn["id"], item["id"]): item for turn in thread["turns"] for item in turn["items"]} == expected
    listed, cursor = list[Any](), None
    while True:
        page = await client.request("thread/items/list", threadId=thread_id, limit=1, cursor=cursor)
        listed += [((entry["turnId"], entry["item"]["id"]), entry["item"]) for entry in page["data"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert len(listed) == len(expected)
    assert dict(listed) == expected


class Hesitating:
    """A model that says half of a plan and of a message, and then waits for ever."""

    name, provider = "half", "scripted"

    def __init__(self) -> None:
        self.said = anyio.Event()

    async def sample(self, request: Any) -> AsyncIterator[Any]:
        yield TextDelta(text="First\n<proposed_plan>\n1. begin\n</proposed_plan>\nand th")
        self.said.set()
        await anyio.sleep_forever()


@requirement("MEM-2", "HIS-1")
@pytest.mark.parametrize("plan", [True, False])
async def test_what_was_heard_of_a_message_whose_turn_is_cut_off_is_found_again(serve: Serve, plan: bool) -> None:
    model = Hesitating()
    async with serve(model=model) as desk:
        client = await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        mode = {"mode": "plan" if plan else "default", "settings": {"model": ""}}
        said = [{"type": "text", "text": "go"}]
        start = await client.request("turn/start", threadId=thread_id, input=said, collaborationMode=mode)
        turn = start["turn"]["id"]
        await model.said.wait()
        await client.request("turn/interrupt", threadId=thread_id, turnId=turn)
        assert (await client.completion(turn))["status"] == "interrupted"
        ended = [m["params"]["item"] for m in client.messages if m.get("method") == "item/completed"]
        heard = "".join(m["params"]["delta"] for m in client.messages if m.get("method") == "item/agentMessage/delta")
        (message,) = [item for item in ended if item["type"] == "agentMessage"]
        assert message["text"] == heard
        assert heard.endswith("and th")
        assert [item["text"] for item in ended if item["type"] == "plan"] == (["1. begin\n"] if plan else [])
        await found_again(client, thread_id)
        assert desk.server.application.loaded(thread_id).thread.state.entries[1:] == ()


PICTURE = {"type": "image", "url": "data:image/png;base64,AAE="}


@pytest.mark.parametrize(
    ("item", "heard"),
    [
        (
            {"type": "image", "url": "data:image/png;base64,AAE="},
            {"type": "image", "url": "data:image/png;base64,AAE="},
        ),
        ({"type": "audio", "url": "data:audio/wav,ab"}, {"type": "audio", "url": "data:audio/wav;base64,YWI="}),
        ({"type": "localImage", "path": "FILE"}, PICTURE),
        ({"type": "image", "url": "https://example.com/x.png"}, None),
        ({"type": "image", "url": "data:image/png;base64,!"}, None),
        ({"type": "localImage", "path": "/nowhere.png"}, None),
        ({"type": "localImage", "path": "/dev/zero"}, None),
        ({"type": "localAudio", "path": "PIPE"}, None),
        ({"type": "unheard"}, None),
    ],
)
async def test_a_turn_takes_images_and_sounds_and_opens_no_address(
    serve: Serve,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    item: dict[str, Any],
    heard: dict[str, Any] | None,
) -> None:
    monkeypatch.setattr(documents, "PIPE_PATIENCE", 0.01)
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it
    file = tmp_path / "picture.png"
    file.write_bytes(b"\x00\x01")
    places = {"FILE": str(file), "PIPE": str(tmp_path / "pipe")}
    item = {**item, "path": places[item["path"]]} if item.get("path") in places else item
    async with serve(model=ScriptedModel(Say("one"))) as desk:
        client = await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        if heard is None:
            with pytest.raises(Refused) as refused:
                await client.request("turn/start", threadId=thread_id, input=[item])
            assert refused.value.code == -32600
            return
        turn = await client.request("turn/start", threadId=thread_id, input=[item])
        await client.completion(turn["turn"]["id"])
        said = await client.until(lambda m: m.get("method") == "item/started")
        assert said["params"]["item"]["content"] == [heard]
