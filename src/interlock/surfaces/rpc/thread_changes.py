"""The methods that change what is stored of a thread as a whole.

Owns: forking, rolling back, compacting and putting away threads for a client.
Never: does it itself; the library does.
"""

import os
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from interlock.surfaces.rpc import projection, shapes
from interlock.surfaces.rpc.application import Application
from interlock.surfaces.rpc.live import LiveThread
from interlock.surfaces.rpc.method import After, Context, Count, Method
from interlock.surfaces.rpc.settings import Overrides, checked_model, model_named, permitted
from interlock.surfaces.rpc.threads import EmptyResult, OfThread, StartResult, ThreadResult, opened, turns_of
from interlock.vocabulary.errors import InterlockError, InvalidRequest
from interlock.vocabulary.ids import uuid7
from interlock.vocabulary.ports import Model


class ForkParams(Overrides):
    thread_id: str
    last_turn_id: str | None = None
    before_turn_id: str | None = None
    ephemeral: bool | None = None
    exclude_turns: bool = False


class RollbackParams(OfThread):
    num_turns: Count


async def fork(context: Context, params: ForkParams) -> After:
    application = context.application
    model = checked_model(application, params)
    last_turn = await _last_turn(application, params)
    overrides = permitted(application, params.of_thread)
    thread = await application.host.fork_thread(
        params.thread_id, last_turn, overrides=overrides, extensions=context.client.extensions
    )
    if params.ephemeral:
        await application.make_ephemeral(thread)
    live = application.attend(thread)
    await live.settle(params.merged_into(live.settings, model))
    await live.join(context.client)
    return opened(context, live, turns=() if params.exclude_turns else turns_of(thread.state))


async def _last_turn(application: Application, params: ForkParams) -> str | None:
    """The turn that the fork ends with; None: the last one."""
    before = params.before_turn_id
    if before is None:
        return params.last_turn_id
    if params.last_turn_id is not None:
        raise InvalidRequest("lastTurnId and beforeTurnId exclude each other; send one")
    turns = [turn.turn_id for turn in (await application.stored(params.thread_id)).turns]
    if before not in turns:
        raise InvalidRequest(f"thread {params.thread_id} has no turn {before[:100]!r}")
    if before == turns[0]:
        raise InvalidRequest("nothing comes before the first turn of a thread; start a new one")
    return turns[turns.index(before) - 1]


async def rollback(context: Context, params: RollbackParams) -> ThreadResult:
    if params.num_turns < 1:
        raise InvalidRequest("numTurns must be at least 1")
    thread = context.application.loaded(params.thread_id).thread
    await thread.rollback(params.num_turns)
    state = thread.state
    record = projection.record_of(state)
    return {"thread": context.application.thread_shape(record, forked_from=state.forked_from, turns=turns_of(state))}


async def compact(context: Context, params: OfThread) -> After:
    """Answered at once; the rest is told as a turn, as clients of this wire expect, and stored as one."""
    application, live = context.application, context.application.loaded(params.thread_id)
    if live.thread.running_turn is not None:
        raise InvalidRequest(f"thread {live.thread.id} runs a turn; wait for its end, or interrupt it")
    if not live.thread.state.entries:
        raise InvalidRequest(f"thread {live.thread.id} has nothing to compact yet")
    model = model_named(application, live.settings.model)
    return After({}, lambda: application.run(partial(_compact, live, model)))


async def _compact(live: LiveThread, model: Model | None) -> None:
    turn_id, began = uuid7(_now(), os.urandom(10)), _now()
    try:
        await live.thread.compact(model=model, instructions=live.settings.instructions, as_turn=turn_id)
    except InterlockError as error:
        if live.thread.journal.turn(turn_id) is None:  # it did not even begin, and clients wait for its end
            live.tell(_never_begun(live.thread.id, projection.new_turn(turn_id, began), error.message))


def _never_begun(thread_id: str, turn: shapes.Turn, sentence: str) -> Iterator[tuple[str, Any]]:
    about, error = {"threadId": thread_id}, projection.turn_error(sentence)
    yield "turn/started", {**about, "turn": turn}
    yield "error", {**about, "turnId": turn["id"], "error": error, "willRetry": False}
    yield "turn/completed", {**about, "turn": {**turn, "status": "failed", "error": error}}


def _now() -> int:
    return time.time_ns() // 1_000_000


async def archive(context: Context, params: OfThread) -> After:
    await context.application.host.archive_thread(params.thread_id)
    return After({}, lambda: _tell_stranger(context, params.thread_id, "thread/archived"))


async def unarchive(context: Context, params: OfThread) -> After:
    application = context.application
    await application.host.archive_thread(params.thread_id, False)
    state = await application.stored(params.thread_id)
    shape = application.thread_shape(projection.record_of(state), forked_from=state.forked_from)
    return After({"thread": shape}, lambda: _tell_stranger(context, params.thread_id, "thread/unarchived"))


def _tell_stranger(context: Context, thread_id: str, method: str) -> None:
    """Who follows the thread hears of it anyhow."""
    if not any(live.thread.id == thread_id for live in context.application.followed_by(context.client)):
        context.client.notify(method, {"threadId": thread_id})


METHODS: Final = (
    Method(
        name="thread/fork",
        params=ForkParams,
        result=StartResult,
        run=fork,
        says="A new thread that stands where another one stood at the end of a turn. This connection follows it.",
    ),
    Method(
        name="thread/rollback",
        params=RollbackParams,
        result=ThreadResult,
        run=rollback,
        says="Drop the last turns of a loaded thread: their items, their part of the model's history, their origins.",
        in_thread_order=True,
    ),
    Method(
        name="thread/compact/start",
        params=OfThread,
        result=EmptyResult,
        run=compact,
        says="Have the model summarise its history; answered at once, and told as a turn with one item.",
        in_thread_order=True,
    ),
    Method(
        name="thread/archive",
        params=OfThread,
        result=EmptyResult,
        run=archive,
        says="Put a thread away in lists.",
        in_thread_order=True,
        answers_first=True,
    ),
    Method(
        name="thread/unarchive",
        params=OfThread,
        result=ThreadResult,
        run=unarchive,
        says="Take a thread back from the archive.",
        in_thread_order=True,
        answers_first=True,
    ),
)
