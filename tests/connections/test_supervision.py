"""The same promises with real processes and sockets: what the fakes say is what happens."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from interlock.connections.connection import SupervisedConnection
from interlock.connections.generation import Generations
from interlock.connections.pool import Pool
from interlock.connections.startup import Backoff, Recovery
from interlock.testing import scripted_server
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.server import ServerConfig, ServerStatus, StdioTransport
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

PATIENCE = 60.0
QUICK = Recovery(backoff=Backoff(first=0.01, limit=0.1))
ECHO = {"name": "echo", "inputSchema": {"type": "object"}}


@asynccontextmanager
async def pool_here(**options: Any) -> AsyncIterator[Pool]:
    """A pool that must leave no child process behind."""
    before = children()
    with anyio.fail_after(3 * PATIENCE):
        async with Pool(recovery=QUICK, **options) as pool:
            yield pool
    assert children() - before == set()


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def running(connection: SupervisedConnection) -> int:
    process = connection.report().process_id
    assert process is not None
    return process


async def until(connection: SupervisedConnection, status: ServerStatus) -> None:
    changed = anyio.Event()
    stop = connection.listen(lambda change: changed.set() if connection.report().status is status else None)
    with anyio.fail_after(PATIENCE):
        if connection.report().status is not status:
            await changed.wait()
    stop()


@requirement("CON-6")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_a_killed_server_fails_its_calls_comes_back_and_serves_the_next_one(era: str, tmp_path: Path) -> None:
    here = anyio.Event()
    slow = {"name": "slow", "inputSchema": {"type": "object"}, "do": [{"progress": [1]}, {"silence": True}]}
    config = scripted_server("zoo", {"tools": [ECHO, slow], "eras": [era]}, tmp_path)
    errors: list[ServerFailed] = []
    async with pool_here() as pool, anyio.create_task_group() as tasks:
        connection = pool.acquire(config, owner="a")
        await connection.ready(PATIENCE)
        first = running(connection)

        async def call() -> None:
            with pytest.raises(ServerFailed) as failed:
                await connection.call_tool("slow", {}, timeout=PATIENCE, on_progress=lambda _: here.set())
            errors.append(failed.value)

        tasks.start_soon(call)
        await here.wait()
        os.kill(first, signal.SIGKILL)
        await until(connection, ServerStatus.FAILED)
        result = await connection.call_tool("echo", {"x": 1}, timeout=PATIENCE)
        report = connection.report()
    assert [(error.kind, error.effect) for error in errors] == [("lost", "unknown")]
    assert result.content[0]["text"] == '{"x": 1}'
    assert report.process_id != first
    assert report.restarts == 1
    assert report.era == era


@requirement("CON-6")
async def test_a_crash_loop_is_started_ever_more_rarely(tmp_path: Path) -> None:
    trace = tmp_path / "starts"
    program = f"open({str(trace)!r}, 'a').write('x'); raise SystemExit(3)"
    transport = StdioTransport(command=sys.executable, args=("-c", program))
    config = ServerConfig(name="zoo", transport=transport, protocol="2025-11-25")
    async with pool_here() as pool:
        connection = pool.acquire(config, owner="a")
        with pytest.raises(ServerFailed, match="3"):
            await connection.ready(PATIENCE)
        with anyio.fail_after(PATIENCE):
            while not connection.supervisor.given_up:
                await until(connection, ServerStatus.STARTING)
                await until(connection, ServerStatus.FAILED)
        with pytest.raises(ServerFailed, match="again and again") as failed:
            await connection.call_tool("echo", {}, timeout=PATIENCE)
    assert failed.value.effect == "none"
    assert len(trace.read_text()) == 5


@requirement("CON-1", "CON-2", "CON-3")
async def test_good_servers_are_ready_whatever_the_others_do(tmp_path: Path) -> None:
    def program(name: str, text: str) -> ServerConfig:
        transport = StdioTransport(command=sys.executable, args=("-c", text))
        return ServerConfig(name=name, transport=transport, restart="never")

    configs = (
        scripted_server("good", {"tools": [ECHO]}, tmp_path, required=True),
        program("exits", "import sys; print('no licence', file=sys.stderr); sys.exit(4)"),
        program("hangs", "import sys; sys.stdin.read()"),
        ServerConfig(name="absent", transport=StdioTransport(command="/no/such/command"), restart="never"),
        scripted_server("off", {}, tmp_path, enabled=False),
    )
    async with pool_here() as pool:
        generations = Generations(pool, owner="thread", grace=0.0)
        generations.want(configs)
        generation = await generations.refresh()
        assert "hangs" in generation.pending
        await until(generation.connections["exits"], ServerStatus.FAILED)
        await until(generation.connections["absent"], ServerStatus.FAILED)
        with generations.lease() as held:
            listing = await held.views["good"].connection.list_tools(timeout=PATIENCE)
        reports = {report.name: report for report in generations.reports()}
        await generations.close()
    assert [tool.name for tool in listing.entries] == ["echo"]
    assert reports["off"].status is ServerStatus.DISABLED
    assert reports["hangs"].status is ServerStatus.STARTING
    assert "no licence" in (reports["exits"].reason or "")
    assert "/no/such/command" in (reports["absent"].reason or "")


@requirement("CON-15", "CFG-6")
async def test_a_reload_keeps_the_process_of_an_unchanged_server_and_ends_that_of_a_removed_one(tmp_path: Path) -> None:
    stays = scripted_server("stays", {"tools": [ECHO]}, tmp_path)
    goes = scripted_server("goes", {"tools": [ECHO]}, tmp_path)
    async with pool_here() as pool:
        generations = Generations(pool, owner="thread", grace=PATIENCE)
        generations.want((stays, goes))
        first = await generations.refresh()
        kept, ended = running(first.connections["stays"]), running(first.connections["goes"])
        with generations.lease() as held:
            generations.want((stays,))
            await generations.refresh()
            await held.views["goes"].connection.call_tool("echo", {}, timeout=PATIENCE)
            assert psutil.pid_exists(ended)
        await first.connections["goes"].supervisor.wait_closed()
        assert not psutil.pid_exists(ended)
        assert running(generations.current.connections["stays"]) == kept
        await generations.close()


@requirement("CON-5")
async def test_closing_many_servers_takes_as_long_as_closing_one(tmp_path: Path) -> None:
    stubborn = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for line in sys.stdin: pass\n"
        "time.sleep(60)"
    )
    async with pool_here() as pool:
        configs = [
            ServerConfig(name=f"s{n}", transport=StdioTransport(command=sys.executable, args=("-c", stubborn)))
            for n in range(4)
        ]
        connections = [pool.acquire(config, owner="a") for config in configs]
        for connection in connections:
            await until(connection, ServerStatus.STARTING)
        began = anyio.current_time()
    assert anyio.current_time() - began < 18.0  # each is given 5; one after another they would take 20


@requirement("CON-14")
async def test_a_storm_of_list_changed_notices_is_one_change(tmp_path: Path) -> None:
    note = {"notify": {"method": "notifications/tools/list_changed"}}
    storm = {"name": "storm", "inputSchema": {"type": "object"}, "do": [note] * 400}
    config = scripted_server("zoo", {"tools": [storm], "eras": ["handshake"]}, tmp_path)
    async with pool_here() as pool:
        generations = Generations(pool, owner="thread", grace=PATIENCE)
        generations.want((config,))
        generation = await generations.refresh()
        generations.take_changes()
        await generation.views["zoo"].connection.call_tool("storm", {}, timeout=PATIENCE)
        await generations.changed()
        assert generations.take_changes().tools == {"zoo"}
        assert not generations.take_changes().tools
        await generations.close()


async def test_a_stateless_server_serves_two_owners_with_one_process(tmp_path: Path) -> None:
    config = scripted_server("zoo", {"tools": [ECHO], "eras": ["stateless"]}, tmp_path)
    async with pool_here() as pool:
        one = pool.acquire(config, owner="a")
        await one.ready(PATIENCE)
        assert pool.acquire(config, owner="b") is one
        assert len(pool.reports()) == 1
