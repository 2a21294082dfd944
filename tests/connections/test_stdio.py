"""The stdio transport against real processes that write whatever they like."""

import json
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from interlock.connections.lines import MOST_TOGETHER, LineSplitter, LongLine, NotJson, answered_id, decode_leniently
from interlock.connections.process import EndingTimes
from interlock.connections.stdio import StdioChannel, last_words
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonValue
from interlock.vocabulary.server import HttpTransport, ServerConfig
from tests.connections.servers import PATIENCE, nothing_left_behind, scripted
from tests.manifest import requirement

pytestmark = pytest.mark.anyio


class Heard:
    """A Receiver that keeps everything, and lets a test wait for it."""

    def __init__(self) -> None:
        self.messages: list[JsonValue] = []
        self.failures: dict[int | str, ServerFailed] = {}
        self.end: ServerFailed | None = None
        self.odd: list[tuple[str, str]] = []
        self._changed = anyio.Event()

    def message(self, message: JsonValue, within: int | str | None = None) -> None:
        self.messages.append(message)
        self._change()

    def failed(self, request_id: int | str, error: ServerFailed) -> None:
        self.failures[request_id] = error
        self._change()

    def ended(self, error: ServerFailed) -> None:
        assert self.end is None, "said twice"
        self.end = error
        self._change()

    def diagnostic(self, kind: str, text: str) -> None:
        self.odd.append((kind, text))
        self._change()

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, question: Any) -> None:
        with anyio.fail_after(PATIENCE):
            while not question():
                await self._changed.wait()

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.odd]


@asynccontextmanager
async def running(config: ServerConfig) -> AsyncIterator[tuple[StdioChannel, Heard]]:
    heard = Heard()
    async with nothing_left_behind():
        channel = StdioChannel(config, times=EndingTimes(after_stdin=1.0, after_terminate=0.5))
        async with anyio.create_task_group() as group:
            await group.start(channel.run, heard)
            yield channel, heard
            group.cancel_scope.cancel()


def request(request_id: int, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}}


async def test_messages_go_out_and_come_back_in_order() -> None:
    async with running(scripted()) as (channel, heard):
        for number in range(100):
            await channel.send(request(number, "ping"))
        await heard.until(lambda: len(heard.messages) == 100)
    assert [message["id"] for message in heard.messages] == list(range(100))
    assert heard.odd == []


async def test_a_large_message_goes_both_ways_whole() -> None:
    text = "ä" * 3_000_000
    async with running(scripted()) as (channel, heard):
        await channel.send(request(1, "tools/call", {"arguments": {"text": text}}))
        await heard.until(lambda: heard.messages)
    assert json.loads(heard.messages[0]["result"]["content"][0]["text"]) == {"text": text}


@requirement("CON-8")
@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        ([{"raw": "server v1 is up\n"}], "noise"),
        ([{"raw": "{ not json\n"}], "noise"),
        ([{"raw": "[info] listing\n"}], "noise"),
        ([{"hex": "00000a"}], "noise"),
        ([{"hex": "fffe80810a"}], "invalid_utf8"),
        ([{"raw": "\n   \n\t\n\r\n"}], None),
    ],
)
async def test_what_is_no_message_is_counted_and_costs_nothing(steps: list[dict[str, str]], kind: str | None) -> None:
    async with running(scripted({"noisy": [*steps, {"result": {}}, *steps]})) as (channel, heard):
        await channel.send(request(1, "noisy"))
        await channel.send(request(2, "ping"))
        await heard.until(lambda: len(heard.messages) == 2)
    assert heard.kinds == ([kind] * 2 if kind else [])
    assert [message["id"] for message in heard.messages] == [1, 2]


@requirement("CON-8")
@pytest.mark.parametrize(
    ("raw", "result"),
    [
        ('{"jsonrpc":"2.0","id":$id,"result":{"v":1}}\r\n', {"v": 1}),
        ('  {"jsonrpc":"2.0","id":$id,"result":{"v":1}}  \n', {"v": 1}),
        ('\ufeff{"jsonrpc":"2.0","id":$id,"result":{"v":1}}\n', {"v": 1}),
        ('{"jsonrpc":"2.0","id":$id,"result":{"v":[NaN,Infinity,-Infinity]}}\n', {"v": [None, None, None]}),
        ('{"jsonrpc":"2.0","id":$id,"result":{"v":[1e400,-1' + "0" * 400 + "]}}\n", {"v": [None, None]}),
        ('{"jsonrpc":"2.0","id":$id,"result":{"v":"\\ud800"}}\n', {"v": "?"}),
        ('{"jsonrpc":"2.0","method":"x"}{"jsonrpc":"2.0","id":$id,"result":{"v":2}}\n', {"v": 2}),
    ],
)
async def test_what_is_nearly_a_message_is_read(raw: str, result: dict[str, Any]) -> None:
    async with running(scripted({"odd": [{"raw": raw}]})) as (channel, heard):
        await channel.send(request(1, "odd"))
        await heard.until(lambda: heard.messages and "result" in heard.messages[-1])
    assert heard.messages[-1] == {"jsonrpc": "2.0", "id": 1, "result": result}


@requirement("CON-8")
def test_joined_messages_are_read_up_to_a_bound_and_beyond_it_are_noise() -> None:
    messages, problem = decode_leniently(b"{} \t" * MOST_TOGETHER)
    assert (len(messages), problem) == (MOST_TOGETHER, "joined_messages")
    with pytest.raises(NotJson, match="noise"):
        decode_leniently(b"{}" * (MOST_TOGETHER + 1))


@requirement("CON-8")
async def test_invalid_utf8_within_a_message_is_replaced_and_counted() -> None:
    line = b'{"jsonrpc":"2.0","id":1,"result":{"v":"a\xffb"}}\n'
    async with running(scripted({"odd": [{"hex": line.hex()}]})) as (channel, heard):
        await channel.send(request(1, "odd"))
        await heard.until(lambda: heard.messages)
    assert heard.messages[0]["result"] == {"v": "a\ufffdb"}
    assert heard.kinds == ["invalid_utf8"]


async def test_a_message_too_deep_to_read_fails_its_own_request() -> None:
    deep = '{"jsonrpc":"2.0","id":$id,"result":' + '{"a":' * 3000 + "1" + "}" * 3001 + "\n"
    async with running(scripted({"deep": [{"raw": deep}]})) as (channel, heard):
        await channel.send(request(7, "deep"))
        await heard.until(lambda: heard.failures)
        await channel.send(request(8, "ping"))
        await heard.until(lambda: heard.messages)
    assert heard.failures[7].kind == "protocol"


@requirement("CON-8")
@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","id":$id,"result":{"v":"' + "<<x*3000000>>" + '"}}\n',
        '{"jsonrpc":"2.0","result":{"v":"' + "<<x*3000000>>" + '"},"id":$id}\n',
    ],
)
async def test_a_line_beyond_the_limit_fails_its_request_and_nothing_else(line: str) -> None:
    config = scripted({"long": [{"raw": line}]}, line_limit=1_000_000)
    async with running(config) as (channel, heard):
        await channel.send(request(5, "long"))
        await channel.send(request(6, "ping"))
        await heard.until(lambda: heard.messages)
    assert heard.kinds == ["line_too_long"]
    assert "line_limit" in heard.failures[5].message
    assert heard.failures[5].effect == "unknown"
    assert heard.messages == [{"jsonrpc": "2.0", "id": 6, "result": {}}]


@requirement("CON-8")
async def test_an_endless_line_is_told_of_before_it_ends_and_takes_no_memory() -> None:
    script = {"endless": [{"raw": '{"id":$id,"result":"' + "<<x*2000000>>"}, {"stop_reading": True}]}
    async with running(scripted(script, line_limit=65536)) as (channel, heard):
        await channel.send(request(1, "endless"))
        await heard.until(lambda: 1 in heard.failures)
    assert heard.kinds == ["line_too_long"]


@requirement("CON-8")
async def test_a_flood_on_stderr_is_drained_into_a_bounded_ring() -> None:
    flood = "<<some line of a hundred characters or so\n*20000>>"
    script = {"@start": [{"stderr": flood}], "loud": [{"stderr": flood}, {"result": {}}]}
    async with running(scripted(script)) as (channel, heard):
        await channel.send(request(1, "loud"))
        await heard.until(lambda: heard.messages)
        lines = channel.standard_error.splitlines()
        assert len(lines) <= 200
        assert len(channel.standard_error) <= 64 * 1024 + 8 * 1024


async def test_stderr_without_a_line_end_is_bounded_too() -> None:
    script = {"@start": [{"stderr": "<<e*500000>>"}], "ping": [{"result": {}}]}
    async with running(scripted(script)) as (channel, heard):
        await channel.send(request(1, "ping"))
        await heard.until(lambda: heard.messages)
        assert 0 < len(channel.standard_error) <= 64 * 1024


def test_last_words_steer_no_terminal_and_are_short() -> None:
    assert last_words("a\n\x1b[31mred\x1b[0m\nb\n\x1b]0;title\x07 \n") == "red / b / \\x1b]0;title\\x07"
    assert len(last_words("\x1b[2J" * 1_000_000)) < 2_500


def test_last_words_are_the_error_and_not_what_node_writes_around_it() -> None:
    text = """node:internal/modules/cjs/loader:1386
  throw err;
  ^

Error: Cannot find module '/srv/index.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1383:15)
    at node:internal/main/run_main_module:33:47 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v24.19.0
"""
    assert last_words(text).endswith("throw err; / Error: Cannot find module '/srv/index.js'")
    assert last_words("{\n}\n") == "{ / }"


def test_last_words_are_the_error_and_not_only_the_usage_that_a_program_explains_after_it() -> None:
    usage = "Usage: srv [options]\n\nExamples:\n  srv --token=T\n  srv login\n"
    assert last_words(f"Error: no token was given.\n{usage}") == (
        "Error: no token was given. / … / Examples: / srv --token=T / srv login"
    )
    assert last_words(f"Error: {'long ' * 200}\n{usage}").startswith("Error: long")
    assert last_words(f"{usage}srv: error: no token") == "srv --token=T / srv login / srv: error: no token"
    assert last_words(f"Error: an old one\n{usage}Error: the newest") == "srv --token=T / srv login / Error: the newest"


async def test_values_of_the_servers_environment_are_masked_in_what_it_prints() -> None:
    script = {"ping": [{"stderr": "token is tok-123456\n"}, {"raw": "token is tok-123456\n"}, {"result": {}}]}
    async with running(scripted(script, env={"TOKEN": "tok-123456", "FLAG": "1"})) as (channel, heard):
        await channel.send(request(1, "ping"))
        await heard.until(lambda: heard.messages)
        assert channel.standard_error.strip() == "token is ********"
    assert heard.odd == [("noise", "token is ********")]


async def test_a_server_that_stops_reading_fails_new_sends_and_blocks_nobody() -> None:
    async with running(scripted({"@start": [{"send": {"up": 1}}, {"stop_reading": 1}]})) as (channel, heard):
        await heard.until(lambda: heard.messages)
        big = request(1, "tools/call", {"text": "x" * 3_000_000})
        with anyio.fail_after(PATIENCE):
            await channel.send(big)
            await channel.send(big)
            with pytest.raises(ServerFailed, match="does not read its input") as caught:
                await channel.send(big)
        assert caught.value.effect == "none"


async def test_what_a_slow_reader_has_not_taken_yet_can_be_waited_for() -> None:
    async with running(scripted()) as (channel, heard), anyio.create_task_group() as tasks:
        await channel.flush()  # there is nothing to wait for
        assert channel.process_id is not None
        os.kill(channel.process_id, signal.SIGSTOP)
        flushed = anyio.Event()

        async def flush() -> None:
            await channel.flush()
            flushed.set()

        await channel.send(request(1, "tools/call", {"arguments": {"text": "x" * 1_000_000}}))
        tasks.start_soon(flush)
        await anyio.wait_all_tasks_blocked()
        assert not flushed.is_set()
        os.kill(channel.process_id, signal.SIGCONT)
        with anyio.fail_after(PATIENCE):
            await flushed.wait()
        await heard.until(lambda: heard.messages)


async def test_a_reader_that_is_gone_is_waited_for_no_longer() -> None:
    async with running(scripted()) as (channel, _):
        assert channel.process_id is not None
        os.kill(channel.process_id, signal.SIGSTOP)
        await channel.send(request(1, "tools/call", {"arguments": {"text": "x" * 1_000_000}}))
        os.kill(channel.process_id, signal.SIGKILL)
        with anyio.fail_after(PATIENCE):
            await channel.flush()


async def test_integers_beyond_64_bits_and_deep_nesting_are_sent_as_they_are() -> None:
    deep: Any = 2**70
    for _ in range(300):
        deep = [deep]
    async with running(scripted()) as (channel, heard):
        await channel.send(request(1, "tools/call", {"arguments": {"n": deep}}))
        await heard.until(lambda: heard.messages)
    (answer,) = heard.messages
    assert json.loads(answer["result"]["content"][0]["text"]) == {"n": deep}


async def test_what_is_no_json_is_refused_before_it_is_sent() -> None:
    async with running(scripted()) as (channel, heard):
        with pytest.raises(ServerFailed, match="not valid JSON"):
            await channel.send(request(1, "tools/call", {"text": "\ud800"}))
        await channel.send(request(2, "ping"))
        await heard.until(lambda: heard.messages)


@pytest.mark.parametrize(
    ("step", "words", "fact"),
    [
        ({"exit": 3}, "ended with exit code 3", {"exit_code": 3}),
        ({"exit": 0}, "ended with exit code 0", {"exit_code": 0}),
        ({"kill": "SIGKILL"}, "was ended by signal SIGKILL", {"signal": 9}),
    ],
)
async def test_the_end_of_the_process_is_told_with_its_status_and_last_words(
    step: dict[str, Any], words: str, fact: dict[str, int]
) -> None:
    script = {"die": [{"stderr": "first\nout of memory\n"}, {"raw": '{"half'}, step]}
    async with running(scripted(script)) as (channel, heard):
        await channel.send(request(1, "die"))
        await heard.until(lambda: heard.end)
    assert heard.end is not None
    assert words in heard.end.message
    assert "first / out of memory" in heard.end.message
    assert "in the middle of a message" in heard.end.message
    assert heard.end.kind == "lost"
    assert fact.items() <= heard.end.facts.items()


async def test_what_was_said_before_the_end_is_delivered_before_it() -> None:
    many = {"flood": {"times": 1000, "message": {"jsonrpc": "2.0", "method": "notifications/x"}}}
    async with running(scripted({"die": [many, {"exit": 0}]})) as (channel, heard):
        await channel.send(request(1, "die"))
        await heard.until(lambda: heard.end)
    assert len(heard.messages) == 1000


async def test_closing_stdout_is_the_end_though_the_process_lives() -> None:
    async with running(scripted({"shut": [{"close": 1}, {"stop_reading": 1}]})) as (channel, heard):
        await channel.send(request(1, "shut"))
        await heard.until(lambda: heard.end)
    assert heard.end is not None
    assert "closed its stdout" in heard.end.message


async def test_a_grandchild_that_holds_stdout_does_not_hide_the_end() -> None:
    async with running(scripted({"die": [{"fork": {"keep": True}}, {"exit": 2}]})) as (channel, heard):
        await channel.send(request(1, "die"))
        await heard.until(lambda: heard.end)
    assert heard.end is not None
    assert heard.end.facts["exit_code"] == 2


async def test_sending_to_a_server_that_is_gone_is_an_error_without_effect() -> None:
    async with running(scripted({"@start": [{"exit": 1}]})) as (channel, heard):
        await heard.until(lambda: heard.end)
    with pytest.raises(ServerFailed, match="could not be sent") as caught:
        await channel.send(request(1, "ping"))
    assert caught.value.effect == "none"


@requirement("CON-5")
@pytest.mark.parametrize("moment", range(6))
async def test_cancelled_at_any_moment_nothing_is_left(moment: int) -> None:
    async with nothing_left_behind():
        heard, channel = Heard(), StdioChannel(scripted())

        async def story() -> None:
            async with anyio.create_task_group() as group:
                await group.start(channel.run, heard)
                await channel.send(request(1, "ping"))
                await heard.until(lambda: heard.messages)
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as outer:
            outer.start_soon(story)
            for _ in range(moment):
                await anyio.lowlevel.checkpoint()
            outer.cancel_scope.cancel()


def test_a_stdio_channel_refuses_another_transport() -> None:
    with pytest.raises(TypeError):
        StdioChannel(ServerConfig(name="x", transport=HttpTransport(url="http://127.0.0.1")))


# ---------------------------------------------------------------- lines, without a process


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_lines_do_not_depend_on_how_the_bytes_were_cut(size: int) -> None:
    stream = b"a\nbb\n\nccc\r\n" + "é漢".encode() + b"\nrest"
    splitter = LineSplitter(100)
    lines: list[bytes | LongLine] = []
    for start in range(0, len(stream), size):
        lines += splitter.feed(stream[start : start + size])
    assert lines == [b"a", b"bb", b"", b"ccc\r", "é漢".encode()]
    assert splitter.rest() == b"rest"


@pytest.mark.parametrize("size", [1, 4, 9, 1000])
def test_a_long_line_is_told_of_twice_and_the_next_one_is_whole(size: int) -> None:
    stream = b"ok\n" + b"x" * 20 + b"\nfine\n"
    splitter = LineSplitter(10)
    told: list[bytes | LongLine] = []
    for start in range(0, len(stream), size):
        told += splitter.feed(stream[start : start + size])
    long_lines = [entry for entry in told if isinstance(entry, LongLine)]
    assert [entry for entry in told if isinstance(entry, bytes)] == [b"ok", b"fine"]
    assert [entry.tail is None for entry in long_lines] == [True, False]
    assert long_lines[0].head.startswith(b"xxx")


@pytest.mark.parametrize(
    ("head", "tail", "found"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{', b"", 7),
        (b'{"id": "abc", "result":', b"", "abc"),
        (b'{"result":{"id":9,', b'"x":1},"id":3}', 3),
        (b'{"result":{"id":9,', b'"x":1},"id":3,"jsonrpc":"2.0"}\r', 3),
        (b'{"result":{"id":9,', b'"y":{"a":1,"id":3}}', None),
        (b'{"id":7,"method":"ping"', b"", None),
        (b'{"id":true,"result":', b"", None),
        (b"garbage", b"garbage", None),
    ],
)
def test_an_id_is_recovered_only_where_it_is_certain(head: bytes, tail: bytes, found: int | str | None) -> None:
    assert answered_id(head, tail) == found


@pytest.mark.parametrize("line", [b"hello", b"12:30 started", b"{'a': 1}", b"", b'{"a":1} trailing'])
def test_text_is_not_read_as_a_message(line: bytes) -> None:
    if line:
        with pytest.raises(NotJson):
            decode_leniently(line)
    else:
        assert decode_leniently(line) == ([], None)
