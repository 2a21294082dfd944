"""What a client said of a thread's turns, after the thread was closed and taken up again."""

from pathlib import Path

import pytest

from interlock import Host
from interlock.surfaces.rpc.turn_settings import KEY, TurnSettings, annotation, kept_settings
from interlock.testing import Say, ScriptedModel
from tests.manifest import requirement
from tests.surfaces.rpc.driver import Driver, app_server

pytestmark = pytest.mark.anyio


async def turn(client: Driver, thread_id: str, **settings: object) -> None:
    said = [{"type": "text", "text": "go"}]
    begun = await client.request("turn/start", threadId=thread_id, input=said, **settings)
    await client.completion(begun["turn"]["id"])


@requirement("RPC-1")
async def test_instructions_hold_after_a_restart_and_in_a_fork_and_permissions_do_not(tmp_path: Path) -> None:
    store = tmp_path / "interlock.db"
    async with Host(store=store, model=ScriptedModel(Say("one"))) as host, app_server(host) as desk:
        client = await desk.connect()
        started = await client.request(
            "thread/start", baseInstructions="Be brief.", approvalPolicy="never", sandbox="danger-full-access"
        )
        thread_id = started["thread"]["id"]
        later = {"mode": "default", "settings": {"model": "", "developer_instructions": "Say please."}}
        await turn(client, thread_id, collaborationMode=later)

    model = ScriptedModel(Say("two"), Say("three"), Say("four"))
    async with Host(store=store, model=model) as host, app_server(host) as desk:
        client = await desk.connect()
        resumed = await client.request("thread/resume", threadId=thread_id)
        assert (resumed["approvalPolicy"], resumed["sandbox"]["type"]) == ("on-request", "readOnly")
        await turn(client, thread_id)
        fork = await client.request("thread/fork", threadId=thread_id, developerInstructions="Say thanks.")
        await turn(client, fork["thread"]["id"])
        await turn(client, thread_id)
    assert [request.instructions for request in model.requests] == [
        "Be brief.\n\nSay please.",
        "Be brief.\n\nSay thanks.",
        "Be brief.\n\nSay please.",
    ]


async def test_what_is_said_again_is_not_stored_again(tmp_path: Path) -> None:
    async with (
        Host(store=tmp_path / "interlock.db", model=ScriptedModel(Say("one"), Say("two"))) as host,
        app_server(host) as desk,
    ):
        client = await desk.connect()
        plain = (await client.request("thread/start"))["thread"]["id"]
        told = (await client.request("thread/start", baseInstructions="Be brief."))["thread"]["id"]
        for thread_id in (plain, told):
            await turn(client, thread_id)
            await client.request("thread/resume", threadId=thread_id, baseInstructions="Be brief.")
        kinds = {
            thread_id: [type(stored.event).__name__ async for stored in host.events(thread_id)]
            for thread_id in (plain, told)
        }
    assert [kinds[thread_id].count("ThreadAnnotated") for thread_id in (plain, told)] == [1, 1]


def test_a_model_is_kept_for_its_provider_only_and_what_is_odd_is_left_out() -> None:
    settings = TurnSettings(model="m", base_instructions="b", mode="plan")
    kept = {KEY: annotation(settings, "lab")}
    assert kept_settings(kept, "lab") == TurnSettings(model="m", base_instructions="b")
    assert kept_settings(kept, "other") == TurnSettings(base_instructions="b")
    assert kept_settings({KEY: {"model": 1, "provider": "lab", "x": "y"}}, "lab") == TurnSettings()
    assert kept_settings({}, "lab") == TurnSettings()
