"""Approval, access and servers that a client sets for one thread."""

import json
from typing import Any

import pytest

from interlock.surfaces.rpc.overrides import overrides_of_config
from interlock.testing import Call, Say, ScriptedModel
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.overrides import ThreadOverrides
from interlock.vocabulary.policy import Policy
from tests.manifest import requirement
from tests.surfaces.rpc.conftest import READ_ONLY, Serve
from tests.surfaces.rpc.driver import Driver, Message, Refused

pytestmark = pytest.mark.anyio

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
FULL = {"type": "dangerFullAccess"}


def asking(schema: dict[str, Any]) -> dict[str, Any]:
    ask = {"ask": {"message": "Well?", "requestedSchema": schema}}
    return {"tools": [{"name": "ask", "annotations": READ_ONLY, "do": [ask]}]}


def calling(turns: int) -> ScriptedModel:
    return ScriptedModel(*[step for n in range(turns) for step in (Call("mcp__s__ask", {}, f"c{n}"), Say("done"))])


async def action_in_turn(client: Driver, thread_id: str, **settings: Any) -> str:
    """What the server was answered in a turn with these settings."""
    go = [{"type": "text", "text": "go"}]
    turn = (await client.request("turn/start", threadId=thread_id, input=go, **settings))["turn"]["id"]
    await client.completion(turn)
    (call,) = [
        message["params"]["item"]
        for message in client.messages
        if message.get("method") == "item/completed"
        and message["params"]["turnId"] == turn
        and message["params"]["item"]["type"] == "mcpToolCall"
    ]
    (answer,) = json.loads(call["result"]["content"][0]["text"])
    action: str = answer["action"]
    return action


@requirement("RPC-5")
async def test_a_policy_that_comes_with_a_turn_holds_for_it_and_the_later_ones_and_is_told(serve: Serve) -> None:
    asked: list[Message] = []

    def accept(request: Message) -> Message:
        asked.append(request)
        return {"result": {"action": "accept", "content": {"name": "Ada"}}}

    async with serve({"s": asking(FORM)}, model=calling(4)) as desk:
        client = await desk.connect()
        client.answers = accept
        started = await client.request("thread/start")
        assert (started["approvalPolicy"], started["sandbox"]["type"]) == ("on-request", "readOnly")
        thread_id, other = started["thread"]["id"], (await client.request("thread/start"))["thread"]["id"]

        assert await action_in_turn(client, thread_id) == "accept"
        assert await action_in_turn(client, thread_id, approvalPolicy="never") == "decline"
        assert await action_in_turn(client, thread_id) == "decline"
        assert len(asked) == 1
        assert (await client.news("thread/settings/updated"))["threadSettings"]["approvalPolicy"] == "never"
        assert client.methods().count("thread/settings/updated") == 1

        assert await action_in_turn(client, other) == "accept"


@requirement("RPC-5")
async def test_with_full_access_and_nobody_to_be_asked_an_empty_form_is_accepted(serve: Serve) -> None:
    async with serve({"s": asking(EMPTY)}, model=calling(3)) as desk:
        client = await desk.connect()
        full = await client.request("thread/start", approvalPolicy="never", sandbox="danger-full-access")
        assert (full["approvalPolicy"], full["sandbox"]) == ("never", FULL)
        assert await action_in_turn(client, full["thread"]["id"]) == "accept"

        partly = await client.request("thread/start", approvalPolicy="never", sandbox="read-only")
        assert await action_in_turn(client, partly["thread"]["id"]) == "decline"
        assert await action_in_turn(client, partly["thread"]["id"], sandboxPolicy=FULL) == "accept"


async def test_a_granular_policy_without_elicitations_declines_them(serve: Serve) -> None:
    granular = {"granular": {"mcp_elicitations": False, "rules": True, "sandbox_approval": True}}
    async with serve({"s": asking(FORM)}, model=calling(1)) as desk:
        client = await desk.connect()
        started = await client.request("thread/start", approvalPolicy=granular)
        assert started["approvalPolicy"] == granular
        assert await action_in_turn(client, started["thread"]["id"]) == "decline"


@pytest.mark.parametrize(
    "config",
    [{"mcp_servers.off.enabled": False}, {"mcp_servers": {"off": {"enabled": False}}, "unknown": [1]}],
)
async def test_a_server_that_is_switched_off_is_absent_from_that_thread_only(
    serve: Serve, config: dict[str, Any]
) -> None:
    model = ScriptedModel(Say("one"), Say("two"))
    scripts = {name: {"tools": [{"name": "look", "annotations": READ_ONLY}]} for name in ("off", "on")}
    async with serve(scripts, model=model) as desk:
        client = await desk.connect()
        for extra in ({"config": config}, {}):
            thread_id = (await client.request("thread/start", **extra))["thread"]["id"]
            said = [{"type": "text", "text": "go"}]
            turn = await client.request("turn/start", threadId=thread_id, input=said)
            await client.completion(turn["turn"]["id"])
        without, both = [{spec.name for spec in request.tools} for request in model.requests]
        assert "mcp__off__look" not in without
        assert "mcp__on__look" in without
        assert {"mcp__off__look", "mcp__on__look"} <= both


async def test_a_loaded_thread_that_is_resumed_and_a_fork_take_over_what_is_said(serve: Serve) -> None:
    async with serve(model=ScriptedModel(Say("one"))) as desk:
        client, other = await desk.connect(), await desk.connect()
        thread_id = (await client.request("thread/start"))["thread"]["id"]
        turn = await client.request("turn/start", threadId=thread_id, input=[{"type": "text", "text": "go"}])
        await client.completion(turn["turn"]["id"])
        resumed = await other.request("thread/resume", threadId=thread_id, approvalPolicy="never")
        assert resumed["approvalPolicy"] == "never"
        assert (await client.news("thread/settings/updated"))["threadSettings"]["approvalPolicy"] == "never"
        forked = await client.request("thread/fork", threadId=thread_id, config={"sandbox_mode": "danger-full-access"})
        assert (forked["approvalPolicy"], forked["sandbox"]) == ("on-request", FULL)


async def test_a_setting_of_a_wrong_kind_is_refused_and_starts_nothing(serve: Serve) -> None:
    async with serve() as desk:
        client = await desk.connect()
        for wrong in (
            {"approvalPolicy": "sometimes"},
            {"sandbox": "none"},
            {"config": {"mcp_servers.s.enabled": "no"}},
            {"config": {"approval_policy": 1}},
        ):
            with pytest.raises(Refused):
                await client.request("thread/start", **wrong)
        assert (await client.request("thread/loaded/list"))["data"] == []


async def test_three_keys_of_the_configuration_count_however_deep_the_others_are() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    config = {"mcp_servers": deep, "mcp_servers.s": {"enabled": True, "env": deep}, "approval_policy": "untrusted"}
    assert overrides_of_config(config) == ThreadOverrides(
        approval="on-request", mcp_elicitations=True, servers={"s": True}
    )
    with pytest.raises(InvalidRequest, match=r"mcp_servers\.s\.enabled"):
        overrides_of_config({"mcp_servers": {"s.enabled": 1}})


async def test_what_the_configuration_does_not_allow_is_refused_and_told(serve: Serve) -> None:
    policy = Policy(allowed_approvals=("on-request",), allowed_sandboxes=("read-only", "workspace-write"))
    async with serve({"s": asking(EMPTY)}, model=calling(1), policy=policy) as desk:
        client = await desk.connect()
        assert await client.request("configRequirements/read") == {
            "requirements": {
                "allowedApprovalPolicies": ["on-request"],
                "allowedSandboxModes": ["read-only", "workspace-write"],
            }
        }
        thread_id = (await client.request("thread/start", sandbox="workspace-write"))["thread"]["id"]
        said = {"threadId": thread_id, "input": [{"type": "text", "text": "go"}]}
        for method, params in (
            ("thread/start", {"approvalPolicy": "never"}),
            ("thread/start", {"config": {"sandbox_mode": "danger-full-access"}}),
            ("thread/resume", {"threadId": thread_id, "sandbox": "danger-full-access"}),
            ("turn/start", {**said, "approvalPolicy": "never"}),
            ("turn/start", {**said, "sandboxPolicy": FULL}),
        ):
            with pytest.raises(Refused, match="allowed_") as refused:
                await client.request(method, **params)
            assert refused.value.code == -32600
        assert (await client.request("thread/loaded/list"))["data"] == [thread_id]
        client.answers = lambda request: {"result": {"action": "decline"}}
        assert await action_in_turn(client, thread_id) == "decline"


def test_a_limit_that_comes_later_holds_for_what_was_chosen_before() -> None:
    chosen = ThreadOverrides(approval="never", full_access=True)
    assert chosen.policy(Policy()) == Policy(approval="never", full_access=True)
    limited = Policy(allowed_approvals=("on-request",), allowed_sandboxes=("read-only",))
    assert chosen.policy(limited) == limited
