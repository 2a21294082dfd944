"""The methods that change what is stored of a thread as a whole.

Owns: forking, rolling back, compacting and putting away threads for a client.
Never: does it itself; the library does.
"""

from functools import partial
from typing import Final

from interlock.surfaces.rpc import projection
from interlock.surfaces.rpc.application import Application
from interlock.surfaces.rpc.compacting import Compaction
from interlock.surfaces.rpc.method import After, Context, Count, Method
from interlock.surfaces.rpc.settings import Overrides, checked_model, model_named, permitted
from interlock.surfaces.rpc.threads import EmptyResult, OfThread, StartResult, ThreadResult, opened, turns_of
from interlock.vocabulary.errors import InvalidRequest


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
    live = context.application.loaded(params.thread_id)
    await live.compaction_over()
    thread = live.thread
    await thread.rollback(params.num_turns)
    state = thread.state
    record = projection.record_of(state)
    return {"thread": context.application.thread_shape(record, forked_from=state.forked_from, turns=turns_of(state))}


async def compact(context: Context, params: OfThread) -> After:
    """Answered at once; the rest is told as a turn, as clients of this wire expect, and stored as one."""
    application, live = context.application, context.application.loaded(params.thread_id)
    await live.compaction_over()
    if live.thread.running_turn is not None:
        raise InvalidRequest(f"thread {live.thread.id} runs a turn; wait for its end, or interrupt it")
    if not live.thread.state.entries:
        raise InvalidRequest(f"thread {live.thread.id} has nothing to compact yet")
    model = model_named(application, live.settings.model)

    def begin() -> None:
        live.compaction = compaction = Compaction(live.thread, live.tell)
        application.run(partial(compaction.run, model, live.settings.instructions))

    return After({}, begin)


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
