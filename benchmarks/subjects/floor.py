"""The floor: what pipes or a socket, asyncio and orjson cost, with nothing in between.

It has no deadlines, no policy and no faults: what a host adds to it is the price of a host.
"""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import orjson

from benchmarks.subjects.ports import ARGUMENTS, TOOL, TOUCH, Client, Place, expect

INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "floor", "version": "1"}}


class Verbs:
    """The verbs over any way to send a request."""

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        raise NotImplementedError

    async def call(self) -> None:
        result = await self.request("tools/call", {"name": TOOL, "arguments": ARGUMENTS})
        expect(result["content"][0]["text"] == "ok", result)

    async def tools(self) -> int:
        tools, cursor = list[dict[str, Any]](), None
        while True:
            result = await self.request("tools/list", {} if cursor is None else {"cursor": cursor})
            tools += [
                {"name": tool["name"], "description": tool.get("description"), "parameters": tool["inputSchema"]}
                for tool in result["tools"]
            ]
            cursor = result.get("nextCursor")
            if cursor is None:
                return len(tools)

    async def touch(self) -> None:
        await self.request("tools/call", {"name": TOUCH, "arguments": {}})
        await self.tools()

    async def read(self, uri: str) -> int:
        content = (await self.request("resources/read", {"uri": uri}))["contents"][0]
        return len(content.get("text") or content["blob"])


class Pipes(Verbs):
    """A child process. `command` is started at once."""

    def __init__(self, command: Sequence[str]) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._output, False)
        self._pieces: list[bytes] = []
        self._size = 1 << 16
        self._last_id = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._loop.add_reader(self._output, self._readable)

    async def initialized(self) -> "Pipes":
        await self.request("initialize", INITIALIZE)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def _send(self, message: dict[str, Any]) -> None:
        data = orjson.dumps(message) + b"\n"
        assert os.write(self._input, data) == len(data)

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        self._last_id += 1
        waiter = self._waiting[self._last_id] = self._loop.create_future()
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        return await waiter

    def _readable(self) -> None:
        try:
            chunk = os.read(self._output, self._size)
        except BlockingIOError:
            return
        if not chunk:
            self._loop.remove_reader(self._output)
            return
        if len(chunk) == self._size and self._size < 1 << 20:
            self._size *= 2
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._pieces.append(line)
            message = orjson.loads(b"".join(self._pieces))
            self._pieces.clear()
            if "id" in message:
                self._waiting.pop(message["id"]).set_result(message.get("result"))
        if rest:
            self._pieces.append(rest)

    def close_input(self) -> None:
        self._loop.remove_reader(self._output)
        assert self._process.stdin is not None
        self._process.stdin.close()

    def close(self) -> None:
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Sockets(Verbs):
    """HTTP/1.1 with kept connections: one for each request in flight."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._path = parts.hostname or "", parts.port or 80, parts.path
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._last_id = 0

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        self._last_id += 1
        body = orjson.dumps({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        if self._idle:
            reader, writer = self._idle.pop()
        else:
            reader, writer = await asyncio.open_connection(self._host, self._port, limit=1 << 22)
        head = (
            f"POST {self._path} HTTP/1.1\r\nhost: {self._host}\r\ncontent-type: application/json\r\n"
            f"accept: application/json, text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answered = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(answered.split(b"content-length:")[1].split(b"\r\n")[0])
        message = orjson.loads(await reader.readexactly(length))
        self._idle.append((reader, writer))
        return message.get("result")

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()


class Floor:
    @asynccontextmanager
    async def open(self, places: Sequence[Place]) -> AsyncIterator[Sequence[Client]]:
        if places[0].url is not None:
            sockets = [Sockets(place.url or "") for place in places]
            await asyncio.gather(*(socket.request("initialize", INITIALIZE) for socket in sockets))
            yield sockets
            for socket in sockets:
                socket.close()
            return
        pipes = [Pipes(place.command) for place in places]
        await asyncio.gather(*(pipe.initialized() for pipe in pipes))
        yield pipes
        for pipe in pipes:
            pipe.close_input()
        for pipe in pipes:
            pipe.close()


SUBJECT = Floor()
