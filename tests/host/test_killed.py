"""A host that is killed in the middle of a call, and the next one that finds its Thread."""

import json
import signal
import sys
from pathlib import Path

import anyio
import anyio.abc
import psutil  # type: ignore[import-untyped]  # it ships no types
import pytest

from interlock import StorageFailed
from interlock.testing import Call, Say, ScriptedModel
from interlock.vocabulary.conversation import OutputEntry
from interlock.vocabulary.event import CallEnded, CallStarted, StoredEvent
from interlock.vocabulary.item import McpToolCallItem
from tests.host.conftest import OpenHost
from tests.manifest import requirement

pytestmark = pytest.mark.anyio


async def first_line(process: anyio.abc.Process) -> dict[str, object]:
    assert process.stdout is not None
    text = b""
    with anyio.fail_after(60):
        while b"\n" not in text:
            text += await process.stdout.receive()
    parsed: dict[str, object] = json.loads(text)
    return parsed


@requirement("LIF-1", "HIS-1", "HIS-2", "HIS-7", "HIS-8", "TRN-1", "CON-5")
async def test_a_killed_hosts_thread_is_found_whole_and_can_go_on(open_host: OpenHost, tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).parent / "killed.py"), str(tmp_path / "interlock.db"), str(tmp_path)]
    process = await anyio.open_process(command, stderr=None)
    try:
        told = await first_line(process)
        thread_id = str(told["thread"])

        async with open_host({}) as host:
            with pytest.raises(StorageFailed, match=str(process.pid)):
                await host.resume_thread(thread_id)
            assert (await host.read_thread(thread_id)).open_turn is not None
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
        await process.aclose()

    with anyio.fail_after(60):
        while psutil.pid_exists(told["server"]):  # noqa: ASYNC110 -- the watchdog is another process
            await anyio.sleep(0.02)

    async with open_host({}, model=ScriptedModel(Call("mcp__a__quick"), Say("on we go"))) as host:
        thread = await host.resume_thread(thread_id)
        (turn,) = thread.state.turns
        assert (turn.status, thread.state.open_calls, thread.state.unanswered) == ("interrupted", (), ())
        quick, hang = [item for item in thread.items if isinstance(item, McpToolCallItem)]
        assert quick.status == "completed"
        assert hang.error is not None
        assert (hang.status, hang.error.code, hang.error.effect) == ("failed", "interrupted", "unknown")
        outputs = [entry for entry in thread.state.entries if isinstance(entry, OutputEntry)]
        assert [output.success for output in outputs] == [True, False]

        result = await (await thread.start_turn("still there?")).finished()
        assert result.last_message == "on we go"
        state = thread.state
        stored = [stored async for stored in host.events(thread_id)]

    calls = [stored.event for stored in stored if isinstance(stored.event, CallStarted | CallEnded)]
    assert sorted(type(call).__name__ + call.item.id for call in calls) == [
        "CallEndedcall-1",
        "CallEndedcall-2",
        "CallStartedcall-1",
        "CallStartedcall-2",
    ]
    assert all(isinstance(event, StoredEvent) for event in stored)
    async with open_host({}) as host:
        assert (await host.resume_thread(thread_id)).state == state
