"""Closing a Thread while its calls run: each comes back as cancelled, and is stored so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from interlock import CallResult, Host, ServerConfig
from interlock.stores.sqlite import SqliteStore
from interlock.vocabulary.event import CallEnded, CallStarted, StoredEvent
from tests.host.conftest import READ_ONLY, OpenHost
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

Servers = Callable[..., dict[str, ServerConfig]]
SILENT = {"name": "silent", "annotations": READ_ONLY, "do": [{"silence": True}]}


@requirement("LIF-1", "LIF-3", "CON-5")
async def test_closing_a_thread_cancels_its_calls_and_does_not_wait_for_their_servers(
    open_host: OpenHost, servers: Servers
) -> None:
    results: list[CallResult] = []
    async with open_host(servers(docs={"tools": [SILENT, {"name": "write"}]}), approvals="allow") as host:
        thread = await host.start_thread()

        async def call() -> None:
            async with thread.step() as step, anyio.create_task_group() as calls:

                async def one(call_id: str, name: str) -> None:
                    results.append(await step.call(call_id, name))

                calls.start_soon(one, "running", "mcp__docs__silent")
                calls.start_soon(one, "waiting", "mcp__docs__write")

        events = thread.events()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            async for stored in events:
                assert isinstance(stored, StoredEvent)
                if isinstance(stored.event, CallStarted) and stored.event.item.id == "waiting":
                    break
            await events.aclose()
            await thread.close()

        ends = [stored.event async for stored in host.events(thread.id) if isinstance(stored.event, CallEnded)]
    assert {result.item.id: result.item.error and result.item.error.code for result in results} == {
        "running": "cancelled",
        "waiting": "cancelled",
    }
    assert {end.item.id: end.item.error and end.item.error.code for end in ends} == {
        "running": "cancelled",
        "waiting": "cancelled",
    }
    assert next(end.effect for end in ends if end.item.id == "waiting") == "none"


@requirement("TRN-1", "LIF-1")
async def test_a_step_that_ends_while_its_thread_closes_ends_its_turn_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Over a store that takes a while, as a database does: both find the turn open."""
    append = SqliteStore.append

    async def slowly(store: SqliteStore, *where: Any, **when: Any) -> Any:
        with anyio.CancelScope(shield=True):
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            return await append(store, *where, **when)

    async with Host(store=tmp_path / "interlock.db") as host:
        thread = await host.start_thread()
        monkeypatch.setattr(SqliteStore, "append", slowly)
        async with anyio.create_task_group() as tasks, thread.step():
            tasks.start_soon(thread.close)
            while not thread.closing:
                await anyio.lowlevel.checkpoint()
        state = await host.read_thread(thread.id)
        assert [turn.status for turn in state.turns] == ["completed"]
    assert caplog.records == []
