"""The methods about turns.

Owns: what a client may say when it begins, steers or interrupts a turn.
Never: runs one; the library does.
"""

from dataclasses import replace
from typing import Any, Final

from pydantic import Field
from typing_extensions import TypedDict

from interlock.surfaces.rpc import projection, shapes
from interlock.surfaces.rpc.method import Context, Method, Params
from interlock.surfaces.rpc.overrides import ApprovalPolicy, SandboxPolicy, overrides_of
from interlock.surfaces.rpc.settings import model_named, permitted, settings_shape, tell_settings
from interlock.surfaces.rpc.threads import EmptyResult, OfThread
from interlock.surfaces.rpc.turn_input import UserInput, parts_of
from interlock.surfaces.rpc.turn_settings import TurnSettings
from interlock.threads.turn import Turn
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.overrides import ThreadOverrides


class ModeSettings(Params):
    model: str
    developer_instructions: str | None = Field(default=None, alias="developer_instructions")  # snake case there


class CollaborationMode(Params):
    mode: str = "default"
    settings: ModeSettings


class TurnStartParams(OfThread):
    input: list[UserInput]
    model: str | None = None
    approval_policy: ApprovalPolicy | None = None
    sandbox_policy: SandboxPolicy | None = None
    output_schema: dict[str, Any] | None = None
    collaboration_mode: CollaborationMode | None = None

    @property
    def of_thread(self) -> ThreadOverrides:
        sandbox = self.sandbox_policy
        return overrides_of(
            self.approval_policy, full_access=None if sandbox is None else sandbox.type == "dangerFullAccess"
        )


class SteerParams(OfThread):
    expected_turn_id: str
    input: list[UserInput]


class InterruptParams(OfThread):
    turn_id: str


class TurnStartResult(TypedDict):
    turn: shapes.Turn


class SteerResult(TypedDict):
    turnId: str


async def start(context: Context, params: TurnStartParams) -> TurnStartResult:
    application, live = context.application, context.application.loaded(params.thread_id)
    overrides = permitted(application, params.of_thread)
    parts = await parts_of(params.input)
    settings, before = _settings(live.settings, params), settings_shape(application, live)
    await live.join(context.client)
    live.follow(context.client)
    await live.compaction_over()
    turn = await live.thread.start_turn(
        parts,
        model=model_named(application, settings.model),
        instructions=settings.instructions,
        output_schema=params.output_schema,
        plan_mode=settings.mode == "plan",
        overrides=overrides,
    )
    await live.settle(settings)
    tell_settings(application, live, before)
    return {"turn": projection.new_turn(turn.id, None)}


def _settings(settings: TurnSettings, params: TurnStartParams) -> TurnSettings:
    """What a turn says holds for the later ones too."""
    if params.collaboration_mode is not None:
        mode = params.collaboration_mode.settings
        return replace(
            settings,
            mode="plan" if params.collaboration_mode.mode == "plan" else "default",
            model=mode.model or settings.model,
            developer_instructions=mode.developer_instructions or settings.developer_instructions,
        )
    return replace(settings, model=params.model or settings.model)


async def steer(context: Context, params: SteerParams) -> SteerResult:
    parts = await parts_of(params.input)
    turn = running(context, params.thread_id, params.expected_turn_id)
    turn.steer(parts)
    return {"turnId": turn.id}


async def interrupt(context: Context, params: InterruptParams) -> EmptyResult:
    compaction = context.application.loaded(params.thread_id).compaction
    if compaction is not None and compaction.is_running and compaction.turn_id == params.turn_id:
        await compaction.interrupt()
    else:
        await running(context, params.thread_id, params.turn_id).interrupt()
    return {}


def running(context: Context, thread_id: str, turn_id: str) -> Turn:
    """The running turn, if it is the one that is meant. InvalidRequest: it is not."""
    thread = context.application.loaded(thread_id).thread
    turn = thread.running_turn
    if turn is None or turn.id != turn_id:
        raise InvalidRequest(f"thread {thread.id} is not running turn {turn_id[:100]!r}; it may have ended")
    return turn


METHODS: Final = (
    Method(
        name="turn/start",
        params=TurnStartParams,
        result=TurnStartResult,
        run=start,
        says="Begin a turn of a loaded thread; `turn/completed` tells its end. This connection follows the thread.",
        in_thread_order=True,
        answers_first=True,
    ),
    Method(
        name="turn/steer",
        params=SteerParams,
        result=SteerResult,
        run=steer,
        says="Say more to the running turn; the model hears it before its next sampling.",
        in_thread_order=True,
        answers_first=True,
    ),
    Method(
        name="turn/interrupt",
        params=InterruptParams,
        result=EmptyResult,
        run=interrupt,
        says="End the running turn as interrupted; answered when it has ended.",
        in_thread_order=True,
    ),
)
