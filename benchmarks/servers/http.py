"""The reference server over Streamable HTTP: a bare asyncio protocol, connections kept, JSON answers.

    python -m benchmarks.servers.http [--tools N] [--page-size N] [--delay-milliseconds N]

It takes any free port of the loopback address and prints its URL. It ends with its stdin.
"""

import argparse
import asyncio
import json
import os

from benchmarks.servers.answers import Answers, from_arguments, response


class Connection(asyncio.Protocol):
    """One connection of a client; its requests come one after another."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._received = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end].lower()
            length = content_length(head)
            if len(self._received) < end + 4 + length:
                return
            body = self._received[end + 4 : end + 4 + length]
            self._received = self._received[end + 4 + length :]
            self._take(head, body)

    def _take(self, head: bytes, body: bytes) -> None:
        if not head.startswith(b"post"):
            self._send(b"405 Method Not Allowed" if head.startswith(b"get") else b"200 OK")
            return
        message = json.loads(body)
        if "id" not in message or "method" not in message:
            self._send(b"202 Accepted")
            return
        answer = self._answers.to(message)
        session = b"mcp-session-id: one\r\n" if message["method"] == "initialize" else b""
        data = response(message["id"], answer)
        if answer.delay:
            asyncio.get_running_loop().call_later(answer.delay, self._send, b"200 OK", data, session)
        else:
            self._send(b"200 OK", data, session)

    def _send(self, status: bytes, body: bytes = b"", more: bytes = b"") -> None:
        head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%b\r\n"
        self._transport.write(head % (status, len(body), more) + body)


def content_length(head: bytes) -> int:
    start = head.find(b"content-length:")
    return 0 if start < 0 else int(head[start + 15 :].split(b"\r\n", 1)[0])


async def main() -> None:
    answers, _ = from_arguments(argparse.ArgumentParser())
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(answers), "127.0.0.1", 0, backlog=512)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp", flush=True)
    await loop.run_in_executor(None, os.read, 0, 1)  # until whoever started us is gone


if __name__ == "__main__":
    asyncio.run(main())
