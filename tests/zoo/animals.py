"""Animals: servers that play a scenario, and the traces that they leave.

Owns: their processes (of those over HTTP; a stdio animal is started by the host under test) and trace files.
Never: judges; `judging` does.
"""

import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from interlock import HttpTransport, StdioTransport
from tests.zoo.scenarios import HERE, Scenario

SERVER = HERE / "animal_server.py"
START = f"import sys; sys.path.append({str(HERE)!r}); import animal_server; animal_server.main()"
"""Imports SERVER, which uses the standard library only: Python compiles a script anew each time that it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Animal:
    """A scenario that can be connected to."""

    scenario: Scenario
    transport: StdioTransport | HttpTransport
    trace_file: Path

    def trace(self) -> list[dict[str, Any]]:
        """All that it received and did so far."""
        if not self.trace_file.exists():
            return []
        lines = self.trace_file.read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def processes_left(self) -> list[int]:
        """Process ids of the animal and its children that still run."""
        started = [int(entry["pid"]) for entry in self.trace() if entry.get("pid")]
        return [process_id for process_id in started if is_running(process_id)]

    def end_processes(self) -> None:
        """Nothing that an animal started outlives its scenario."""
        for process_id in self.processes_left():
            os.kill(process_id, signal.SIGKILL)


@asynccontextmanager
async def animal(scenario: Scenario, trace_file: Path) -> AsyncIterator[Animal]:
    """The animal, ready to be connected to; whatever is left of it is ended."""
    arguments = ("-I", "-S", "-c", START, "--scenario", str(scenario.path), "--trace", str(trace_file))
    if scenario.transport == "stdio":
        stdio = StdioTransport(command=sys.executable, args=arguments)
        animal = Animal(scenario=scenario, transport=stdio, trace_file=trace_file)
        try:
            yield animal
        finally:
            animal.end_processes()
        return
    process = await anyio.open_process([sys.executable, *arguments, "--port", "0"], stderr=None)
    try:
        url = await _announced_url(process)
        http = HttpTransport(url=url, legacy_sse=scenario.transport == "sse")
        yield Animal(scenario=scenario, transport=http, trace_file=trace_file)
    finally:
        with anyio.CancelScope(shield=True):
            process.kill()
            await process.aclose()


async def _announced_url(process: anyio.abc.Process) -> str:
    assert process.stdout is not None
    line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 1000)
    return line.decode().split()[1]


def is_running(process_id: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")
