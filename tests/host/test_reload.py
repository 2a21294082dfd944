"""Another configuration while the Host is open: Threads follow at their next Step, and keep what did not change."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import psutil  # type: ignore[import-untyped]  # it ships no types
import pytest

from interlock import Host, InvalidRequest, Policy, ServerConfig, StdioTransport, Thread
from interlock.configuration import Difference
from interlock.vocabulary.notice import WarningNotice
from interlock.vocabulary.secret import Secret
from interlock.vocabulary.server import ServerStatus
from tests.host.conftest import OpenHost, answering
from tests.host.test_host import Servers, until
from tests.manifest import requirement

pytestmark = pytest.mark.anyio


def process_of(thread: Thread, server: str) -> int | None:
    return next(report.process_id for report in thread.reports() if report.name == server)


async def tools_of(thread: Thread) -> list[str]:
    """The MCP tools that the next Step sees."""
    async with thread.step() as step:
        return list(step.binding.snapshot.catalog.entries)


def with_settings(config: ServerConfig, **settings: Any) -> ServerConfig:
    return replace(config, **settings)


def another(config: ServerConfig) -> ServerConfig:
    """The same command with another identity."""
    assert isinstance(config.transport, StdioTransport)
    return replace(config, transport=replace(config.transport, env={"VARIANT": Secret("another")}))


@requirement("CFG-6", "CON-15")
async def test_unchanged_servers_keep_their_process_and_changed_ones_are_replaced_at_the_next_step(
    open_host: OpenHost, servers: Servers
) -> None:
    old = servers(kept={"tools": [answering("a", "1")]}, changed={"tools": [answering("b", "old")]}, gone={})
    async with open_host(old) as host:
        thread = await host.start_thread()
        async with thread.step() as running:
            kept, changed, gone = (process_of(thread, name) for name in ("kept", "changed", "gone"))
            new = servers(changed={"tools": [answering("b", "new")]}, added={"tools": [answering("c", "3")]})
            new["changed"] = another(new["changed"])

            difference = await host.reload({"kept": old["kept"], **new})

            assert difference == Difference(
                added=("added",), removed=("gone",), replaced=("changed",), unchanged=("kept",)
            )
            await until(lambda: thread.snapshot.generation == 2)
            assert (await running.call("1", "mcp__changed__b")).text == "old"
            assert psutil.pid_exists(changed)
            assert psutil.pid_exists(gone)

        async with thread.step() as step:
            names = list(step.binding.snapshot.catalog.entries)
            assert names == ["mcp__added__c", "mcp__changed__b", "mcp__kept__a"]
            assert (await step.call("2", "mcp__changed__b")).text == "new"
            assert (await step.call("3", "mcp__kept__a")).text == "1"
        assert process_of(thread, "kept") == kept
        await until(lambda: not psutil.pid_exists(changed) and not psutil.pid_exists(gone))


@requirement("CFG-6", "CON-15", "CAT-8")
async def test_an_edit_of_the_view_restarts_nothing_and_holds_from_the_next_step(
    open_host: OpenHost, servers: Servers
) -> None:
    old = servers(a={"tools": [answering("one", "1"), answering("two", "2")]})
    async with open_host(old) as host:
        thread = await host.start_thread()
        assert await tools_of(thread) == ["mcp__a__one", "mcp__a__two"]
        process = process_of(thread, "a")

        adjusted = with_settings(old["a"], disabled_tools=("one",), tool_timeout=7.0, required=True)
        assert (await host.reload({"a": adjusted})).adjusted == ("a",)

        async with thread.step() as step:
            await until(lambda: list(thread.snapshot.catalog.entries) == ["mcp__a__two"])
            assert step.binding.snapshot.servers["a"].config is adjusted
        assert await tools_of(thread) == ["mcp__a__two"]
        assert process_of(thread, "a") == process
        assert [report.restarts for report in thread.reports()] == [0]


@requirement("CFG-6")
async def test_a_policy_holds_from_the_next_step_whatever_becomes_of_the_servers(
    open_host: OpenHost, servers: Servers
) -> None:
    old = servers(a={})
    strict = Policy(approval="never")
    async with open_host(old) as host:
        thread = await host.start_thread()
        async with thread.step() as running:
            await host.reload({**old, **broken(servers)}, policy=strict)
            assert running.binding.snapshot.policy == Policy()
        async with thread.step() as step:
            assert step.binding.snapshot.policy == strict
            assert list(step.binding.snapshot.servers) == ["a"]


def broken(servers: Servers) -> dict[str, ServerConfig]:
    """A required server that does not start."""
    (config,) = servers(broken={}).values()
    return {"broken": with_settings(config, required=True, problem="TOKEN is not set")}


@requirement("CFG-6", "CON-15", "CON-2")
async def test_a_required_server_that_cannot_start_leaves_the_old_servers_whole_and_people_are_told_once(
    open_host: OpenHost, servers: Servers
) -> None:
    old = servers(a={"tools": [answering("one", "1")]})
    async with open_host(old) as host:
        thread = await host.start_thread()
        before = (await tools_of(thread), process_of(thread, "a"))
        notices = thread.notices()

        await host.reload({**servers(b={}), **broken(servers)})
        assert (await tools_of(thread), process_of(thread, "a")) == before
        assert await tools_of(thread) == before[0]

        await host.reload(servers(b={"tools": [answering("two", "2")]}))
        assert await tools_of(thread) == ["mcp__b__two"]
        await thread.close()
        warnings = [notice.message async for notice in notices if isinstance(notice, WarningNotice)]
        assert len(warnings) == 1
        assert "the old ones stay" in warnings[0]
        assert "TOKEN is not set" in warnings[0]


@requirement("CON-15")
async def test_rapid_reloads_fold_into_the_newest_and_leave_nothing_of_the_others(
    open_host: OpenHost, servers: Servers
) -> None:
    kept = servers(kept={"tools": [answering("one", "1")]})
    others = set(psutil.Process().children())  # of the tests, such as a database
    async with open_host(kept) as host:
        thread = await host.start_thread()
        for number in range(20):
            await host.reload({**kept, **servers(**{f"new{number}": {"tools": [answering("two", "2")]}})})

        assert await tools_of(thread) == ["mcp__kept__one", "mcp__new19__two"]
        assert thread.snapshot.generation <= 3
        await until(lambda: len({*psutil.Process().children()} - others) <= 3)  # two servers and the watchdog


async def test_a_thread_that_is_opening_during_a_reload_follows_it(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    script = {"on": {"start": [{"wait_for_file": str(release)}]}}
    slow = {name: with_settings(config, required=True) for name, config in servers(slow=script).items()}
    async with open_host(slow) as host, anyio.create_task_group() as tasks:
        threads: list[Thread] = []

        async def start() -> None:
            threads.append(await host.start_thread())

        tasks.start_soon(start)
        await until(lambda: host.reports()[0].status is ServerStatus.STARTING)

        await host.reload(servers(quick={"tools": [answering("one", "1")]}))

        await until(lambda: len(threads) == 1)
        assert await tools_of(threads[0]) == ["mcp__quick__one"]


async def test_requests_of_the_application_follow_a_reload(open_host: OpenHost, servers: Servers) -> None:
    async with open_host(servers(a={"tools": [answering("one", "1")]})) as host:
        thread = await host.start_thread()
        await host.reload(servers(b={"tools": [answering("two", "2")]}))

        for requests in (host.requests, thread.requests):
            assert [tool.name for tool in (await requests.list_tools("b")).entries] == ["two"]
            with pytest.raises(InvalidRequest, match="there is no server 'a'"):
                await requests.list_tools("a")
        assert [report.name for report in host.reports()] == ["b"]


class Files:
    """A configuration file whose servers are scripted."""

    def __init__(self, folder: Path, servers: Servers) -> None:
        self.path = folder / "interlock.toml"
        self._servers = servers

    def write(self, **scripts: dict[str, Any]) -> None:
        """Replace the file at once, as editors do."""
        tables = []
        for name, config in self._servers(**scripts).items():
            args = [str(arg) for arg in config.transport.args]  # type: ignore[union-attr]  # scripted: stdio
            command = config.transport.command  # type: ignore[union-attr]
            tables.append(f"[mcp_servers.{name}]\ncommand = {str(command)!r}\nargs = {args!r}\n")
        self.write_text("\n".join(tables))

    def write_text(self, text: str) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.replace(self.path)


@pytest.fixture
def files(tmp_path: Path, servers: Callable[..., dict[str, ServerConfig]]) -> Files:
    return Files(tmp_path, servers)


@requirement("CFG-6")
async def test_a_file_that_cannot_be_read_changes_nothing(files: Files, tmp_path: Path) -> None:
    files.write(a={"tools": [answering("one", "1")]})
    async with Host.open(files.path, store=tmp_path / "events.db", grace=20.0) as host:
        thread = await host.start_thread()
        before = host.configuration
        files.write_text("[mcp_servers.a\n")

        with pytest.raises(InvalidRequest, match=r"interlock\.toml"):
            await host.reload()

        assert host.configuration is before
        assert await tools_of(thread) == ["mcp__a__one"]

        files.write(b={"tools": [answering("two", "2")]})
        assert (await host.reload()).added == ("b",)
        assert await tools_of(thread) == ["mcp__b__two"]


@requirement("CFG-6")
async def test_a_watched_file_is_reloaded_when_it_changes_and_a_broken_one_is_told(
    files: Files, tmp_path: Path
) -> None:
    files.write(a={"tools": [answering("one", "1")]})
    async with Host.open(files.path, store=tmp_path / "events.db", grace=20.0, watch=True) as host:
        thread = await host.start_thread()
        notices = thread.notices()
        assert await tools_of(thread) == ["mcp__a__one"]

        files.write(b={"tools": [answering("two", "2")]})
        await until(lambda: list(host.configuration.servers) == ["b"])
        assert await tools_of(thread) == ["mcp__b__two"]

        files.write_text("[mcp_servers.b\n")
        with anyio.fail_after(60):
            warning = await anext(notice async for notice in notices if isinstance(notice, WarningNotice))
        assert "stays in use" in warning.message
        assert await tools_of(thread) == ["mcp__b__two"]


def hanging(servers: Servers, release: Path) -> dict[str, ServerConfig]:
    """A required server that does not start before `release` exists."""
    script = {"on": {"start": [{"wait_for_file": str(release)}]}, "tools": [answering("late", "here")]}
    return {name: with_settings(config, required=True) for name, config in servers(slow=script).items()}


@requirement("CON-15", "CFG-6")
async def test_a_step_that_gives_up_waiting_for_a_reload_leaves_it_due(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    async with open_host(servers(a={"tools": [answering("one", "1")]})) as host:
        thread = await host.start_thread()
        await host.reload(hanging(servers, release))
        with anyio.move_on_after(0.2) as waiting:
            async with thread.step():
                pass
        assert waiting.cancelled_caught
        assert thread.snapshot.generation == 1

        release.touch()
        assert await tools_of(thread) == ["mcp__slow__late"]
        assert thread.snapshot.generation == 2


@requirement("CON-15", "CON-5")
async def test_a_host_is_closed_in_the_middle_of_a_reload(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    async with open_host(servers(a={})) as host:
        thread = await host.start_thread()
        await host.reload(hanging(servers, tmp_path / "never"))
        await until(lambda: any(report.status is ServerStatus.STARTING for report in thread.reports()))
        began = anyio.current_time()
    assert anyio.current_time() - began < 60


@requirement("CFG-3", "CFG-6")
async def test_a_table_in_place_of_a_server_is_refused_with_how_to_write_it(
    open_host: OpenHost, servers: Servers
) -> None:
    table: Any = {"time": {"command": "python"}}
    told = r"^cannot take server 'time': its value is a dict; write interlock\.ServerConfig\(name='time', "
    with pytest.raises(InvalidRequest, match=told):
        Host(table)
    async with open_host(servers(a={"tools": [answering("one", "1")]})) as host:
        thread = await host.start_thread()
        with pytest.raises(InvalidRequest, match=told):
            await host.reload(table)
        assert await tools_of(thread) == ["mcp__a__one"]


async def test_a_server_under_another_name_than_its_own_is_refused() -> None:
    servers = {"a": ServerConfig(name="b", transport=StdioTransport(command="x"))}
    with pytest.raises(InvalidRequest, match=r"^cannot take server 'a': its configuration names it 'b'; give both"):
        Host(servers)
