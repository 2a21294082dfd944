"""Clients of an app server that cost little themselves.

Owns: one over the standard streams of a process, one over WebSocket.
Never: looks at what it does not wait for.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import orjson

LINE_LIMIT = 1 << 24
PATIENCE = 120.0
INFO = {"clientInfo": {"name": "benchmark", "version": "1"}, "capabilities": {"experimentalApi": True}}


class LineClient:
    """One request at a time; news that come meanwhile are kept."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._last_id = 0
        self._news: list[dict[str, Any]] = []

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})
        while True:
            message = await self._next()
            if message.get("id") == self._last_id and "method" not in message:
                return message["result"]

    async def news(self, method: str, **about: Any) -> None:
        """Return once such a notification has come."""
        while not any(_fits(message, method, about) for message in self._news):
            await self._next()

    def notify(self, method: str) -> None:
        self._send({"method": method})

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _next(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        if not line:
            raise RuntimeError("the server has ended")
        message: dict[str, Any] = orjson.loads(line)
        if "method" in message:
            self._news.append(message)
        return message


def _fits(message: Mapping[str, Any], method: str, about: Mapping[str, Any]) -> bool:
    return message["method"] == method and all(message["params"].get(name) == value for name, value in about.items())


@asynccontextmanager
async def started(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> AsyncIterator[LineClient]:
    """A client of a process that is started for it, initialized."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=pipe,
        stdout=pipe,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
        cwd=folder,
        limit=LINE_LIMIT,
    )
    try:
        client = LineClient(process)
        async with asyncio.timeout(PATIENCE):
            await client.request("initialize", INFO)
        client.notify("initialized")
        yield client
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            process.kill()
            await process.wait()


class WebSocketClient:
    """One request at a time, over WebSocket."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._last_id = 0

    @classmethod
    @asynccontextmanager
    async def connect(cls, address: str) -> AsyncIterator[Self]:
        from websockets.asyncio.client import connect

        async with connect(address, compression=None, max_size=None) as connection:
            client = cls(connection)
            await client.request("initialize", INFO)
            yield client

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        self._last_id += 1
        await self._connection.send(json.dumps({"id": self._last_id, "method": method, "params": params}))
        while True:
            message = orjson.loads(await self._connection.recv())
            if message.get("id") == self._last_id and "method" not in message:
                return message["result"]

    async def turn(self, thread_id: str) -> list[float]:
        """Run a turn; for each delta the seconds since the moment that its text tells."""
        said = [{"type": "text", "text": "go"}]
        await self.request("turn/start", {"threadId": thread_id, "input": said})
        late: list[float] = []
        while True:
            frame = await self._connection.recv()
            now = time.monotonic_ns()
            message = orjson.loads(frame)
            if message.get("method") == "item/agentMessage/delta":
                late.append((now - int(message["params"]["delta"])) / 1e9)
            elif message.get("method") == "turn/completed":
                return late
