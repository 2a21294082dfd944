"""The methods about threads.

Owns: starting, finding and reading threads for a client.
Never: keeps anything of a thread; the library does.
"""

from collections.abc import Sequence
from typing import Final, Literal, NotRequired

from typing_extensions import TypedDict

from interlock.surfaces.rpc import projection, shapes
from interlock.surfaces.rpc.live import LiveThread
from interlock.surfaces.rpc.method import After, Context, Count, Method, Params, SortDirection
from interlock.surfaces.rpc.paging import slice_of
from interlock.surfaces.rpc.pauses import Pauses
from interlock.surfaces.rpc.settings import Overrides, checked_model, permitted, settings_shape, tell_settings
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.thread import ThreadState


class OfThread(Params):
    thread_id: str


class StartParams(Overrides):
    """Settings for the turns of a new thread. An `ephemeral` one is in no list, and forgotten when it is closed."""

    ephemeral: bool | None = None


class ResumeParams(Overrides):
    thread_id: str
    exclude_turns: bool = False
    initial_turns_page: "TurnsPageParams | None" = None


class TurnsPageParams(Params):
    limit: Count | None = None
    sort_direction: SortDirection | None = None
    items_view: shapes.ItemsView | None = None


class ReadParams(OfThread):
    include_turns: bool = False


class TurnsListParams(TurnsPageParams):
    thread_id: str
    cursor: str | None = None


class ItemsListParams(OfThread):
    cursor: str | None = None
    limit: Count | None = None
    sort_direction: SortDirection | None = None
    turn_id: str | None = None


class NameParams(OfThread):
    name: str


class LoadedListParams(Params):
    cursor: str | None = None
    limit: Count | None = None


class ThreadResult(TypedDict):
    thread: shapes.Thread


class TurnsPage(TypedDict):
    data: list[shapes.Turn]
    nextCursor: str | None
    backwardsCursor: str | None


class StartResult(TypedDict):
    thread: shapes.Thread
    model: str
    modelProvider: str
    serviceTier: None
    cwd: str
    runtimeWorkspaceRoots: list[str]
    instructionSources: list[str]
    approvalPolicy: shapes.ApprovalPolicy
    approvalsReviewer: Literal["user"]
    sandbox: shapes.SandboxPolicy
    activePermissionProfile: None
    reasoningEffort: None
    multiAgentMode: Literal["explicitRequestOnly"]
    initialTurnsPage: NotRequired[TurnsPage | None]


class ItemEntry(TypedDict):
    turnId: str
    item: shapes.ThreadItem


class ItemsPage(TypedDict):
    data: list[ItemEntry]
    nextCursor: str | None
    backwardsCursor: str | None


class LoadedList(TypedDict):
    data: list[str]
    nextCursor: str | None


class UnsubscribeResult(TypedDict):
    status: Literal["notLoaded", "notSubscribed", "unsubscribed"]


class ElicitationCount(TypedDict):
    count: int
    paused: bool


class EmptyResult(TypedDict):
    pass


# ---- starting


async def start(context: Context, params: StartParams) -> After:
    application = context.application
    model = checked_model(application, params)
    overrides = permitted(application, params.of_thread)
    thread = await application.host.start_thread(overrides=overrides, extensions=context.client.extensions)
    if params.ephemeral:
        await application.make_ephemeral(thread)
    live = application.attend(thread)
    await live.settle(params.merged_into(live.settings, model))
    await live.join(context.client)
    return opened(context, live, turns=())


async def resume(context: Context, params: ResumeParams) -> After:
    application = context.application
    model = checked_model(application, params)
    loaded = params.thread_id in application.host.loaded_threads
    before = settings_shape(application, application.loaded(params.thread_id)) if loaded else None
    thread = await application.host.resume_thread(
        params.thread_id, overrides=permitted(application, params.of_thread), extensions=context.client.extensions
    )
    live = application.attend(thread)
    await live.settle(params.merged_into(live.settings, model))
    if before is not None:
        tell_settings(application, live, before)
    await live.join(context.client)
    turns = () if params.exclude_turns else turns_of(thread.state)
    answer = opened(context, live, turns=turns)
    if params.initial_turns_page is not None:
        page = params.initial_turns_page
        answer.result["initialTurnsPage"] = turns_page(thread.state, page, cursor=None)
    return answer


def opened(context: Context, live: LiveThread, turns: Sequence[shapes.Turn]) -> After:
    """The answer to a start: after it, the client follows the thread and hears how its servers start."""
    application = context.application
    state = live.thread.state
    shape = application.thread_shape(projection.record_of(state), forked_from=state.forked_from, turns=turns)
    policy = live.thread.next_policy
    result: StartResult = {
        "thread": shape,
        "model": live.settings.model or application.host.configuration.model.name or "",
        "modelProvider": application.provider,
        "serviceTier": None,
        "cwd": application.working_folder,
        "runtimeWorkspaceRoots": [application.working_folder],
        "instructionSources": [],
        "approvalPolicy": projection.approval_shape(policy),
        "approvalsReviewer": "user",
        "sandbox": projection.sandbox_shape(policy),
        "activePermissionProfile": None,
        "reasoningEffort": None,
        "multiAgentMode": "explicitRequestOnly",
    }

    def then() -> None:
        client = context.client
        client.notify("thread/started", {"thread": {**shape, "turns": []}})
        live.follow(client)
        live.tell_starts(client)

    return After(result, then)


# ---- reading


async def read(context: Context, params: ReadParams) -> ThreadResult:
    state = await context.application.stored(params.thread_id)
    turns = turns_of(state) if params.include_turns else ()
    record = projection.record_of(state)
    return {"thread": context.application.thread_shape(record, forked_from=state.forked_from, turns=turns)}


async def list_turns(context: Context, params: TurnsListParams) -> TurnsPage:
    state = await context.application.stored(params.thread_id)
    return turns_page(state, params, params.cursor)


def turns_page(state: ThreadState, params: TurnsPageParams, cursor: str | None) -> TurnsPage:
    turns = state.turns if params.sort_direction == "asc" else state.turns[::-1]
    page = slice_of(turns, lambda turn: turn.turn_id, cursor=cursor, limit=params.limit)
    view = params.items_view or "summary"
    return {
        "data": [projection.turn_shape(turn, view) for turn in page.entries],
        "nextCursor": page.next_cursor,
        "backwardsCursor": page.backwards,
    }


async def list_items(context: Context, params: ItemsListParams) -> ItemsPage:
    state = await context.application.stored(params.thread_id)
    turns = [turn for turn in state.turns if params.turn_id in (None, turn.turn_id)]
    if params.turn_id is not None and not turns:
        raise InvalidRequest(f"thread {state.thread_id} has no turn {params.turn_id[:100]!r}")
    entries = [(turn.turn_id, item_id, shape) for turn in turns for item_id, shape in projection.shapes_in(turn)]
    if params.sort_direction == "desc":
        entries.reverse()
    page = slice_of(entries, lambda entry: entry[1], cursor=params.cursor, limit=params.limit)
    return {
        "data": [{"turnId": turn_id, "item": shape()} for turn_id, _, shape in page.entries],
        "nextCursor": page.next_cursor,
        "backwardsCursor": page.backwards,
    }


def turns_of(state: ThreadState) -> list[shapes.Turn]:
    return [projection.turn_shape(turn, "full") for turn in state.turns]


def list_loaded(context: Context, params: LoadedListParams) -> LoadedList:
    names = sorted(context.application.host.loaded_threads)
    limit = len(names) or 1 if params.limit is None else params.limit
    page = slice_of(names, str, cursor=params.cursor, limit=limit, maximum=max(1, len(names)))
    return {"data": list(page.entries), "nextCursor": page.next_cursor}


# ---- the rest


async def set_name(context: Context, params: NameParams) -> EmptyResult:
    name = params.name.strip()
    if not name:
        raise InvalidRequest("a thread's name must not be blank")
    await context.application.loaded(params.thread_id).thread.rename(name)
    return {}


def unsubscribe(context: Context, params: OfThread) -> UnsubscribeResult:
    application = context.application
    if params.thread_id not in application.host.loaded_threads:
        return {"status": "notLoaded"}
    followed = application.part(context.client, application.loaded(params.thread_id))
    return {"status": "unsubscribed" if followed else "notSubscribed"}


def increment(context: Context, params: OfThread) -> ElicitationCount:
    pauses = context.application.loaded(params.thread_id).pauses
    pauses.begin(context.client)
    return _counted(pauses)


def decrement(context: Context, params: OfThread) -> ElicitationCount:
    pauses = context.application.loaded(params.thread_id).pauses
    pauses.end(context.client)
    return _counted(pauses)


def _counted(pauses: Pauses) -> ElicitationCount:
    return {"count": pauses.count, "paused": pauses.count > 0}


METHODS: Final = (
    Method(
        name="thread/start",
        params=StartParams,
        result=StartResult,
        run=start,
        says="Start a thread; returns once its required servers are ready. This connection follows it.",
    ),
    Method(
        name="thread/resume",
        params=ResumeParams,
        result=StartResult,
        run=resume,
        says="Load a stored thread, or join a loaded one. This connection follows it.",
        in_thread_order=True,
    ),
    Method(
        name="thread/read",
        params=ReadParams,
        result=ThreadResult,
        run=read,
        says="What is stored of a thread; it is not loaded for this.",
    ),
    Method(
        name="thread/turns/list",
        params=TurnsListParams,
        result=TurnsPage,
        run=list_turns,
        says="The turns of a thread page by page, newest first unless asked otherwise.",
    ),
    Method(
        name="thread/items/list",
        params=ItemsListParams,
        result=ItemsPage,
        run=list_items,
        says="The messages and calls of a thread page by page, oldest first unless asked otherwise.",
    ),
    Method(
        name="thread/loaded/list",
        params=LoadedListParams,
        result=LoadedList,
        run=list_loaded,
        says="The ids of the threads that are loaded now.",
    ),
    Method(
        name="thread/name/set",
        params=NameParams,
        result=EmptyResult,
        run=set_name,
        says="Name a loaded thread.",
        in_thread_order=True,
        answers_first=True,
    ),
    Method(
        name="thread/unsubscribe",
        params=OfThread,
        result=UnsubscribeResult,
        run=unsubscribe,
        says="Hear no more of a thread. One that nobody follows is closed after half an hour without a turn.",
    ),
    Method(
        name="thread/increment_elicitation",
        params=OfThread,
        result=ElicitationCount,
        run=increment,
        says="A question is put to a person by other means; meanwhile deadlines of the thread's calls stand still.",
    ),
    Method(
        name="thread/decrement_elicitation",
        params=OfThread,
        result=ElicitationCount,
        run=decrement,
        says="Such a question is over; with the last one, deadlines go on.",
    ),
)
