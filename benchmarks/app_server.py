"""What the app server costs, as its clients see it.

    python -m benchmarks.app_server [--rows request call threads stream] [--scale 1.0] [--into FILE.json]

`request`: a trivial request over stdio, in turns with an echo of JSON in bare asyncio; at most 2 times that.
`call`: mcpServer/tool/call, in turns with the program whose wire this is (`npm install @openai/codex@0.150.0`, named
    by the environment variable INTERLOCK_CODEX, else left out), both over the same MCP server; at most 0.8 times that.
`threads`: 1,000 threads open at once on one 2026-era server that they share: resident memory per idle thread.
`stream`: 100 clients, each with a turn whose model says 20 pieces a second: from the model's saying a piece to its
    client's having read it, at the 50th and the 99th of a hundred.

Ratios are medians of ratios of rounds that follow one another; `--scale` makes rounds shorter or longer.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks import machine
from benchmarks.app_server_client import LineClient, WebSocketClient, started

ROUNDS: Final = 7
REQUESTS: Final = 1500
CALLS: Final = 400
THREADS: Final = 1000
CLIENTS: Final = 100
PIECES: Final = 100
REQUEST_LIMIT: Final = 2.0
CALL_LIMIT: Final = 0.8
CODEX: Final = os.environ.get("INTERLOCK_CODEX", "")
TELLS_MEMORY: Final = Path("/proc/self/smaps_rollup").exists()
TICKS: Final = os.sysconf("SC_CLK_TCK")

INTERLOCK: Final = (sys.executable, "-m", "interlock", "app-server")
ECHO: Final = (sys.executable, "-m", "benchmarks.app_server_echo")
HOST: Final = (sys.executable, "-m", "benchmarks.app_server_host")
SERVER: Final = (sys.executable, "-m", "benchmarks.servers.stdio")
THEIR_MODEL: Final = """model = "lab"
model_provider = "lab"
[model_providers.lab]
name = "lab"
base_url = "http://127.0.0.1:1/v1"
wire_api = "responses"
"""
ROOT: Final = Path(__file__).parent.parent


@dataclass(slots=True)
class Subject:
    """A program in turns with another; seconds of each round, by the clock and of its process."""

    client: LineClient
    ask: Callable[[LineClient], Awaitable[Any]]
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    async def one_round(self, count: int) -> None:
        used, began = processor_seconds(self.client.process.pid), time.perf_counter()
        for _ in range(count):
            await self.ask(self.client)
        self.wall.append((time.perf_counter() - began) / count)
        if used is not None:
            self.cpu.append(((processor_seconds(self.client.process.pid) or used) - used) / count)


def processor_seconds(pid: int) -> float | None:
    """Of the process itself, without its children; None where the system does not tell."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(after_name[11]) + int(after_name[12])) / TICKS


def resident_bytes(pid: int) -> int:
    """What the process holds in memory of its own. Raises OSError where the system does not tell."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("Private_Clean:", "Private_Dirty:")))


async def in_turns(ours: Subject, theirs: Subject, count: int) -> dict[str, float]:
    for subject in (ours, theirs):  # a round that does not count
        await subject.one_round(max(1, count // 4))
        subject.wall.clear()
        subject.cpu.clear()
    for number in range(ROUNDS):
        for subject in (ours, theirs) if number % 2 else (theirs, ours):
            await subject.one_round(count)
    found = {
        "ours_microseconds": statistics.median(ours.wall) * 1e6,
        "theirs_microseconds": statistics.median(theirs.wall) * 1e6,
        "ratio": median_ratio(ours.wall, theirs.wall),
    }
    if ours.cpu and all(theirs.cpu):
        found["cpu_ratio"] = median_ratio(ours.cpu, theirs.cpu)
    return found


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))


# ---- rows


async def request(folder: Path, scale: float) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(started(INTERLOCK, environment(folder), folder))
        echo = await stack.enter_async_context(started(ECHO, dict(os.environ), ROOT))

        async def ask(client: LineClient) -> Any:
            return await client.request("account/read", {})

        found = await in_turns(Subject(ours, ask), Subject(echo, ask), max(1, round(REQUESTS * scale)))
    return {**found, "limit": REQUEST_LIMIT}


async def call(folder: Path, scale: float) -> dict[str, Any]:
    if not CODEX:
        return {"skipped": "INTERLOCK_CODEX names no program to compare with (npm install @openai/codex@0.150.0)"}
    command, arguments, place = (json.dumps(value) for value in (SERVER[0], SERVER[1:], str(ROOT)))
    table = f"[mcp_servers.s]\ncommand = {command}\nargs = {arguments}\ncwd = {place}\n"
    (folder / "config.toml").write_text(table, encoding="utf-8")
    theirs_home = folder / "codex"
    theirs_home.mkdir()
    (theirs_home / "config.toml").write_text(THEIR_MODEL + table, encoding="utf-8")
    async with AsyncExitStack() as stack:
        subjects = []
        for command, variables in (
            (INTERLOCK, environment(folder)),
            ((CODEX, "app-server"), {**os.environ, "CODEX_HOME": str(theirs_home)}),
        ):
            client = await stack.enter_async_context(started(command, variables, folder))
            thread = (await client.request("thread/start", {}))["thread"]["id"]
            await client.news("mcpServer/startupStatus/updated", status="ready")
            params = {"threadId": thread, "server": "s", "tool": "look_up_00000", "arguments": {"words": "x"}}

            async def ask(client: LineClient, params: dict[str, Any] = params) -> Any:
                return await client.request("mcpServer/tool/call", params)

            subjects.append(Subject(client, ask))
        found = await in_turns(subjects[0], subjects[1], max(1, round(CALLS * scale)))
    return {**found, "limit": CALL_LIMIT}


async def threads(folder: Path, scale: float) -> dict[str, Any]:
    if not TELLS_MEMORY:
        return {"skipped": "this system does not tell how much memory a process holds of its own"}
    count = max(2, round(THREADS * scale))
    script = folder / "script.json"
    tools = [{"name": f"look_up_{number}", "inputSchema": {"type": "object"}} for number in range(10)]
    script.write_text(json.dumps({"eras": ["stateless"], "tools": tools}), encoding="utf-8")
    arguments = json.dumps(["-m", "interlock.testing.server", str(script)])
    (folder / "config.toml").write_text(
        f"[mcp_servers.s]\ncommand = {json.dumps(sys.executable)}\nargs = {arguments}\nrequired = true\n",
        encoding="utf-8",
    )
    async with started(INTERLOCK, environment(folder), folder) as client:
        for _ in range(max(1, count // 10)):  # what is needed once is not counted
            await client.request("thread/start", {})
        before, began = resident_bytes(client.process.pid), time.perf_counter()
        for _ in range(count):
            await client.request("thread/start", {})
        seconds = time.perf_counter() - began
        held = resident_bytes(client.process.pid) - before
    return {"threads": count, "kib_per_thread": held / count / 1024, "milliseconds_to_start": seconds / count * 1000}


async def stream(folder: Path, scale: float) -> dict[str, Any]:
    pieces = max(2, round(PIECES * scale))
    async with AsyncExitStack() as stack:
        command = (*HOST, str(folder / "interlock.db"), str(pieces))
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=pipe, stdout=pipe)
        stack.push_async_callback(process.wait)
        stack.callback(process.terminate)
        assert process.stdout is not None
        address = (await process.stdout.readline()).decode().strip()
        clients = [await stack.enter_async_context(WebSocketClient.connect(address)) for _ in range(CLIENTS)]
        ids = [(await client.request("thread/start", {}))["thread"]["id"] for client in clients]
        async with asyncio.TaskGroup() as turns:
            tasks = [turns.create_task(client.turn(thread)) for client, thread in zip(clients, ids, strict=True)]
        late = sorted(seconds for task in tasks for seconds in task.result())
    return {
        "clients": CLIENTS,
        "deltas": len(late),
        "expected": CLIENTS * pieces,
        "p50_milliseconds": late[len(late) // 2] * 1000,
        "p99_milliseconds": late[len(late) * 99 // 100] * 1000,
    }


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "INTERLOCK_HOME": str(folder)}


ROWS: Final = {"request": request, "call": call, "threads": threads, "stream": stream}


async def main() -> None:
    parser = argparse.ArgumentParser(description="What the app server costs.")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--into", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": machine.in_words(), "load": [machine.load()], "rows": {}}
    for name in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            found = await ROWS[name](Path(folder), options.scale)
        results["rows"][name] = found
        print(f"{name:8} {in_words(found)}", flush=True)
    results["load"].append(machine.load())
    if options.into is not None:
        options.into.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def in_words(found: dict[str, Any]) -> str:
    if "skipped" in found:
        return f"skipped: {found['skipped']}"
    shown = [f"{name} {value:.2f}" if isinstance(value, float) else f"{name} {value}" for name, value in found.items()]
    return ", ".join(shown).replace("_", " ")


if __name__ == "__main__":
    asyncio.run(main())
