"""What the tests of this room share: configurations of the scripted server, and a look at what is left behind."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from interlock.connections import watchdog
from interlock.vocabulary.secret import Secret
from interlock.vocabulary.server import ServerConfig, StdioTransport

SCRIPTED = Path(__file__).parent / "scripted_server.py"
PATIENCE = 60.0
"""Seconds that anything here may take at most; a loaded machine is slow, and a hang must still show."""


def scripted(
    script: Mapping[str, Any] | None = None, *, env: Mapping[str, str] | None = None, **settings: Any
) -> ServerConfig:
    transport = StdioTransport(
        command=sys.executable,
        args=("-I", "-S", str(SCRIPTED), json.dumps(script or {})),
        env={name: Secret(value) for name, value in (env or {}).items()},
    )
    return ServerConfig(name="animal", transport=transport, **settings)


def alive(pid: int) -> bool:
    return watchdog.start_time(pid) is not None


async def until_gone(*pids: int, seconds: float = PATIENCE) -> None:
    """Processes that are not our children tell nobody of their end, so this looks."""
    with anyio.fail_after(seconds):
        while any(alive(pid) for pid in pids):  # noqa: ASYNC110 - see above
            await anyio.sleep(0.01)


def descriptors() -> set[str]:
    """Our open pipes, sockets and pidfds, by what they are."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{number} {os.readlink(f'/proc/self/fd/{number}')}")
        except OSError:
            continue
    return {entry for entry in found if "pipe:" in entry or "pidfd" in entry or "socket:" in entry}


def children() -> set[int]:
    return {pid for pid, row in watchdog.processes().items() if row[0] == os.getpid()}


@asynccontextmanager
async def nothing_left_behind() -> AsyncIterator[None]:
    """Asserts that the block leaves no process, no descriptor and no task."""
    before = descriptors(), children(), asyncio.all_tasks()
    yield
    assert children() == before[1]
    assert descriptors() == before[0]
    assert asyncio.all_tasks() == before[2]
