"""A Host from its opening to its end: Threads, servers, turns, resuming, closing."""

import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from interlock import Host, InvalidRequest, NotPermitted, ServerConfig, ServerFailed, StdioTransport, Thread
from interlock.history.shown import ShownTools
from interlock.testing import Call, Gate, Say, ScriptedModel, Wait, scripted_server
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    StepCaptured,
    StoredEvent,
    ThreadStarted,
    TurnEnded,
    TurnStarted,
)
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.notice import LaggedNotice, Notice, ProgressNotice, ServerNotice
from interlock.vocabulary.server import ServerStatus
from tests.host.conftest import READ_ONLY, OpenHost, answering
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

Servers = Callable[..., dict[str, ServerConfig]]


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for something that only another process can bring about."""
    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110 -- nothing in this process could set an event
            await anyio.sleep(0.01)


@requirement("LIF-1", "LIF-4", "TRN-1", "HIS-1")
async def test_a_turn_over_real_servers_leaves_its_facts_in_the_store(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    configs = servers(notes={"tools": [answering("search", "found")]})
    configs["time"] = ServerConfig(
        name="time",
        transport=StdioTransport(command=sys.executable, args=("-m", "mcp_server_time")),
        required=True,
        startup_timeout=50.0,
    )
    model = ScriptedModel(
        [Call("mcp__notes__search"), Call("mcp__time__get_current_time", {"timezone": "UTC"})], Say("done")
    )
    async with open_host(configs, model=model) as host:
        thread = await host.start_thread(name="a talk")
        turn = await thread.start_turn("what time is it?")

        assert (await turn.finished()).last_message == "done"

        search, time = [item for item in thread.items if isinstance(item, McpToolCallItem)]
        assert (search.server, search.tool, search.status, search.read_only_hint) == (
            "notes",
            "search",
            "completed",
            True,
        )
        assert time.result is not None
        assert time.result.structured_content["timezone"] == "UTC"
        assert isinstance(time.duration, int)
        state = thread.state

    async with open_host({}) as host:
        assert await host.read_thread(thread.id) == state
        (record,) = await host.threads()
        assert (record.name, record.preview, record.turns) == ("a talk", "what time is it?", 1)
        assert dict(host.loaded_threads) == {}


@requirement("CON-2")
async def test_a_required_server_that_cannot_start_refuses_the_thread_and_nothing_is_stored(
    open_host: OpenHost, servers: Servers
) -> None:
    configs = servers(good={})
    for name in ("first", "second"):
        transport = StdioTransport(command=sys.executable, args=("-c", "raise SystemExit(3)"))
        configs[name] = ServerConfig(name=name, transport=transport, required=True)
    async with open_host(configs) as host:
        with pytest.raises(ServerFailed) as failed:
            await host.start_thread()

        assert failed.value.message.startswith("could not start the required servers first, second: ")
        assert await host.threads() == ()
        assert dict(host.loaded_threads) == {}


@requirement("CON-3", "CON-1", "CAT-6")
async def test_a_step_waits_for_slow_servers_one_grace_long_and_names_them_as_pending(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    slow = {"tools": [answering("two", "2")], "on": {"start": [{"wait_for_file": str(release)}]}}
    configs = {
        **servers({"required": True}, ready={"tools": [answering("one", "1")]}),
        **servers({"startup_timeout": 60.0}, slow=slow),
    }
    async with open_host(configs, grace=0.5) as host:
        thread = await host.start_thread()
        async with thread.step() as first:
            assert first.pending == ("slow",)
            assert "mcp__ready__one" in [spec.name for spec in first.tools]

            release.touch()
            await until(lambda: thread.snapshot.catalog.get("mcp__slow__two") is not None)
            early = await first.call("early", "mcp__slow__two")
            assert "there is no tool 'mcp__slow__two' in this step" in early.text

        async with thread.step() as second:
            assert second.pending == ()
            assert (await second.call("late", "mcp__slow__two")).text == "2"


@requirement("CAT-6")
async def test_a_refresh_in_a_turn_is_seen_by_the_next_step_and_not_by_the_running_one(
    open_host: OpenHost, servers: Servers
) -> None:
    new = answering("new", "new answer")
    swap = {
        "name": "swap",
        "annotations": READ_ONLY,
        "do": [
            {"set": {"tools": [new]}},
            {"notify": {"method": "notifications/tools/list_changed", "params": {}}},
            {"text": "swapped"},
        ],
    }
    gate = Gate()
    async with open_host(servers(a={"tools": [swap], "eras": ["handshake"]})) as host:
        thread = await host.start_thread()
        model = ScriptedModel(
            [Call("mcp__a__swap"), Call("mcp__a__new")], [Wait(gate), Say("?")], Call("mcp__a__new"), Say("ok")
        )
        turn = await thread.start_turn("go", model=model)
        await gate.reached()
        await until(lambda: thread.snapshot.catalog.get("mcp__a__new") is not None)
        gate.open()
        await turn.finished()
        await (await thread.start_turn("again", model=model)).finished()

        shown = [[spec.name for spec in request.tools if "mcp__a" in spec.name] for request in model.requests]
        assert shown[0] == ["mcp__a__swap"]
        assert shown[2] == ["mcp__a__new"]
        assert await stored_as_shown(thread, model)
        assert [item.status for item in thread.items if isinstance(item, McpToolCallItem)] == [
            "completed",
            "failed",
            "completed",
        ]


@requirement("TRN-1")
async def test_turns_run_one_at_a_time(open_host: OpenHost) -> None:
    gate = Gate()
    async with open_host({}, model=ScriptedModel([Wait(gate), Say("first")], Say("second"))) as host:
        thread = await host.start_thread()
        first = await thread.start_turn("one")
        await gate.reached()
        before = thread.state

        with pytest.raises(InvalidRequest, match=f"turn {first.id} is running"):
            await thread.start_turn("two")
        with pytest.raises(InvalidRequest, match="wait for its end, or interrupt it"):
            async with thread.step():
                pass
        assert thread.state == before
        assert thread.running_turn is first

        gate.open()
        await first.finished()
        assert (await (await thread.start_turn("two")).finished()).last_message == "second"


async def test_a_step_of_ones_own_opens_an_implicit_turn_that_ends_as_its_block_does(open_host: OpenHost) -> None:
    async with open_host({}) as host:
        thread = await host.start_thread()
        async with thread.step() as step:
            assert step.tools == ()
        with pytest.raises(ZeroDivisionError):
            async with thread.step():
                raise ZeroDivisionError
        with anyio.CancelScope() as scope:
            async with thread.step():
                scope.cancel()
                await anyio.sleep_forever()

        assert [(turn.implicit, turn.status) for turn in thread.state.turns] == [
            (True, "completed"),
            (True, "failed"),
            (True, "interrupted"),
        ]


@requirement("LIF-8")
async def test_resuming_a_loaded_thread_yields_that_thread(open_host: OpenHost) -> None:
    async with open_host({}) as host:
        thread = await host.start_thread()

        assert await host.resume_thread(thread.id) is thread

        found = []

        async def resume() -> None:
            found.append(await host.resume_thread(thread.id))

        await thread.close()
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(resume)
        assert len(found) == 5
        assert len(set(found)) == 1
        assert found[0] is not thread
        assert found[0].state == thread.state


@requirement("HIS-8")
async def test_a_thread_that_is_not_stored_cannot_be_resumed_or_read(open_host: OpenHost) -> None:
    async with open_host({}) as host:
        with pytest.raises(InvalidRequest, match="there is no thread 'nowhere'"):
            await host.resume_thread("nowhere")
        with pytest.raises(InvalidRequest, match="there is no thread 'nowhere'"):
            await host.read_thread("nowhere")
        assert await host.threads() == ()


@requirement("LIF-4", "LIF-6")
async def test_events_come_in_order_and_progress_comes_as_it_happens(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    steps = [{"progress": [1, 2, "half"]}, {"wait_for_file": str(release)}, {"text": "done"}]
    async with open_host(servers(a={"tools": [{"name": "t", "annotations": READ_ONLY, "do": steps}]})) as host:
        thread = await host.start_thread()
        notices = thread.notices()
        seen: list[StoredEvent | LaggedNotice] = []
        told: list[Notice] = []

        async def read_events() -> None:
            seen.extend([stored async for stored in thread.events()])

        async def read_notices() -> None:
            async for notice in notices:
                told.append(notice)
                if isinstance(notice, ProgressNotice):
                    release.touch()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read_events)
            tasks.start_soon(read_notices)
            async with thread.step() as step:
                assert (await step.call("c1", "mcp__a__t")).text == "done"
            await thread.close()

        events = [stored.event for stored in seen if isinstance(stored, StoredEvent)]
        assert [stored.sequence for stored in seen if isinstance(stored, StoredEvent)] == list(range(1, len(seen) + 1))
        kinds = [type(event) for event in events if isinstance(event, ThreadStarted | TurnStarted | CallStarted)]
        assert kinds == [ThreadStarted, TurnStarted, CallStarted]
        assert [type(event) for event in events[-2:]] == [CallEnded, TurnEnded]
        (progress,) = [notice for notice in told if isinstance(notice, ProgressNotice)]
        assert (progress.call_id, progress.progress.message) == ("c1", "half")
        assert ServerStatus.READY in {n.report.status for n in told if isinstance(n, ServerNotice)}


@requirement("CON-6", "LIF-3", "LIF-1")
async def test_a_server_that_dies_in_a_call_leaves_it_unknown_and_the_others_unharmed(
    open_host: OpenHost, servers: Servers
) -> None:
    dying = {"name": "die", "annotations": READ_ONLY, "do": [{"exit": 3}]}
    async with open_host(servers(a={"tools": [dying]}, b={"tools": [answering("one", "1")]})) as host:
        thread = await host.start_thread()
        async with thread.step() as step:
            died = await step.call("c1", "mcp__a__die")
            fine = await step.call("c2", "mcp__b__one")

        assert died.item.error is not None
        assert (died.item.status, died.item.error.effect) == ("failed", "unknown")
        assert "unknown" in died.text
        assert fine.text == "1"


async def test_closing_interrupts_the_turn_and_its_calls_and_ends_everything(
    open_host: OpenHost, servers: Servers
) -> None:
    hanging = {"name": "hang", "annotations": READ_ONLY, "do": [{"silence": True}]}
    model = ScriptedModel(Call("mcp__a__hang"))
    async with open_host(servers(a={"tools": [hanging]}), model=model) as host:
        thread = await host.start_thread()
        turn = await thread.start_turn("go")
        await until(lambda: len(thread.state.open_calls) == 1)

        with anyio.fail_after(60):
            await thread.close()

        assert (await turn.finished()).status == "interrupted"
        state = await host.read_thread(thread.id)
        assert (state.open_calls, state.unanswered, state.open_turn) == ((), (), None)
        assert dict(host.loaded_threads) == {}
        assert repr(thread).startswith(f"<Thread {thread.id} closed")
        for refused in (thread.start_turn("more"), thread.step().__aenter__()):
            with pytest.raises(InvalidRequest, match="is closed; resume it to go on"):
                await refused


@pytest.mark.parametrize("moment", [0, 1, 3, 10, 30, 100, 300])
async def test_wherever_the_host_is_cancelled_nothing_is_left_open(
    open_host: OpenHost, servers: Servers, moment: int
) -> None:
    configs = servers(a={"tools": [answering("one", "1")]})
    model = ScriptedModel(*[Call("mcp__a__one") for _ in range(50)])
    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:

            async def cancel() -> None:
                for _ in range(moment):
                    await anyio.sleep(0.001)
                scope.cancel()

            tasks.start_soon(cancel)
            async with open_host(configs, model=model) as host:
                thread = await host.start_thread()
                await (await thread.start_turn("go")).finished()

    async with open_host({}) as host:
        for record in await host.threads():
            state = await host.read_thread(record.thread_id)
            assert (state.open_calls, state.unanswered, state.open_turn) == ((), (), None)


async def test_an_error_of_the_applications_own_leaves_the_host_as_it_is(open_host: OpenHost) -> None:
    async def application() -> None:
        async with open_host({}) as host:
            await host.start_thread()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await application()


@requirement("RPC-2", "RES-7", "CAT-8")
async def test_an_application_asks_a_server_itself_without_item_or_history(
    open_host: OpenHost, servers: Servers
) -> None:
    script = {
        "tools": [answering("one", "1"), answering("two", "2")],
        "resources": [{"uri": "docs://guide", "name": "guide", "text": "read me"}],
    }
    configs = servers({"disabled_tools": ("two",)}, docs=script)
    configs["off"] = scripted_server("off", {}, Path(configs["docs"].transport.args[-1]).parent, enabled=False)  # type: ignore[union-attr, arg-type]  # a stdio transport with plain arguments
    async with open_host(configs) as host:
        assert {report.name: report.status for report in host.reports()} == {
            "docs": ServerStatus.NOT_STARTED,
            "off": ServerStatus.DISABLED,
        }
        (content,) = (await host.read_resource("docs", "docs://guide")).contents
        assert content.text == "read me"
        assert [entry.uri for entry in (await host.list_resources("docs")).entries] == ["docs://guide"]
        assert (await host.call_tool("docs", "one")).content[0]["text"] == "1"
        assert [tool.name for tool in (await host.requests.list_tools("docs")).entries] == ["one"]

        with pytest.raises(NotPermitted, match="'two' of server 'docs' is kept out"):
            await host.call_tool("docs", "two")
        with pytest.raises(NotPermitted, match="'off' is disabled"):
            await host.read_resource("off", "docs://guide")
        with pytest.raises(InvalidRequest, match="there is no server 'other'; configured are: docs, off"):
            await host.read_resource("other", "docs://guide")
        assert await host.threads() == ()

        thread = await host.start_thread()
        before = thread.state
        (content,) = (await thread.requests.read_resource("docs", "docs://guide")).contents
        assert content.text == "read me"
        with pytest.raises(NotPermitted, match="'off' is disabled"):
            await thread.requests.read_resource("off", "docs://guide")
        with pytest.raises(InvalidRequest, match="there is no server 'other'"):
            await thread.requests.call_tool("other", "one")
        assert thread.state == before
        async with thread.step() as step:  # a model is told apart as well what is switched off and what is not there
            told = await step.call("c-1", "list_mcp_resources", {"server": "off"})
            assert "'off': it is disabled" in told.text
            assert "cannot find" in (await step.call("c-2", "list_mcp_resources", {"server": "other"})).text


@requirement("CFG-3")
async def test_problems_of_the_files_are_told_and_the_other_servers_start(tmp_path: Path) -> None:
    script: dict[str, Any] = {"tools": [answering("one", "1")]}
    good = scripted_server("good", script, tmp_path)
    assert isinstance(good.transport, StdioTransport)
    args = ", ".join(f'"{arg}"' for arg in good.transport.args)
    (tmp_path / "interlock.toml").write_text(
        f'[mcp_servers.good]\ncommand = "{good.transport.command}"\nargs = [{args}]\n\n[mcp_servers.bad]\nurl = 7\n'
    )
    environment = {"INTERLOCK_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    async with Host.open(tmp_path / "interlock.toml", environment=environment, grace=20.0) as host:
        thread = await host.start_thread()
        async with thread.step() as step:
            assert (await step.call("c1", "mcp__good__one")).text == "1"

        assert any("mcp_servers.bad" in str(problem) for problem in host.problems)
        assert {report.name: report.status for report in thread.reports()}["bad"] is ServerStatus.FAILED
    assert (tmp_path / "home" / "interlock.db").exists()


async def test_a_host_that_is_not_open_says_so() -> None:
    host = Host()
    with pytest.raises(InvalidRequest, match="this host is not open; use it inside `async with`"):
        await host.start_thread()
    assert repr(host) == "<Host servers=[] closed>"


async def stored_as_shown(thread: Thread, model: ScriptedModel) -> bool:
    """Whether the stored Steps tell what the model was shown; names that did not change are stored once."""
    tools, told, written = ShownTools(), list[tuple[str, ...] | None](), 0
    async with aclosing(thread.events()) as events:
        async for stored in events:
            if isinstance(stored, StoredEvent) and isinstance(stored.event, StepCaptured):
                told.append(tools.take(stored.event))
                written += stored.event.same_tools_as is None
                if len(told) == len(model.requests):
                    break
    assert written < len(told)
    return told == [tuple(spec.name for spec in request.tools) for request in model.requests]
