"""The same conversation over standard streams, a Unix socket and WebSocket, from processes of their own."""

import asyncio
import errno
import fcntl
import json
import os
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from interlock.surfaces.rpc import listening as rpc_listening
from interlock.surfaces.rpc.listening import Listening, Stdio, UnixSocket, WebSocket, accepted, bound_socket, read_place
from interlock.surfaces.rpc.streams import Write, _writing, socket_streams
from interlock.surfaces.rpc.websocket import Door
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.secret import Secret
from tests.manifest import requirement
from tests.surfaces.rpc.programs import configured, ended, listening

pytestmark = pytest.mark.anyio

INITIALIZE = {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}}
READ = {"id": 2, "method": "mcpServer/resource/read", "params": {"server": "s", "uri": "s://one"}}
CONTENT = {"uri": "s://one", "mimeType": "text/plain", "text": "first"}
PAGE = b"x" * 60_000
"""More than a pipe holds, less than what asyncio buffers unasked."""
TOKEN = "0123456789abcdef0123"


def lines(*messages: Any) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


@requirement("RPC-1")
async def test_standard_streams_are_served_until_input_ends_and_every_request_is_answered(tmp_path: Path) -> None:
    async with configured(tmp_path) as home:
        process = home.start(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        output, _ = await asyncio.to_thread(process.communicate, lines(INITIALIZE, READ), 45)
        first, second = [json.loads(line) for line in output.splitlines()]
        assert first["result"]["codexHome"] == str(tmp_path)
        assert second == {"id": 2, "result": {"contents": [CONTENT], "originCallId": None}}
        assert process.returncode == 0


async def test_a_file_may_be_the_input_and_another_the_output(tmp_path: Path) -> None:
    async with configured(tmp_path) as home:
        (tmp_path / "in").write_bytes(lines(INITIALIZE, READ))
        await asyncio.to_thread(home.shell, "interlock app-server < in > out")
        answers = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
        assert [answer["id"] for answer in answers] == [1, 2]


@requirement("RPC-6")
async def test_a_frame_counts_as_sent_only_once_all_of_it_has_left() -> None:
    """A server that stopped earlier would take with it what lay in its buffer."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    write, end = await _writing(writing)
    async with anyio.create_task_group() as tasks:
        sending = anyio.Event()
        tasks.start_soon(_write_and_tell, write, sending)
        await anyio.wait_all_tasks_blocked()
        assert not sending.is_set()
        got = b""
        while len(got) < len(PAGE):
            got += await asyncio.to_thread(os.read, reading, 65536)
    assert got == PAGE
    assert sending.is_set()
    os.close(reading)
    with pytest.raises(ConnectionError):
        await _write_for_ever(write)
    end()


async def _write_for_ever(write: Write) -> None:
    while True:  # the loop hears of the reader's end in one of its rounds
        await write(b"more")


async def _write_and_tell(write: Write, done: anyio.Event) -> None:
    await write(PAGE)
    done.set()


@requirement("RPC-6")
async def test_the_socket_of_a_client_that_never_reads_is_closed_with_what_it_left_lying() -> None:
    client, server = socket.socketpair()
    transport = await socket_streams(server)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(transport.send, [PAGE] * 100)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    await transport.close("read faster")
    await anyio.lowlevel.checkpoint()  # the loop closes it in its next round
    assert server.fileno() == -1
    client.close()


@requirement("RPC-6")
async def test_a_listener_without_descriptors_waits_for_some_and_those_who_are_served_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bound_socket(tmp_path / "s") as listener, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(tmp_path / "s"))
        accept, attempts = asyncio.get_running_loop().sock_accept, []

        async def short(listening: socket.socket) -> Any:
            attempts.append(listening)
            if len(attempts) == 1:
                raise OSError(errno.EMFILE, "too many open files")
            return await accept(listening)

        monkeypatch.setattr(asyncio.get_running_loop(), "sock_accept", short, raising=False)
        monkeypatch.setattr(rpc_listening, "ACCEPT_AGAIN_AFTER", 0)
        (await accepted(listener)).close()
        assert len(attempts) == 2


@requirement("RPC-1", "RPC-6")
async def test_a_unix_socket_is_for_its_user_alone_and_serves_several_connections(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with configured(tmp_path) as home:
        with listening(home, "--listen", f"unix://{path}") as address:
            assert address == f"unix://{path}"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            pairs = [await asyncio.open_unix_connection(str(path)) for _ in range(2)]
            for _, writer in pairs:
                writer.write(lines(INITIALIZE, READ))
            for reader, writer in pairs:
                with anyio.fail_after(60):
                    answers = [json.loads(await reader.readline()) for _ in range(2)]
                assert answers[1]["result"]["contents"] == [CONTENT]
                writer.close()
        assert not path.exists()


def test_a_socket_of_another_server_and_other_things_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InvalidRequest, match="no socket"):
        bound_socket(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"
    with bound_socket(tmp_path / "s"), pytest.raises(InvalidRequest, match="another server"):
        bound_socket(tmp_path / "s")
    bound_socket(tmp_path / "s").close()  # left over: nobody listens there any more


@requirement("RPC-1", "RPC-5", "RPC-6")
async def test_a_turn_with_a_question_over_websocket(tmp_path: Path) -> None:
    async with configured(tmp_path) as home:
        with listening(home, "--listen", "ws://127.0.0.1:0") as address:
            async with connect(address) as wire:

                async def request(identity: int, method: str, params: Any) -> Any:
                    await wire.send(json.dumps({"id": identity, "method": method, "params": params}))
                    while True:
                        message = json.loads(await wire.recv())
                        if message.get("id") == identity and "method" not in message:
                            return message["result"]

                with anyio.fail_after(60):
                    await request(1, "initialize", INITIALIZE["params"])
                    thread_id = (await request(2, "thread/start", {}))["thread"]["id"]
                    said = [{"type": "text", "text": "go"}]
                    await request(3, "turn/start", {"threadId": thread_id, "input": said})
                    async for text in wire:
                        message = json.loads(text)
                        if message.get("method") == "mcpServer/elicitation/request":
                            answer = {"action": "accept", "content": {"name": "Ada"}}
                            await wire.send(json.dumps({"id": message["id"], "result": answer}))
                        if message.get("method") == "turn/completed":
                            assert message["params"]["turn"]["status"] == "completed"
                            break


@requirement("RPC-6")
async def test_pages_and_strange_hosts_are_kept_out(tmp_path: Path) -> None:
    async with configured(tmp_path) as home:
        with listening(home, "--listen", "ws://127.0.0.1:0", "--allow-origin", "http://good.test") as address:
            for headers in (["Host: evil.test"], ["Host: localhost", "Host: evil.test"], []):
                assert b" 403 " in await upgrade(address, *headers)
            assert b" 403 " in await upgrade(address, "Host: localhost", "Origin: http://evil.test")
            assert b" 101 " in await upgrade(address, "Host: localhost")
            async with connect(address, additional_headers={"Origin": "http://good.test"}) as wire:
                await wire.send(json.dumps(INITIALIZE))
                assert json.loads(await wire.recv())["id"] == 1


@requirement("RPC-6")
async def test_a_token_is_wanted_from_everybody_and_is_in_no_log(tmp_path: Path) -> None:
    async with configured(tmp_path) as home:
        (tmp_path / "token").write_text(TOKEN + "\n")
        arguments = ("--listen", "ws://0.0.0.0:0", "--token-file", "token")
        with ended(home.start(*arguments, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)) as process:
            assert process.stderr is not None
            address = process.stderr.readline().decode().strip().removeprefix("listening on ")
            address = address.replace("0.0.0.0", "127.0.0.1")
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
                with pytest.raises(InvalidStatus) as refused:
                    async with connect(address, additional_headers=headers):
                        pass
                assert refused.value.response.status_code == 401
            async with connect(address, additional_headers={"Authorization": f"Bearer {TOKEN}"}) as wire:
                await wire.send(json.dumps(INITIALIZE))
                assert json.loads(await wire.recv())["id"] == 1
            process.terminate()
            assert TOKEN.encode() not in process.stderr.read()


@requirement("RPC-6")
async def test_a_huge_frame_ends_its_own_connection_and_no_other(tmp_path: Path) -> None:
    async with configured(tmp_path) as home:
        with listening(home, "--listen", "ws://127.0.0.1:0") as address:
            async with connect(address) as other:
                size = (33 * 1024 * 1024).to_bytes(8, "big")
                heard = await upgrade(address, "Host: localhost", more=b"\x81\xff" + size + b"mask")
                assert (1009).to_bytes(2, "big") in heard
                await other.send(json.dumps(INITIALIZE))
                assert json.loads(await other.recv())["id"] == 1


async def upgrade(address: str, *headers: str, more: bytes = b"") -> bytes:
    """What a client hears that writes its own HTTP; the end of the first line is enough where nothing more is sent."""
    host, port = address.removeprefix("ws://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    usual = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")
    key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
    writer.write("\r\n".join(("GET / HTTP/1.1", *headers, *usual, key, "", "")).encode())
    with anyio.fail_after(60):
        heard = await reader.readline()
        if more:
            writer.write(more)
            heard += await reader.read()
    writer.close()
    return heard


@requirement("RPC-6")
def test_other_machines_are_not_let_in_without_a_token() -> None:
    place = read_place("ws://0.0.0.0:4500")
    with pytest.raises(InvalidRequest, match="token"):
        Listening(place=place).refuse_if_unsafe()
    Listening(place=place, token=Secret(TOKEN)).refuse_if_unsafe()
    Listening(place=read_place("ws://127.0.0.1:4500")).refuse_if_unsafe()


def test_places_are_read() -> None:
    assert read_place("stdio://") == Stdio()
    assert read_place("unix:///tmp/s") == UnixSocket(Path("/tmp/s"))
    assert read_place("ws://localhost:1") == WebSocket("127.0.0.1", 1)
    assert read_place("ws://[::1]:1") == WebSocket("::1", 1)
    for wrong in ("tcp://1", "unix://", "ws://example.org:1", "ws://127.0.0.1", "ws://127.0.0.1:x", "ws://1.1.1.1:1/x"):
        with pytest.raises(InvalidRequest, match="cannot listen"):
            read_place(wrong)


def test_only_loopback_names_are_hosts_without_a_token() -> None:
    door = Door()
    for host in ("localhost", "LOCALHOST:80", "127.0.0.1:4500", "[::1]:1", "[::1]"):
        assert door.admits_hosts([host])
    for host in ("", "evil.test", "localhost.evil.test:80", "127.0.0.1.evil.test"):
        assert not door.admits_hosts([host])
    assert not door.admits_hosts([])


def test_credentials_must_be_there_once() -> None:
    door = Door(token=Secret(TOKEN))
    assert door.admits_credentials([f"Bearer {TOKEN}"])
    for wrong in ([], [f"Bearer {TOKEN}"] * 2, ["Bearer é"], [TOKEN]):
        assert not door.admits_credentials(wrong)
