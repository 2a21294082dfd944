"""Calls of a model through a Step: sent once, answered once, stored twice, whatever happens."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from interlock.testing import Gate, Sequencer
from interlock.threads.call import CallRules
from interlock.threads.step import CallResult, Step
from interlock.vocabulary.conversation import MediaPart, TextPart
from interlock.vocabulary.errors import InvalidRequest, ServerFailed, StorageFailed
from interlock.vocabulary.event import CallEnded, CallStarted, StoredEvent
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.notice import ProgressNotice
from interlock.vocabulary.snapshot import Snapshot
from interlock.vocabulary.tool import Progress, ToolAnnotations, ToolResult
from tests.manifest import requirement
from tests.threads.fakes import FakeConnection, config, snapshot, text_result, tool
from tests.threads.room import cancelled_at, open_room

pytestmark = pytest.mark.anyio

WRITES = ToolAnnotations()
ToolFunction = Callable[[JsonObject | None], Awaitable[ToolResult]]


async def echo(arguments: JsonObject | None) -> ToolResult:
    return text_result(str(arguments))


def notes(function: ToolFunction = echo) -> tuple[FakeConnection, Snapshot]:
    """A server "notes": a read-only tool `search`, a writing tool `save`, one for apps only, an odd name."""
    connection = FakeConnection("notes", {"search": function, "save": function, "odd name!": function})
    tools = [
        tool("search"),
        tool("save", WRITES),
        tool("show", meta={"ui": {"visibility": ["app"]}}),
        tool("odd name!"),
    ]
    return connection, snapshot((config("notes"), connection, tools))


@requirement("LIF-1", "CAT-9")
async def test_a_call_goes_out_once_with_the_remote_name_and_the_arguments_as_given(tmp_path: Path) -> None:
    connection, view = notes()
    async with open_room(tmp_path, view) as room:
        odd = next(spec.name for spec in room.step().tools if "odd" in spec.name)

        result = await room.step().call("c1", odd, '{"q": 1.0, "n": null}')

        assert connection.sent == [("odd name!", {"q": 1.0, "n": None})]
        assert (result.call_id, result.text, result.is_error) == ("c1", "{'q': 1.0, 'n': None}", False)
        start, end = await room.calls("c1")
        assert isinstance(start, CallStarted)
        assert isinstance(end, CallEnded)
        assert (start.item.status, start.item.public_name, end.item) == ("in_progress", odd, result.item)
        assert room.items() == [result.item]


BAD_INPUT = [
    ("mcp__notes__search", '{"q": ', "the arguments of 'mcp__notes__search' are not valid JSON"),
    ("mcp__notes__search", "[1]", "must be a JSON object"),
    ("mcp__notes__search", '{"q": 1e999}', "the number 1e999 is too large"),
    ("mcp__notes__erase", "{}", "there is no tool 'mcp__notes__erase' in this step"),
    ("mcp__other__search", "{}", "there is no tool 'mcp__other__search' in this step"),
    ("search", "{}", "there is no tool 'search' in this step"),
    ("mcp__notes__show", "{}", "is for apps only"),
    ("mcp__notes__save", "{}", "set approval_mode = 'approve' in [mcp_servers.notes.tools.save]"),
    ("list_mcp_resources", '{"cursor": "c"}', "cursor without a server"),
    ("list_mcp_resources", '{"server": 7}', "server"),
    ("list_mcp_resources", '{"server": "other"}', "'other'"),
    ("list_mcp_resources", "{", "not JSON"),
    ("list_mcp_resources", '{"x": 1e999}', "not JSON"),
    ("read_mcp_resource", '{"server": "notes", "uri": "  "}', "uri"),
    ("read_mcp_resource", '{"uri": "doc://a"}', "server"),
    (
        "read_mcp_resource",
        '{"server": "notes", "uri": "doc://refused"}',
        "cannot read 'doc://refused': there is no such",
    ),
    ("read_mcp_resource", '{"server": "notes", "uri": "doc://refused"}', "take a uri from a listing"),
]


@requirement("LIF-1", "APR-3")
@pytest.mark.parametrize(("name", "arguments", "sentence"), BAD_INPUT)
async def test_bad_input_costs_one_sentence_and_one_failed_item_and_nothing_else(
    tmp_path: Path, name: str, arguments: str, sentence: str
) -> None:
    connection, view = notes()
    async with open_room(tmp_path, view) as room:
        step = room.step()

        refused = await step.call("bad", name, arguments)

        assert sentence in refused.text
        assert "\n" not in refused.text
        assert refused.is_error
        assert connection.sent == []
        _, end = await room.calls("bad")
        assert isinstance(end, CallEnded)
        assert (end.item.status, end.effect, end.item) == ("failed", "none", refused.item)
        good = await step.call("good", "mcp__notes__search", {})
        assert not good.is_error
        assert room.journal.open_turn == "turn-1"


@requirement("LIF-1", "CON-3")
async def test_an_unknown_tool_is_refused_with_the_servers_that_may_still_bring_it(tmp_path: Path) -> None:
    _, view = notes()
    async with open_room(tmp_path, view) as room:
        early = Step(replace(room.step().binding, pending=("slow", "slower")), room.caller)

        refused = await early.call("c1", "mcp__slow__search", {})

        assert refused.text.endswith("call one of the tools offered, or try a later step: slow, slower still starting")


@requirement("LIF-3", "RES-7")
async def test_a_read_that_failed_says_nothing_of_an_effect_as_it_can_have_none(tmp_path: Path) -> None:
    connection, view = notes()
    connection.read_failure = ServerFailed("the connection was lost", server="notes", kind="lost", effect="unknown")
    async with open_room(tmp_path, view) as room:
        result = await room.step().call("r", "read_mcp_resource", {"server": "notes", "uri": "doc://a"})

        assert result.text == "cannot read 'doc://a': the connection was lost"
        assert result.item.effect == "none"
        end = (await room.calls("r"))[-1]
        assert isinstance(end, CallEnded)
        assert end.effect == "none"


@requirement("LIF-8")
async def test_a_call_id_used_before_is_refused_and_its_first_item_stays_untouched(tmp_path: Path) -> None:
    connection, view = notes()
    async with open_room(tmp_path, view) as room:
        step = room.step()
        first = await step.call("c1", "mcp__notes__search", {"q": 1})

        again = await step.call("c1", "mcp__notes__search", {"q": 2})

        assert again.is_error
        assert again.text == "call id 'c1' was used in this thread already; call again under a new id"
        assert connection.sent == [("search", {"q": 1})]
        assert room.items() == [first.item]
        assert len(await room.calls("c1")) == 2


@requirement("LIF-8")
async def test_a_call_id_is_refused_also_while_its_first_call_runs(tmp_path: Path) -> None:
    gate = Gate()

    async def held(arguments: JsonObject | None) -> ToolResult:
        await gate.wait()
        return text_result("first")

    connection, view = notes(held)
    async with open_room(tmp_path, view) as room, anyio.create_task_group() as tasks:
        step = room.step()
        tasks.start_soon(step.call, "c1", "mcp__notes__search", {})
        await gate.reached()

        assert (await step.call("c1", "mcp__notes__search", {})).is_error
        gate.open()
    assert connection.sent == [("search", {})]


@requirement("LIF-8", "LIF-1")
async def test_of_calls_made_at_once_under_one_id_one_runs_and_the_others_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, view = notes()
    results: list[CallResult] = []
    async with open_room(tmp_path, view) as room:
        step, append = room.step(), room.store.append

        async def taking_its_time(*arguments: Any, **options: Any) -> tuple[StoredEvent, ...]:
            await anyio.lowlevel.checkpoint()  # a database may be far away
            return await append(*arguments, **options)

        monkeypatch.setattr(type(room.store), "append", lambda store, *a, **o: taking_its_time(*a, **o))

        async def call(number: int) -> None:
            results.append(await step.call("c1", "mcp__notes__search", {"n": number}))

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(call, number)

        assert sorted(result.is_error for result in results) == [False, True, True, True, True]
        assert connection.sent == [("search", {"n": 0})]
        assert len(await room.calls("c1")) == 2


@requirement("LIF-1", "LIF-3", "CAT-9")
@pytest.mark.parametrize("moment", range(45))
async def test_wherever_a_call_is_cancelled_it_ends_once_and_was_never_sent_after(tmp_path: Path, moment: int) -> None:
    connection, view = notes()
    async with open_room(tmp_path, view) as room:
        async with anyio.create_task_group() as tasks:
            with cancelled_at(moment, tasks):
                await room.step().call("c1", "mcp__notes__search", {})

        start, end = await room.calls("c1")
        assert isinstance(start, CallStarted)
        assert isinstance(end, CallEnded)
        if not connection.sent:
            assert end.effect == "none"
        assert room.journal.state.open_calls == ()
        assert not (await room.step().call("c2", "mcp__notes__search", {})).is_error


@requirement("CAT-9", "LIF-1")
async def test_a_call_that_is_cancelled_at_the_last_moment_is_not_sent(tmp_path: Path) -> None:
    connection, view = notes()
    async with open_room(tmp_path, view) as room:
        with anyio.CancelScope() as scope:
            connection.when_ready = scope.cancel
            await room.step().call("c1", "mcp__notes__search", {})

        assert connection.sent == []
        end = (await room.calls("c1"))[-1]
        assert isinstance(end, CallEnded)
        assert (end.item.status, end.effect) == ("failed", "none")


@requirement("LIF-3", "CAT-9")
async def test_is_error_makes_the_item_failed_with_its_result_kept(tmp_path: Path) -> None:
    async def failing(arguments: JsonObject | None) -> ToolResult:
        return ToolResult(structured_content={"reason": "full"}, is_error=True, meta={"trace": 1})

    _, view = notes(failing)
    async with open_room(tmp_path, view) as room:
        result = await room.step().call("c1", "mcp__notes__search", {})

        assert (result.text, result.is_error) == ('{"reason":"full"}', True)
        assert result.item.status == "failed"
        assert result.item.result == ToolResult(structured_content={"reason": "full"}, is_error=True, meta={"trace": 1})


@requirement("LIF-3")
async def test_a_connection_lost_after_sending_means_that_the_outcome_is_unknown_and_says_so(tmp_path: Path) -> None:
    async def lost(arguments: JsonObject | None) -> ToolResult:
        raise ServerFailed("the connection to 'notes' was lost", server="notes", kind="lost", effect="unknown")

    _, view = notes(lost)
    async with open_room(tmp_path, view) as room:
        result = await room.step().call("c1", "mcp__notes__search", {})

        assert result.text == "the connection to 'notes' was lost; whether the call took effect is unknown"
        assert result.item.error is not None
        assert (result.item.error.code, result.item.error.effect) == ("server_failed", "unknown")


@requirement("LIF-3")
async def test_a_server_that_is_not_ready_in_time_means_that_nothing_was_sent(tmp_path: Path) -> None:
    connection, view = notes()
    connection.not_ready = ServerFailed("server 'notes' is still starting", server="notes")
    async with open_room(tmp_path, view) as room:
        result = await room.step().call("c1", "mcp__notes__search", {})

        assert (result.text, connection.sent) == ("server 'notes' is still starting", [])
        assert result.item.effect == "none"


@requirement("APR-3")
async def test_a_denied_call_waits_for_no_other_call(tmp_path: Path) -> None:
    gate = Gate()

    async def held(arguments: JsonObject | None) -> ToolResult:
        await gate.wait()
        return text_result("saved")

    connection = FakeConnection("notes", {"save": held})
    server = config("notes", tool_approval_modes={"save": "approve"})
    view = snapshot((server, connection, [tool("save", WRITES), tool("erase", WRITES)]))
    async with open_room(tmp_path, view) as room, anyio.create_task_group() as tasks:
        step = room.step()
        tasks.start_soon(step.call, "c1", "mcp__notes__save", {})
        await gate.reached()

        assert (await step.call("c2", "mcp__notes__erase", {})).is_error
        gate.open()


@requirement("LIF-5")
async def test_reads_run_at_once_and_a_write_runs_alone(tmp_path: Path) -> None:
    running, met = set[str](), anyio.Event()

    async def watched(arguments: JsonObject | None) -> ToolResult:
        me = str((arguments or {})["me"])
        running.add(me)
        if len(running) == 2:
            met.set()
        with anyio.fail_after(60):
            await met.wait()  # the two first reads meet inside
        await anyio.lowlevel.checkpoint()
        assert running == {me} if me.startswith("save") else all(name.startswith("search") for name in running)
        running.discard(me)
        return text_result(me)

    _, view = notes(watched)
    async with open_room(tmp_path, view, CallRules(approvals="allow")) as room:
        async with anyio.create_task_group() as tasks:
            for number, name in enumerate(["search", "search", "save", "search", "save", "save"]):
                tasks.start_soon(room.step().call, f"c{number}", f"mcp__notes__{name}", {"me": f"{name}{number}"})

        assert [item.status for item in room.items()] == ["completed"] * 6


@requirement("RES-9", "LIF-5")
async def test_resource_tools_run_beside_each_other_and_beside_reading_tools(tmp_path: Path) -> None:
    inside, met = 0, anyio.Event()

    async def meet() -> None:
        nonlocal inside
        inside += 1
        if inside == 3:
            met.set()
        with anyio.fail_after(60):
            await met.wait()

    async def searched(arguments: JsonObject | None) -> ToolResult:
        await meet()
        return text_result("found")

    connection, view = notes(searched)
    connection.before_reading = meet
    async with open_room(tmp_path, view) as room, anyio.create_task_group() as tasks:
        for call_id in ("r1", "r2"):
            tasks.start_soon(room.step().call, call_id, "read_mcp_resource", {"server": "notes", "uri": "doc://a"})
        tasks.start_soon(room.step().call, "s1", "mcp__notes__search", {})
        await met.wait()
    assert {item.status for item in room.items()} == {"completed"}


@requirement("RES-9", "LIF-5")
async def test_a_resource_tool_waits_for_a_write_and_enters_no_approval(tmp_path: Path) -> None:
    order = Sequencer("write began", "read asked", "write ended", "read answered")
    read_waits = anyio.Event()

    async def save(arguments: JsonObject | None) -> ToolResult:
        await order.step("write began")
        await order.step("read asked")
        assert not read_waits.is_set()
        await order.step("write ended")
        return text_result("saved")

    connection = FakeConnection("notes", {"save": save})
    server = config("notes", default_tools_approval_mode="prompt", tool_approval_modes={"save": "approve"})
    async with open_room(tmp_path, snapshot((server, connection, [tool("save", WRITES)]))) as room:
        step = room.step()

        async def read() -> None:
            result = await step.call("read", "read_mcp_resource", {"server": "notes", "uri": "doc://a"})
            read_waits.set()
            await order.step("read answered")
            assert not result.is_error

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(step.call, "write", "mcp__notes__save", {})
            await anyio.lowlevel.checkpoint()
            tasks.start_soon(read)
            while not await room.calls("read"):
                await anyio.lowlevel.checkpoint()
            await order.step("read asked")


@requirement("LIF-5")
async def test_a_server_that_allows_parallel_calls_is_not_held_up(tmp_path: Path) -> None:
    both = Sequencer("a", "b")

    async def meet(arguments: JsonObject | None) -> ToolResult:
        await both.step(str((arguments or {})["me"]))
        return text_result("met")

    connection = FakeConnection("notes", {"save": meet})
    server = config("notes", supports_parallel_tool_calls=True)
    view = snapshot((server, connection, [tool("save", WRITES)]))
    async with open_room(tmp_path, view, CallRules(approvals="allow")) as room, anyio.create_task_group() as tasks:
        for me in ("b", "a"):  # b waits inside its call for a, which comes later
            tasks.start_soon(room.step().call, me, "mcp__notes__save", {"me": me})


@requirement("RES-10")
async def test_the_model_is_shown_a_clipped_text_and_the_item_keeps_the_whole(tmp_path: Path) -> None:
    async def long(arguments: JsonObject | None) -> ToolResult:
        return text_result("x" * 5000)

    _, view = notes(long)
    async with open_room(tmp_path, view, CallRules(output_limit=120)) as room:
        for name, arguments in [
            ("mcp__notes__search", {}),
            ("read_mcp_resource", {"server": "notes", "uri": "doc://" + "y" * 5000}),
        ]:
            result = await room.step().call(name, name, arguments)

            assert not result.is_error
            assert len(result.text.encode()) <= 120
            assert "characters left out" in result.text
            assert result.item.result is not None
            assert len(result.item.result.content[0]["text"]) >= 5000


async def test_an_image_reaches_the_model_as_a_part_of_its_own(tmp_path: Path) -> None:
    async def picture(arguments: JsonObject | None) -> ToolResult:
        text, image = {"type": "text", "text": "see"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}
        return ToolResult(content=(text, image))

    _, view = notes(picture)
    async with open_room(tmp_path, view) as room:
        result = await room.step().call("c1", "mcp__notes__search", {})

    assert result.content == (TextPart(text="see"), MediaPart(kind="image", data="aGk=", mime_type="image/png"))
    assert result.output.content == result.content


@requirement("LIF-1", "LIF-3")
async def test_a_call_whose_task_is_cancelled_while_its_start_is_stored_is_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by asyncio.timeout: a store sees a write through, and its waiter is cancelled at the next wait."""
    connection, view = notes()
    async with open_room(tmp_path, view) as room:
        append = room.store.append

        async def cancelled_meanwhile(*where: Any, **when: Any) -> Any:
            task = asyncio.current_task()
            assert task is not None
            stored = await append(*where, **when)
            task.cancel()
            return stored

        async def at_once(timeout: float, **rest: Any) -> None:
            """As a connection that is ready: nothing is waited for."""

        monkeypatch.setattr(room.store, "append", cancelled_meanwhile)
        monkeypatch.setattr(connection, "ready", at_once)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(room.step().call("c1", "mcp__notes__search", {}))
        _, end = await room.calls("c1")
        assert isinstance(end, CallEnded)
        assert (connection.sent, end.effect) == ([], "none")


async def test_closing_cancels_calls_which_write_their_end_and_answer(tmp_path: Path) -> None:
    gate = Gate()

    async def held(arguments: JsonObject | None) -> ToolResult:
        await gate.wait()
        return text_result("never")

    _, view = notes(held)
    async with open_room(tmp_path, view) as room:
        step = room.step()

        async def call() -> None:
            result = await step.call("c1", "mcp__notes__search", {})
            assert "was cancelled while it ran" in result.text
            assert result.item.effect == "unknown"

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await gate.reached()
            room.caller.close()

        with pytest.raises(InvalidRequest, match="its thread is closed"):
            await step.call("c2", "mcp__notes__search", {})
        assert await room.calls("c2") == []


async def test_a_misused_step_is_told_so_and_leaves_no_item(tmp_path: Path) -> None:
    _, view = notes()
    async with open_room(tmp_path, view) as room:
        step = room.step()
        with pytest.raises(InvalidRequest, match="needs a call id"):
            await step.call(" ", "mcp__notes__search", {})
        step.end()
        with pytest.raises(InvalidRequest, match="after its step was over"):
            await step.call("c1", "mcp__notes__search", {})
        assert room.items() == []


@requirement("LIF-4")
async def test_a_call_whose_start_cannot_be_stored_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connection, view = notes()
    async with open_room(tmp_path, view) as room:

        async def full(*args: object, **kwargs: object) -> None:
            raise StorageFailed("the disk is full")

        monkeypatch.setattr(room.store, "append", full)
        with pytest.raises(StorageFailed, match="the disk is full"):
            await room.step().call("c1", "mcp__notes__search", {})
    assert connection.sent == []


@requirement("LIF-6")
async def test_progress_is_told_as_it_happens(tmp_path: Path) -> None:
    gate = Gate()

    async def held(arguments: JsonObject | None) -> ToolResult:
        await gate.wait()
        return text_result("done")

    connection, view = notes(held)
    connection.progress = (Progress(progress=1, total=2), Progress(progress=2, total=2, message="nearly"))
    async with open_room(tmp_path, view) as room, anyio.create_task_group() as tasks:
        tasks.start_soon(room.step().call, "c1", "mcp__notes__search", {})
        await gate.reached()

        assert room.notices == [
            ProgressNotice(turn_id="turn-1", call_id="c1", progress=progress) for progress in connection.progress
        ]
        gate.open()
