"""An app reads what a call gave it: over real servers, rollbacks, compactions, restarts and changes of heart."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from interlock import NotPermitted, Policy, ServerConfig, ServerFailed
from interlock.history import journal as journals
from interlock.testing import Call, Say, ScriptedModel
from interlock.threads.thread import Thread
from interlock.vocabulary.policy import AppPolicy
from tests.host.conftest import OpenHost, answering
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

Servers = Callable[..., dict[str, ServerConfig]]

APPS, WEEK = "codex_apps", "ui://week"
META = {"connector_id": "calendar", "link_id": "work", "ui": {"resourceUri": WEEK, "visibility": ["model", "app"]}}


def apps(trace: Path | None = None, meta: dict[str, Any] = META, **settings: Any) -> dict[str, Any]:
    return {
        "tools": [answering("show", "shown", _meta=meta)],
        "resources": [{"uri": WEEK, "name": "week", "text": "<html>"}, {"uri": "ui://month", "name": "m", "text": "?"}],
        **({"trace": str(trace)} if trace is not None else {}),
        **settings,
    }


async def shown(thread: Thread, **arguments: Any) -> None:
    turn = await thread.start_turn(
        "show me", model=ScriptedModel(Call(f"mcp__{APPS}__show", arguments, "c1"), Say("x"))
    )
    await turn.finished()


async def refusal(thread: Thread, call_id: str = "c1", server: str = APPS, uri: str = WEEK) -> str:
    with pytest.raises(NotPermitted) as refused:
        await thread.read_resource_for_call(call_id, server, uri)
    return str(refused.value.facts["reason"])


def reads(trace: Path) -> list[dict[str, Any]]:
    messages = [json.loads(line) for line in trace.read_text().splitlines()]
    return [message["params"] for message in messages if message.get("method") == "resources/read"]


GRANTS = {"grants_origins": True}


@requirement("ORI-1", "ORI-5")
async def test_an_app_reads_its_resource_with_thread_connector_and_link_attached(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    async with open_host(servers(GRANTS, codex_apps=apps(trace))) as host:
        thread = await host.start_thread()
        await shown(thread, link_id="work")
        before = thread.state
        read = await thread.read_resource_for_call("c1", APPS, WEEK)

        assert read.contents[0].text == "<html>"
        (params,) = reads(trace)
        assert params["uri"] == WEEK
        assert params["_meta"]["threadId"] == thread.id
        assert params["_meta"]["x-codex-turn-metadata"] == {
            "mcp_request_meta": {"selected_connector_ids": ["calendar"], "link_id": "work"}
        }
        assert thread.state == before


@requirement("ORI-4")
async def test_calls_that_grant_nothing_are_told_apart(open_host: OpenHost, servers: Servers) -> None:
    async with open_host(servers(GRANTS, codex_apps=apps())) as host:
        thread = await host.start_thread()
        assert await refusal(thread) == "unknown_call"
        await shown(thread, link_id="home")
        assert await refusal(thread, server="mail") == "unknown_call"
        assert await refusal(thread, uri="ui://month") == "other_uri"
        assert await refusal(thread) == "ambiguous_account"


@requirement("ORI-1")
async def test_a_server_that_does_not_grant_origins_grants_none(open_host: OpenHost, servers: Servers) -> None:
    async with open_host(servers(codex_apps=apps())) as host:
        thread = await host.start_thread()
        await shown(thread)
        assert await refusal(thread) == "unknown_call"


@requirement("ORI-4", "ORI-6", "ORI-7")
async def test_what_a_call_gave_survives_compaction_and_restart_and_ends_with_its_turn(
    open_host: OpenHost, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "LONG_TAIL", 3)  # keep checkpoints of short threads too
    async with open_host(servers(GRANTS, codex_apps=apps()), model=ScriptedModel(Say("short"))) as host:
        thread = await host.start_thread()
        await shown(thread)
        await thread.compact()
        await thread.read_resource_for_call("c1", APPS, WEEK)
    async with open_host(servers(GRANTS, codex_apps=apps())) as host:
        thread = await host.resume_thread(thread.id)
        await thread.read_resource_for_call("c1", APPS, WEEK)
        fork = await host.fork_thread(thread.id)
        await thread.rollback(1)
        assert await refusal(thread) == "unknown_call"
        await fork.read_resource_for_call("c1", APPS, WEEK)
    async with open_host(servers(GRANTS, codex_apps=apps())) as host:
        assert await refusal(await host.resume_thread(thread.id)) == "unknown_call"


APP_ONLY = {**META, "ui": {"resourceUri": WEEK, "visibility": ["app"]}}
TODAY: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "an app-only tool counts": (apps(meta=APP_ONLY), {}, "allowed"),
    "the tool is gone": (apps(tools=[]), {}, "tool_unavailable"),
    "another connector": (apps(meta={**META, "connector_id": "mail"}), {}, "other_connector"),
    "another link": (apps(meta={**META, "link_id": "home"}), {}, "other_link"),
    "no origins any more": (apps(), {"grants_origins": False}, "other_connector"),
    "the tool is filtered out": (apps(), {"disabled_tools": ("show",)}, "tool_unavailable"),
    "the server is switched off": (apps(), {"enabled": False}, "tool_unavailable"),
}


@requirement("ORI-4")
@pytest.mark.parametrize("case", TODAY)
async def test_todays_catalogue_decides(open_host: OpenHost, servers: Servers, case: str) -> None:
    script, settings, expected = TODAY[case]
    async with open_host(servers(GRANTS, codex_apps=apps())) as host:
        thread = await host.start_thread()
        await shown(thread)
    async with open_host(servers({**GRANTS, **settings}, codex_apps=script)) as host:
        thread = await host.resume_thread(thread.id)
        if expected == "allowed":
            assert (await thread.read_resource_for_call("c1", APPS, WEEK)).contents[0].text == "<html>"
        else:
            assert await refusal(thread) == expected


@requirement("ORI-4")
async def test_todays_policy_decides_also_when_it_changes_while_the_host_is_open(
    open_host: OpenHost, servers: Servers
) -> None:
    configs = servers(GRANTS, codex_apps=apps())
    async with open_host(configs) as host:
        thread = await host.start_thread()
        await shown(thread)
        await thread.read_resource_for_call("c1", APPS, WEEK)
        await host.reload(configs, policy=Policy(apps={"calendar": AppPolicy(enabled=False)}))
        assert await refusal(thread) == "app_disabled"


@requirement("RPC-3")
async def test_an_ordinary_read_may_name_a_connector_and_nothing_more(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    async with open_host(servers(codex_apps=apps(trace))) as host:
        thread = await host.start_thread()
        await thread.read_resource(APPS, "ui://month", connector_id="calendar")
        await thread.read_resource(APPS, WEEK)
        named, plain = reads(trace)
        assert named["_meta"]["x-codex-turn-metadata"] == {"mcp_request_meta": {"selected_connector_ids": ["calendar"]}}
        assert "x-codex-turn-metadata" not in plain.get("_meta", {})


@requirement("ORI-5")
async def test_a_server_that_does_not_give_it_is_told_as_it_is(open_host: OpenHost, servers: Servers) -> None:
    async with open_host(servers(GRANTS, codex_apps=apps(resources=[]))) as host:
        thread = await host.start_thread()
        await shown(thread)
        with pytest.raises(ServerFailed):
            await thread.read_resource_for_call("c1", APPS, WEEK)


def damaged(checkpoint: dict[str, Any]) -> list[dict[str, Any]]:
    """The checkpoint beyond each of its bounds."""
    (origin,) = checkpoint["origins"]
    return [
        {**checkpoint, "origins": [{**origin, "call_id": str(number)} for number in range(65)]},
        {**checkpoint, "turns": [str(number) for number in range(65)]},
        {**checkpoint, "turns": ["t" * 1025]},
        {**checkpoint, "current_turn_id": "t" * 1025},
        {**checkpoint, "origins": [{**origin, "uri": "u" * 1025}]},
        {**checkpoint, "origins": [origin, {**origin, "call_id": "c2", "connector_id": " "}]},
        {**checkpoint, "origins": "none"},
    ]


@requirement("ORI-7")
@pytest.mark.parametrize("which", range(7))
async def test_a_stored_checkpoint_beyond_a_bound_grants_nothing_and_the_thread_opens(
    open_host: OpenHost, servers: Servers, tmp_path: Path, which: int
) -> None:
    configs = servers(GRANTS, codex_apps=apps())
    async with open_host(configs, model=ScriptedModel(Say("short"))) as host:
        thread = await host.start_thread()
        await shown(thread)
        await thread.compact()
    with closing(sqlite3.connect(tmp_path / "interlock.db", isolation_level=None)) as database:
        query = "SELECT sequence, payload FROM events WHERE kind = 'thread_compacted'"
        sequence, payload = database.execute(query).fetchone()
        event = json.loads(payload)
        event["origins"] = damaged(event["origins"])[which]
        database.execute("UPDATE events SET payload = ? WHERE sequence = ?", (json.dumps(event), sequence))
    async with open_host(configs) as host:
        thread = await host.resume_thread(thread.id)
        assert len(thread.state.turns) == 1
        assert await refusal(thread) == "unknown_call"
