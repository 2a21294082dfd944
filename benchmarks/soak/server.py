"""A server whose tools misbehave on demand.

    python -m benchmarks.soak.server --name NAME --era handshake|stateless [--http PORT] [--max-life SECONDS]

Over stdio unless a port is given (0: any; the URL is printed). Every answer carries the `token` of its call and the
server's name, so that an answer that reaches the wrong call shows. It ends itself after --max-life seconds.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

VERSION, STATELESS = "2025-11-25", "2026-07-28"
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", VERSION)
TOOLS = ("echo", "wait", "large", "noise", "storm", "progress", "silent", "die", "orphan")
JUNK = (
    b"Listening on port 3000\n",
    b'{"jsonrpc":"2.0","id":999999,"result":{}}\n',
    b'{"jsonrpc":"2.0","method":"notifications/unheard_of"}\n',
    b'{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}\n',
    b"\xff\xfe\x00 \n",
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"none","progress":1}}\n',
    b"[]\n",
)

Send = Callable[[bytes], None]
Json = dict[str, Any]


class Server:
    """What is asked, whatever the transport. `send` writes a whole line beside the answer; None over HTTP, where the
    processes that a server starts are no business of the host's either."""

    def __init__(self, name: str, era: str, send: Send | None) -> None:
        self._name = name
        self._stateless = era == "stateless"
        self._send = send
        self._revision = 0

    async def result(self, method: str, params: Json) -> Json | None:
        """The result; None: there is no such method. It may take long, for ever, or the process."""
        match method:
            case "initialize" if not self._stateless:
                asked = params.get("protocolVersion")
                version = asked if asked in HANDSHAKE_VERSIONS else VERSION
                return {"protocolVersion": version, **self._introduction()}
            case "server/discover" if self._stateless:
                return {"supportedVersions": [STATELESS], **self._hints(), **self._introduction()}
            case "ping":
                return {}
            case "tools/list":
                return {"tools": self._tools(), **self._hints()}
            case "tools/call":
                token = (params.get("_meta") or {}).get("progressToken")
                text = await self._call(params["name"], params.get("arguments") or {}, token)
                kind = {"resultType": "complete"} if self._stateless else {}
                return {"content": [{"type": "text", "text": text}], "isError": False, **kind}
            case "resources/list":
                return {"resources": [{"uri": f"soak://{self._name}", "name": self._name}], **self._hints()}
            case "resources/templates/list":
                return {"resourceTemplates": [], **self._hints()}
            case "resources/read":
                return {"contents": [{"uri": params["uri"], "text": params["uri"]}], **self._hints()}
        return None

    def _introduction(self) -> Json:
        capabilities = {"tools": {"listChanged": True}, "resources": {}}
        return {"capabilities": capabilities, "serverInfo": {"name": self._name, "version": "1"}}

    def _hints(self) -> Json:
        return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if self._stateless else {}

    def _tools(self) -> list[Json]:
        names = [*TOOLS, *(f"extra_{number}" for number in range(self._revision % 5))]
        schema = {"type": "object", "properties": {"token": {"type": "string"}}}
        hints = {"readOnlyHint": True}
        return [{"name": name, "inputSchema": schema, "annotations": hints} for name in names]

    async def _call(self, tool: str, given: Json, progress_token: object) -> str:
        padding = ""
        match tool:
            case "wait":
                await asyncio.sleep(given["milliseconds"] / 1000)
            case "large":
                padding = " " + "x" * given["bytes"]
            case "noise" if self._send is not None:
                for number in range(given["lines"]):
                    self._send(JUNK[number % len(JUNK)])
                os.write(2, b"a line of complaint\n" * given["lines"])
            case "storm":
                self._revision += 1
                for _ in range(given["notices"] if self._send is not None else 0):
                    self._send(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n')
            case "progress" if self._send is not None:
                for number in range(20):
                    progress = {"progressToken": progress_token, "progress": number}
                    self._send(encoded({"method": "notifications/progress", "params": progress}) + b"\n")
                    await asyncio.sleep(0.001)
            case "silent":
                await asyncio.sleep(3600)
            case "die":
                await asyncio.sleep(given["milliseconds"] / 1000)
                os._exit(3)
            case "orphan" if self._send is not None:
                start_orphan()
        return f"{self._name} {given['token']}{padding}"


def start_orphan() -> None:
    """A process with a session of its own, that does not notice the end of its parent."""
    sleeping = "import time; time.sleep(3600)"
    subprocess.Popen([sys.executable, "-S", "-c", sleeping], start_new_session=True)


def encoded(message: Json) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()


async def answered(server: Server, message: Json) -> bytes | None:
    """The response to a request; None for anything else."""
    if "id" not in message or "method" not in message:
        return None
    result = await server.result(message["method"], message.get("params") or {})
    if result is None:
        return encoded({"id": message["id"], "error": {"code": -32601, "message": "method not found"}})
    return encoded({"id": message["id"], "result": result})


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


async def over_stdio(name: str, era: str) -> None:
    """Until stdin ends. Every request is a task, so that a slow one delays nobody; a cancelled one is dropped."""
    server = Server(name, era, write)
    reader = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    running: dict[Any, asyncio.Task[None]] = {}

    async def serve(message: Json) -> None:
        try:
            response = await answered(server, message)
            if response is not None:
                write(response + b"\n")
        finally:
            running.pop(message.get("id"), None)

    while line := await reader.readline():
        message = json.loads(line)
        if message.get("method") == "notifications/cancelled":
            task = running.get(message["params"]["requestId"])
            if task is not None:
                task.cancel()
        else:
            running[message.get("id")] = asyncio.create_task(serve(message))
    os._exit(0)


async def over_http(name: str, era: str, port: int) -> None:
    """Streamable HTTP with JSON answers and no stream."""
    server = Server(name, era, None)

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await exchange(server, head.lower(), reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(connection, "127.0.0.1", port, limit=1 << 24)
    print(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/mcp", flush=True)
    await listening.serve_forever()


async def exchange(server: Server, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    length = int(head.split(b"content-length:")[1].split(b"\r\n")[0]) if b"content-length:" in head else 0
    body = await reader.readexactly(length)
    status, data = b"405 Method Not Allowed", b""
    if head.startswith(b"post"):
        response = await answered(server, json.loads(body))
        status, data = (b"202 Accepted", b"") if response is None else (b"200 OK", response)
    elif head.startswith(b"delete"):
        status = b"200 OK"
    kind = b"content-type: application/json\r\n"
    writer.write(b"HTTP/1.1 %b\r\n%bcontent-length: %d\r\n\r\n%b" % (status, kind, len(data), data))
    await writer.drain()


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--era", choices=("handshake", "stateless"), default="handshake")
    parser.add_argument("--http", type=int)
    parser.add_argument("--max-life", type=float, default=90.0)
    given = parser.parse_args()
    asyncio.get_running_loop().call_later(given.max_life, os._exit, 9)
    serving: Awaitable[None] = (
        over_stdio(given.name, given.era) if given.http is None else over_http(given.name, given.era, given.http)
    )
    await serving


if __name__ == "__main__":
    asyncio.run(main())
