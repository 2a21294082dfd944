"""A call that is cancelled at any moment: it ends once, and nothing happens for it after its cancellation was there."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from interlock.questions.asking import Asking
from interlock.stores.outcome import Outcome
from interlock.testing import Call, Say, ScriptedModel
from interlock.threads.call import Caller, CallRules
from interlock.threads.hooks import HookedCall, Hooks
from interlock.threads.identity import new_id
from interlock.threads.lifecycle import Kept
from interlock.vocabulary.conversation import ModelRequest
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    Event,
    InputRequested,
    InputSent,
    QuestionAnswered,
    QuestionAsked,
    QuestionDeclined,
    QuestionWithdrawn,
    StoredEvent,
)
from interlock.vocabulary.form import Form
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.ports import Respondent
from interlock.vocabulary.question import Accept, Elicitation, HeldRequest, InputResponses, Question
from interlock.vocabulary.tool import ToolAnnotations, ToolResult
from tests.manifest import requirement
from tests.threads.fakes import FakeConnection, config, snapshot, text_result, tool
from tests.threads.room import TURN, Room, open_room

pytestmark = pytest.mark.anyio

FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
LIMIT = 400
"""More rounds of the event loop than the call takes."""

Cancel = Callable[["asyncio.Task[Any]", anyio.CancelScope], None]


class World:
    """What the call does outside, and whether it was cancelled already when it did it."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.interrupted = False
        self.asking: Asking | None = None
        self.done: list[str] = []
        self.too_late: list[str] = []

    def act(self, what: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.done.append(what)
        if task.cancelling() or self.scope.cancel_called or self.interrupted:
            self.too_late.append(what)

    async def hook(self, call: HookedCall) -> None:
        self.act("hook")
        await anyio.lowlevel.checkpoint()

    def second_hook(self, call: HookedCall) -> None:
        self.act("second hook")

    def reviewer(self, question: Question) -> Accept | None:
        self.act("reviewer")
        return Accept({"name": "Ada"}) if question.message == "Who?" else Accept()


class Asking2026(FakeConnection):
    """A server that asks before it answers, over a session through which everything goes at once."""

    def __init__(self, world: World) -> None:
        super().__init__("notes")
        self.world = world

    async def ready(self, timeout: float, **rest: Any) -> None:
        """It is."""

    async def call_tool(
        self,
        name: str,
        arguments: JsonObject | None,
        *,
        timeout: float,
        respondent: Respondent | None = None,
        input_responses: InputResponses | None = None,
        **_: Any,
    ) -> ToolResult:
        if input_responses is not None:
            self.world.act("second round")
            await anyio.lowlevel.checkpoint()
            return text_result("done")
        self.world.act("first round")
        await anyio.lowlevel.checkpoint()
        assert respondent is not None
        held = HeldRequest(server="notes", whereabouts="", method="tools/call", params={"name": name}, keys=("a",))
        asked = Elicitation(
            server="notes",
            params=FORM,
            era="stateless",
            call_id=respondent.call_id,
            turn_id=respondent.turn_id,
            certainty="known",
            held=held,
        )
        await respondent.answers((asked,))
        self.world.act("second round")
        await anyio.lowlevel.checkpoint()
        return text_result("done")


def store_slowly(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """An append takes three rounds of the loop, is seen through, and hands on the cancellation that came meanwhile."""
    append = room.store.append

    async def slowly(*where: Any, **when: Any) -> Sequence[StoredEvent]:
        outcome: Outcome[Sequence[StoredEvent]] = Outcome()
        stored = await append(*where, **when)
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, loop.call_soon, outcome.settle, stored)
        return await outcome.wait()

    monkeypatch.setattr(room.store, "append", slowly)


def bare(task: "asyncio.Task[Any]", scope: anyio.CancelScope) -> None:
    task.cancel()


def scoped(task: "asyncio.Task[Any]", scope: anyio.CancelScope) -> None:
    scope.cancel()


async def cancelled_after(moment: int, cancel: Cancel, directory: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the call was still running after so many rounds of the event loop, and was cancelled then."""
    world = World()
    async with asking_room(world, directory, monkeypatch) as room:

        async def call() -> None:
            with world.scope:
                await room.step().call("c1", "mcp__notes__write", {})

        task = asyncio.create_task(call())
        for _ in range(moment):
            await asyncio.sleep(0)
        running = not task.done()
        if running:
            cancel(task, world.scope)
        await asyncio.wait([task])
        check(world, await room.events(), running=running)
        return running


@asynccontextmanager
async def asking_room(
    world: World, directory: Path, monkeypatch: pytest.MonkeyPatch, *, keeps: bool = False
) -> AsyncIterator[Room]:
    """A Thread whose store is slow, and whose server asks before it answers. `keeps`: its host stops in peace."""
    view = snapshot((config("notes"), Asking2026(world), [tool("write", ToolAnnotations())]), policy=Policy())
    rules = CallRules(hooks=Hooks(before=(world.hook, world.second_hook)))
    async with open_room(directory, view, rules) as room:
        store_slowly(room, monkeypatch)
        world.asking = asking = Asking(
            room.journal,
            new_id=lambda: new_id(room.clock),
            policy=Policy,
            reviewer=world.reviewer,
            keeps=lambda turn_id: keeps,
        )
        room.caller = Caller(
            journal=room.journal,
            clock=room.clock,
            notify=room.notify,
            rules=rules,
            asking=asking,
            keeps=lambda turn_id: keeps,
        )
        yield room


def check(world: World, events: Sequence[Event], *, running: bool) -> None:
    assert world.too_late == []
    kinds = Counter(type(event) for event in events)
    assert kinds[CallStarted] == kinds[CallEnded] <= 1
    asked, ended = kinds[QuestionAsked], kinds[QuestionAnswered] + kinds[QuestionDeclined] + kinds[QuestionWithdrawn]
    assert asked <= ended
    assert kinds[InputSent] <= kinds[InputRequested] <= 1
    if "second round" in world.done:
        assert kinds[InputSent] == 1
    for event in events:
        if isinstance(event, CallEnded) and event.item.error is not None:
            assert event.item.error.code == "cancelled"
            assert event.effect == ("unknown" if "first round" in world.done else "none")
    if not running:
        assert world.done == ["hook", "second hook", "reviewer", "first round", "reviewer", "second round"]


async def moments_of(cut: Callable[[int], Awaitable[bool]]) -> int:
    """How many moments there were: cut at each, until one comes after the end, which `cut` tells with False."""
    moment, running = 0, True
    while running:
        assert moment < LIMIT
        running = await cut(moment)
        moment += 1
    return moment


@requirement("LIF-1", "LIF-3", "LIF-4")
@pytest.mark.parametrize("cancel", [bare, scoped])
async def test_whenever_a_call_is_cancelled_it_ends_once_and_does_nothing_any_more(
    cancel: Cancel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await moments_of(lambda moment: cancelled_after(moment, cancel, tmp_path / str(moment), monkeypatch)) > 20


async def interrupted_after(moment: int, directory: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the turn was still running after so many rounds of the event loop, and was interrupted then."""
    world = World()
    async with asking_room(world, directory, monkeypatch) as room, anyio.create_task_group() as tasks:

        def sampled(*steps: Any) -> Callable[[ModelRequest], Any]:
            def answer(request: ModelRequest) -> Any:
                world.act("sampling")
                return list(steps)

            return answer

        calls = [Call("mcp__notes__write", call_id=name) for name in ("c1", "c2")]
        turn = await room.turn(ScriptedModel(sampled(*calls), sampled(Say("done"))))
        tasks.start_soon(turn.run)
        for _ in range(moment):
            await asyncio.sleep(0)
        running = world.interrupted = room.journal.open_turn is not None
        await turn.interrupt()
        status = (await turn.finished()).status
        assert status == "interrupted" or (status, world.done.count("sampling")) == ("completed", 2)
        events = await room.events()
        assert world.too_late == []
        started = Counter(event.item.id for event in events if isinstance(event, CallStarted))
        assert started == Counter(event.item.id for event in events if isinstance(event, CallEnded))
        assert set(started.values()) <= {1}
        state = room.journal.state
        assert (state.open_calls, state.held_calls, state.unanswered, state.open_turn) == ((), (), (), None)
    return running


@requirement("LIF-1", "TRN-1")
async def test_whenever_a_turn_is_interrupted_all_that_it_began_ends_and_nothing_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await moments_of(lambda moment: interrupted_after(moment, tmp_path / str(moment), monkeypatch)) > 50


def stopping(task: "asyncio.Task[Any]", scope: anyio.CancelScope) -> None:
    """The host closes; the room does what its Thread would do."""


async def taken_up_and_cancelled_after(
    moment: int, cancel: Cancel, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> bool:
    """Whether a call of an earlier host still ran so many rounds after its question was answered."""
    world = World()
    async with asking_room(world, directory, monkeypatch, keeps=True) as room:
        question = Question(
            id="q", server="notes", message="Who?", subject=Form(), turn_id=TURN, call_id="c1", certainty="known"
        )
        request = HeldRequest(
            server="notes",
            whereabouts=config("notes").whereabouts(),
            method="tools/call",
            params={"name": "write", "arguments": {}},
            keys=("a",),
        )
        item = McpToolCallItem(id="c1", server="notes", tool="write", public_name="mcp__notes__write", arguments={})
        requested = InputRequested(turn_id=TURN, call_id="c1", request=request, questions=(question,))
        start = CallStarted(turn_id=TURN, step_id="s", item=item)
        await room.journal.record_all((start, requested, QuestionAsked(question=question)))
        (held,) = room.journal.facts.held_calls
        waiting = anyio.Event()

        async def take_up() -> None:
            with world.scope, suppress(Kept):
                await room.caller.take_up(held, ["q"], room.open_step, waiting=waiting.set)

        task = asyncio.create_task(take_up())
        await waiting.wait()
        answering = asyncio.create_task(_answer(world))
        for _ in range(moment):
            await asyncio.sleep(0)
        running = world.interrupted = not task.done()
        if running and cancel is stopping:
            room.caller.close()
        elif running:
            cancel(task, world.scope)
        await asyncio.wait([task, answering])
        events = await room.events()
        kinds = Counter(type(event) for event in events)
        assert world.too_late == []
        held_still = len(room.journal.facts.held_calls)
        assert (kinds[CallEnded], kinds[InputSent], held_still) in ((1, 1, 0), (0, 0, 1))
        assert kinds[InputSent] >= world.done.count("second round") >= (not running)
    return running


async def _answer(world: World) -> None:
    assert world.asking is not None
    with suppress(InvalidRequest):  # nobody waits for it any more
        await world.asking.answer("q", Accept({}))


@requirement("QST-9", "LIF-1")
@pytest.mark.parametrize("cancel", [bare, scoped, stopping])
async def test_whenever_a_call_that_was_taken_up_is_cut_off_it_is_left_as_it_was_or_has_its_end(
    cancel: Cancel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(moment: int) -> Awaitable[bool]:
        return taken_up_and_cancelled_after(moment, cancel, tmp_path / str(moment), monkeypatch)

    assert await moments_of(cut) > 15
