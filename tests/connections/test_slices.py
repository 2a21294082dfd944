"""What one server sends holds the event loop for one turn at a time, counted and not timed."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from interlock.catalog.refresh import preparing
from interlock.catalog.registry import Registry
from interlock.connections import convert, http_client, http_listening, stdio
from interlock.connections.event_stream import EventStream, ServerSentEvent
from interlock.connections.outputs import Outputs
from interlock.connections.session import open_session
from interlock.connections.slices import TURN, Pace, Turns
from interlock.resources.payload import contributing
from interlock.surfaces.rpc.servers import resource_shape
from interlock.vocabulary.catalog import ToolListing
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.resource import Listing, Resource
from interlock.vocabulary.slices import Sliced, at_once, each
from interlock.vocabulary.tool import Tool, ToolResult
from tests.connections.fakes import config
from tests.connections.http_driver import configured
from tests.connections.servers import PATIENCE, scripted
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

MANY = 1000


def ticking(step: float) -> Turns:
    """A clock that goes on by `step` seconds whenever it is read, which is once a step of a work."""
    ticks = count()
    return Turns(clock=lambda: next(ticks) * step)


def steps(number: int) -> Sliced[str]:
    for _ in range(number):
        yield
    return "done"


class SomebodyElse:
    """Counts how often it has the event loop."""

    def __init__(self) -> None:
        self.turns = 0

    async def run(self) -> None:
        while True:
            self.turns += 1
            await anyio.lowlevel.checkpoint()


async def others_turns(turns: Turns, *works: Sliced[Any]) -> int:
    """How often somebody else had the event loop while `works` were done side by side."""
    other = SomebodyElse()
    async with anyio.create_task_group() as group:
        async with anyio.create_task_group() as working:
            for work in works:
                working.start_soon(turns.do, work)
            group.start_soon(other.run)
        group.cancel_scope.cancel()
    return other.turns


@requirement("CON-1")
async def test_work_gives_way_after_every_turn() -> None:
    assert await others_turns(ticking(TURN / 10), steps(100)) >= 9


@requirement("CON-1")
async def test_works_side_by_side_share_one_turn() -> None:
    alone = await others_turns(ticking(TURN / 100), steps(2000))
    together = await others_turns(ticking(TURN / 100), *(steps(2000) for _ in range(10)))
    assert together >= 9 * alone


async def test_the_outcome_is_that_of_the_work_and_short_work_does_not_wait() -> None:
    assert await Turns().do(steps(0)) == "done"
    assert await ticking(TURN).do(steps(3)) == "done"
    assert at_once(steps(3)) == "done"


async def test_work_ends_between_two_steps_when_its_caller_is_cancelled() -> None:
    ended: list[str] = []

    def endless() -> Sliced[None]:
        try:
            while True:
                yield
        finally:
            ended.append("closed")

    with anyio.CancelScope() as scope:
        scope.cancel()
        await ticking(TURN).do(endless())
    assert ended == ["closed"]


# ---------------------------------------------------------------- what is cut into steps


def tools(number: int) -> Iterator[dict[str, Any]]:
    for n in range(number):
        yield {"name": f"t{n}", "inputSchema": {"type": "object", "properties": {"a": {"title": f"{n}"}}}}


def decoded() -> list[Tool]:
    return at_once(convert.decode(list(tools(MANY)), convert.tool))[0]


def decoding() -> Sliced[Any]:
    return convert.decode(list(tools(MANY)), convert.stateless_tool)


def becoming_a_source() -> Sliced[Any]:
    return preparing(Registry(), ToolListing(server="zoo", tools=tuple(decoded())), config())


def becoming_the_same_source() -> Sliced[Any]:
    registry, listing = Registry(), ToolListing(server="zoo", tools=tuple(decoded()))
    registry.install(at_once(preparing(registry, listing, config())))
    return registry.preparing("mcp:zoo", list(at_once(preparing(registry, listing, config())).new.handlers.values()))


def labelling() -> Sliced[Any]:
    return contributing("zoo", Listing(entries=tuple(Resource(uri=f"zoo://{n}", name=f"{n}") for n in range(MANY))))


def shown_to_a_client() -> Sliced[Any]:
    return each(resource_shape, [Resource(uri=f"zoo://{n}", name=f"{n}") for n in range(MANY)])


def checking() -> Sliced[Any]:
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "object"}}}}
    outputs = Outputs({"t": Tool(name="t", input_schema={}, output_schema=schema)})
    return outputs.checking("t", ToolResult(structured_content={"rows": [{"n": n} for n in range(MANY)]}))


@requirement("CON-1", "CAT-2")
@pytest.mark.parametrize(
    ("work", "times"),
    [
        (decoding, 1),
        (becoming_a_source, 2),
        (becoming_the_same_source, 2),
        (labelling, 1),
        (checking, 1),
        (shown_to_a_client, 1),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_grows_with_what_a_server_lists_takes_a_step_for_each_entry(work: Any, times: int) -> None:
    assert sum(1 for _ in work()) >= times * MANY


# ---------------------------------------------------------------- lines of a pipe


@requirement("CON-1")
@pytest.mark.parametrize("last", [{"result": {}}, {"exit": 0}], ids=["lives", "ends"])
async def test_a_flood_of_lines_is_handed_over_in_turns_and_whole(
    last: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = count()
    monkeypatch.setattr(stdio, "perf_counter", lambda: next(ticks) * TURN / 10)
    script: dict[str, Any] = {"test/flood": [{"raw": f"<<log line\n*{MANY}>>"}, last]}
    other = SomebodyElse()
    async with open_session(scripted(script), timeout=PATIENCE, era="handshake") as session:
        async with anyio.create_task_group() as group:
            group.start_soon(other.run)
            await anyio.lowlevel.checkpoint()
            before = other.turns
            with suppress(ServerFailed):
                await session.request("test/flood", {}, timeout=PATIENCE)
            group.cancel_scope.cancel()
        assert {entry.kind: entry.count for entry in session.diagnostics()} == {"noise": MANY}
    if "exit" not in last:  # what a server leaves behind at its end is read at once
        assert other.turns - before >= MANY / 20


# ---------------------------------------------------------------- bodies that are always there


class Unpacked:
    """The content of a response whose next chunk never has to be waited for, as when a little unpacks to much."""

    def __init__(self, chunk: bytes) -> None:
        self._chunks = [chunk] * MANY

    async def readany(self) -> bytes:
        return self._chunks.pop() if self._chunks else b""


async def of_a_stream(chunk: bytes) -> int:
    taken: list[ServerSentEvent] = []
    response: Any = SimpleNamespace(connection=None, content=Unpacked(chunk))
    await http_listening.read_events(response, EventStream(limit=1000), lambda event: bool(taken.append(event)))
    return len(taken)


async def of_a_body(chunk: bytes) -> int:
    response: Any = SimpleNamespace(
        connection=None, content=Unpacked(chunk), content_length=None, url="http://127.0.0.1/"
    )
    client = http_client.HttpClient(configured("http://127.0.0.1/"))
    return len(await client.read(response, len(chunk) * MANY, what="a call")) // len(chunk)


@requirement("CON-1")
@pytest.mark.parametrize("reading", [of_a_stream, of_a_body])
async def test_a_body_that_is_there_all_the_time_is_read_in_turns(
    reading: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = count()
    for module in (http_listening, http_client):
        monkeypatch.setattr(module, "Pace", partial(Pace, clock=lambda: next(ticks) * TURN / 10))
    other = SomebodyElse()
    async with anyio.create_task_group() as group:
        group.start_soon(other.run)
        assert await reading(b"data: {}\n\n") == MANY
        group.cancel_scope.cancel()
    assert other.turns >= MANY / 20


@requirement("CON-1")
def test_a_chunk_of_many_events_is_looked_through_in_steps() -> None:
    chunk = b":\n\n" * http_listening.PIECE
    assert sum(1 for _ in http_listening._giving(EventStream(limit=1000), chunk, bool)) >= 3
