"""Whole Threads on a store that fails in the middle of a turn: they stop before acting further, and are found whole."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock import Host, StorageFailed
from interlock.history.fold import fold
from interlock.testing import Call, Say, ScriptedModel, scripted_server
from interlock.vocabulary.conversation import ModelRequest
from interlock.vocabulary.event import TurnEnded
from tests.manifest import requirement
from tests.stores.postgres_server import PostgresServer

pytestmark = pytest.mark.anyio

BIG = "x" * 200_000
NOTE = "mcp__a__note"


def script(trace: Path) -> dict[str, Any]:
    note = {"name": "note", "annotations": {"readOnlyHint": True}, "do": [{"text": "noted"}]}
    return {"tools": [note], "trace": str(trace)}


def calls(trace: Path) -> list[str]:
    messages = [json.loads(line) for line in trace.read_text().splitlines()]
    return [m["params"]["arguments"]["n"] for m in messages if m.get("method") == "tools/call"]


@requirement("HIS-2", "LIF-4")
@pytest.mark.parametrize(
    ("pragma", "told"), [("max_page_count = 1", "the disk is full"), ("query_only = 1", "it is read-only")]
)
async def test_a_thread_whose_database_cannot_be_written_stops_before_it_acts_further(
    tmp_path: Path, pragma: str, told: str
) -> None:
    trace, place = tmp_path / "trace.jsonl", tmp_path / "interlock.db"

    def fail_now(_: ModelRequest) -> Call:
        assert host._opened is not None
        host._opened.store._writer._connection.execute(f"PRAGMA {pragma}")  # type: ignore[attr-defined] # SQLite's
        return Call(NOTE, {"n": "second", "big": BIG})

    model = ScriptedModel(Call(NOTE, {"n": "first"}), fail_now, Say("never"))
    async with Host({"a": scripted_server("a", script(trace), tmp_path)}, store=place, model=model, grace=20) as host:
        thread = await host.start_thread()
        result = await (await thread.start_turn("go")).finished()
        assert result.status == "failed"
        assert told in str(result.error)
        assert calls(trace) == ["first"]
        with pytest.raises(StorageFailed, match="open the thread again"):
            await thread.start_turn("again")
        assert model.remaining == 1
        stored = [event async for event in host.events(thread.id)]

    async with Host(store=place, model=ScriptedModel(Say("on we go"))) as host:
        thread = await host.resume_thread(thread.id)
        found = [event async for event in host.events(thread.id)]
        assert found[: len(stored)] == stored
        assert thread.state == fold(thread.id, found)
        assert thread.state.turns[0].status == "interrupted"
        assert (await (await thread.start_turn("still there?")).finished()).last_message == "on we go"


@requirement("HIS-2", "LIF-8")
async def test_a_thread_whose_store_failed_is_opened_again_by_whoever_resumes_it(tmp_path: Path) -> None:
    def fail_now(_: ModelRequest) -> Call:
        assert host._opened is not None
        host._opened.store._writer._connection.execute("PRAGMA query_only = 1")  # type: ignore[attr-defined] # SQLite's
        return Call(NOTE, {"big": BIG})

    model = ScriptedModel(fail_now, Say("on we go"))
    servers = {"a": scripted_server("a", script(tmp_path / "trace"), tmp_path)}
    async with Host(servers, store=tmp_path / "interlock.db", model=model, grace=20) as host:
        thread = await host.start_thread()
        assert (await (await thread.start_turn("go")).finished()).status == "failed"
        assert host._opened is not None
        host._opened.store._writer._connection.execute("PRAGMA query_only = 0")  # type: ignore[attr-defined] # as above
        again = await host.resume_thread(thread.id)
        assert thread.closed
        assert again is not thread
        assert again.state.turns[0].status == "interrupted"
        assert (await (await again.start_turn("still there?")).finished()).last_message == "on we go"


@requirement("HIS-2", "LIF-4")
async def test_a_turn_outlives_a_restart_of_its_postgresql(tmp_path: Path, postgres_server: PostgresServer) -> None:
    trace, place = tmp_path / "trace.jsonl", postgres_server.new_database()

    def restart(_: ModelRequest) -> Call:
        postgres_server.stop("immediate")
        postgres_server.start()
        return Call(NOTE, {"n": "second"})

    model = ScriptedModel(Call(NOTE, {"n": "first"}), restart, Say("done"))
    async with Host({"a": scripted_server("a", script(trace), tmp_path)}, store=place, model=model, grace=20) as host:
        thread = await host.start_thread()
        result = await (await thread.start_turn("go")).finished()
        assert (result.status, result.last_message) == ("completed", "done")
        assert calls(trace) == ["first", "second"]
        state = thread.state
    async with Host(store=place) as host:
        thread = await host.resume_thread(thread.id)
        assert thread.state == state
        events = [event.event async for event in host.events(thread.id)]
        assert sum(isinstance(event, TurnEnded) for event in events) == 1
