"""The four servers of the demonstration.

Owns: their configuration, and the process of the one that speaks HTTP.
Never: starts the stdio servers; the Host does, as it would for any configuration.
"""

import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.abc

from interlock.testing.stdio import passed_on
from interlock.vocabulary.server import HttpTransport, ServerConfig, StdioTransport

DEAD = "import sys; sys.exit('archive: the disk is not mounted')"
"""A server that ends at once, as broken ones do."""

STOP_PATIENCE = 3.0
"""Seconds that the weather server may take to end."""


def configured(weather_url: str) -> dict[str, ServerConfig]:
    """The servers by name. Two tools are approved by name; whatever else changes things would need a person."""
    workshop = _stdio("workshop", "-m", "interlock.demo.workshop_server")
    servers = (
        _stdio("archive", "-c", DEAD, restart="never"),
        _stdio("library", "-m", "interlock.demo.library_server"),
        ServerConfig(name="weather", transport=HttpTransport(url=weather_url)),
        ServerConfig(
            name="workshop",
            transport=workshop.transport,
            supports_parallel_tool_calls=True,
            tool_approval_modes={"bind": "approve", "print_label": "approve"},
        ),
    )
    return {server.name: server for server in servers}


@asynccontextmanager
async def weather_server() -> AsyncIterator[str]:
    """Run the HTTP server as a child process; gives its URL. It ends with the block, or with this process.

    The socket is opened here and handed over, so the URL is known before the child has started.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port, number = listening.getsockname()[1], listening.fileno()
        command = [sys.executable, "-m", "interlock.demo.weather_server", str(number)]
        process = await anyio.open_process(command, stdin=subprocess.PIPE, stdout=None, stderr=None, pass_fds=[number])
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)


async def _end(process: anyio.abc.Process) -> None:
    async with process:
        if process.stdin is not None:
            await process.stdin.aclose()
        with anyio.move_on_after(STOP_PATIENCE):
            await process.wait()
            return
        process.kill()


def _stdio(name: str, *arguments: str, restart: str = "always") -> ServerConfig:
    transport = StdioTransport(command=sys.executable, args=arguments, env=passed_on())
    return ServerConfig(name=name, transport=transport, restart="never" if restart == "never" else "always")
