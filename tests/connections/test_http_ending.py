"""A body whose connection ends, read from the moment at which its head is there."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import anyio
import pytest

from interlock.connections import http_listening
from interlock.connections.event_stream import EventStream
from interlock.connections.http_client import HttpClient
from interlock.connections.http_ending import Ending
from interlock.connections.http_listening import linger, read_events
from interlock.vocabulary.errors import ServerFailed
from tests.connections.http_driver import configured
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
GOOD = b"2\r\n{}\r\n0\r\n\r\n"
BAD = b"zz\r\n{}\r\n0\r\n\r\n"


@asynccontextmanager
async def answered_by(body: asyncio.Future[bytes]) -> AsyncIterator[aiohttp.ClientResponse]:
    """A response of which the head has come, and `body` comes when it is known. Then the server closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        writer.write(await body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, aiohttp.ClientSession() as session:
        port = server.sockets[0].getsockname()[1]
        async with session.get(f"http://127.0.0.1:{port}/") as response:
            yield response


async def read(response: aiohttp.ClientResponse) -> bytes:
    with anyio.fail_after(60), Ending(response):
        return await response.content.read()


async def as_a_body(response: aiohttp.ClientResponse) -> bool:
    client = HttpClient(configured("http://127.0.0.1/"))
    with pytest.raises(ServerFailed, match="the answer broke off"):
        await client.read(response, 1000, what="a call")
    return False


async def as_a_stream(response: aiohttp.ClientResponse) -> bool:
    return await read_events(response, EventStream(limit=1000), lambda _: True)


async def as_what_is_not_needed(response: aiohttp.ClientResponse) -> bool:
    await linger(response)
    return not response.content.exception()


@requirement("CON-7")
@pytest.mark.parametrize("reading", [as_a_body, as_a_stream, as_what_is_not_needed])
async def test_a_chunk_that_cannot_be_read_ends_the_body_also_when_it_comes_after_the_head(
    reading: Callable[[aiohttp.ClientResponse], Awaitable[bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_listening, "LINGER_SECONDS", 60.0)
    body: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    async with answered_by(body) as response:
        asyncio.get_running_loop().call_soon(body.set_result, BAD)
        with anyio.fail_after(30):
            assert not await reading(response)


async def test_a_connection_that_has_ended_before_the_body_is_read_ends_it_too() -> None:
    body: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    async with answered_by(body) as response:
        connection = response.connection
        assert connection is not None
        protocol = connection.protocol
        assert protocol is not None
        body.set_result(BAD)
        with anyio.fail_after(60):
            while protocol.transport is not None:  # noqa: ASYNC110 - to ask for its future would be to be told
                await anyio.sleep(0.01)
        with pytest.raises(aiohttp.ClientPayloadError, match="the connection ended within the body"):
            await read(response)


async def test_a_whole_body_is_read_whole() -> None:
    body: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    async with answered_by(body) as response:
        asyncio.get_running_loop().call_soon(body.set_result, GOOD)
        assert await read(response) == b"{}"
