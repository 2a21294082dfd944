"""From what a thread stores and notices to what its clients hear.

Owns: the order and the completeness of a thread's notifications: every item begins before it ends, once each.
Never: waits, sends, or reads a thread.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from interlock.surfaces.rpc import projection, shapes
from interlock.vocabulary.conversation import Usage
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    MessageCompleted,
    QuestionAnswered,
    QuestionAsked,
    QuestionDeclined,
    QuestionWithdrawn,
    StepCaptured,
    StoredEvent,
    ThreadArchived,
    ThreadCompacted,
    ThreadNamed,
    TurnEnded,
    TurnStarted,
    UsageRecorded,
)
from interlock.vocabulary.item import AgentMessageItem, ThreadItem
from interlock.vocabulary.notice import DeltaNotice, Notice, PlanNotice, ProgressNotice, ServerNotice, WarningNotice
from interlock.vocabulary.server import ServerReport, ServerStatus
from interlock.vocabulary.thread import compaction_id
from interlock.vocabulary.tool import Progress

News: TypeAlias = Iterator[tuple[str, dict[str, Any]]]

EARLY_LIMIT: Final = 1024
STARTUP: Final = {
    ServerStatus.STARTING: "starting",
    ServerStatus.READY: "ready",
    ServerStatus.FAILED: "failed",
    ServerStatus.AUTHENTICATION_REQUIRED: "failed",
    ServerStatus.CANCELLED: "cancelled",
}


class Translator:
    """One for each loaded thread; fed with its events and notices in the order in which they came."""

    def __init__(
        self,
        thread_id: str,
        *,
        usage: Usage,
        open_turn: str | None,
        open_questions: tuple[str, ...],
        open_calls: tuple[str, ...] = (),
        turn_began: int = 0,
    ) -> None:
        self._thread_id = thread_id
        self._usage = usage
        self._turn = open_turn
        self._turn_began = turn_began
        self._last_message: shapes.ThreadItem | None = None
        self._writing: dict[str, shapes.AgentMessage | shapes.Plan] = {}
        """Messages and plans that have begun, with what was told of their text."""
        self._written: set[str] = set()
        self._sampling = open_turn is not None
        self._step: str | None = None
        """The newest Step of whose start clients have heard; None: it is not known, so any may be it."""
        self._early: list[DeltaNotice | PlanNotice] = []
        self._calls: set[str] = set(open_calls)
        self._ended_calls: set[str] = set()
        self._early_progress: list[ProgressNotice] = []
        self._questions: set[str] = set(open_questions)

    @property
    def turn(self) -> str | None:
        """The turn of whose start clients have heard, and not of its end."""
        return self._turn

    @property
    def status(self) -> shapes.ThreadStatus:
        if self._turn is None and not self._questions:
            return projection.IDLE
        return {"type": "active", "activeFlags": ["waitingOnApproval"] if self._questions else []}

    def event(self, stored: StoredEvent) -> News:
        """What a stored event means to clients; most of what a thread stores is not for them."""
        match stored.event:
            case TurnStarted() as started:
                yield from self._begin_turn(started, stored.at)
            case TurnEnded() as ended:
                yield from self._end_turn(ended, stored.at)
            case MessageCompleted() as message:
                yield from self._message(message, stored.at)
            case CallStarted() as call:
                self._sampling = False
                yield self._item("item/started", call.turn_id, call.item, "startedAtMs", stored.at)
                yield from self._begin_progress(call.item.id)
            case CallEnded() as call:
                self._calls.discard(call.item.id)
                self._ended_calls.add(call.item.id)
                yield self._item("item/completed", call.turn_id, call.item, "completedAtMs", stored.at)
            case StepCaptured(step_id=step_id):
                self._sampling, self._step = True, step_id
                yield from self._catch_up(stored.at)
            case UsageRecorded() as recorded:
                yield self._tokens(recorded)
            case ThreadNamed() as named:
                yield "thread/name/updated", self._about(threadName=named.name)
            case ThreadArchived(archived=archived):
                yield "thread/archived" if archived else "thread/unarchived", self._about()
            case ThreadCompacted(turn_id=str(turn_id)):
                yield from self._compacted(turn_id, stored)
            case QuestionAsked() as asked:
                self._questions.add(asked.question.id)
                yield self._status()
            case QuestionAnswered() | QuestionWithdrawn() | QuestionDeclined() as settled:
                if settled.question_id in self._questions:
                    self._questions.discard(settled.question_id)
                    yield self._status()
            case _:
                pass

    def notice(self, notice: Notice, now: int) -> News:
        """What a notice means to clients; `now` is milliseconds since the Unix epoch."""
        match notice:
            case DeltaNotice() | PlanNotice():
                yield from self._delta(notice, now)
            case ProgressNotice():
                yield from self._progress(notice)
            case ServerNotice():
                yield from startup_news(notice.report, self._thread_id)
            case WarningNotice():
                yield "warning", self._about(message=notice.message)
            case _:
                pass

    # ---- turns

    def given_up(self, reason: str, now: int) -> News:
        """What clients are told of the running turn when nothing of it can be stored any more, its end included."""
        if self._turn is not None:
            yield from self._end_turn(TurnEnded(turn_id=self._turn, status="failed", error=reason), now)

    def _begin_turn(self, event: TurnStarted, at: int) -> News:
        self._turn, self._turn_began, self._last_message = event.turn_id, at, None
        self._writing.clear()
        self._written.clear()
        self._ended_calls.clear()
        self._early_progress.clear()
        yield self._status()
        yield "turn/started", self._about(turn=projection.new_turn(event.turn_id, at))

    def _end_turn(self, event: TurnEnded, at: int) -> News:
        self._turn, self._sampling = None, False
        self._early = [notice for notice in self._early if notice.turn_id != event.turn_id]
        yield from self._broken_off(event.turn_id, at)
        turn = projection.new_turn(event.turn_id, self._turn_began or at)
        turn["status"] = projection.TURN_STATUS[event.status]
        turn["completedAt"] = projection.seconds(at)
        turn["durationMs"] = max(0, at - (self._turn_began or at))
        if self._last_message is not None:
            turn["items"], turn["itemsView"] = [self._last_message], "summary"
        if event.status == "failed":
            turn["error"] = projection.turn_error(event.error)
            yield "error", self._about(error=turn["error"], willRetry=False, turnId=event.turn_id)
        yield self._status()
        yield "turn/completed", self._about(turn=turn)

    # ---- items

    def _message(self, event: MessageCompleted, at: int) -> News:
        item = event.item
        if isinstance(item, AgentMessageItem):
            self._sampling = True
            yield from self._catch_up(at)
            self._sampling = False
        if item.id not in self._writing:
            yield self._item("item/started", event.turn_id, item, "startedAtMs", at)
        self._writing.pop(item.id, None)
        self._written.add(item.id)
        completed = self._item("item/completed", event.turn_id, item, "completedAtMs", at)
        if isinstance(item, AgentMessageItem):
            self._last_message = completed[1]["item"]
            yield from self._plan(item, event.turn_id, at)
        yield completed

    def _plan(self, item: AgentMessageItem, turn_id: str, at: int) -> News:
        """The whole plan of a message that is whole, whatever was heard of it before."""
        item_id, begun = projection.plan_of(item.id), self._writing
        if item.plan is not None:
            if item_id not in begun:
                begun[item_id] = projection.plan(item_id, "")
                yield "item/started", self._about(turnId=turn_id, item={**begun[item_id]}, startedAtMs=at)
            begun[item_id]["text"] = item.plan
        yield from self._end_writing(item_id, turn_id, at)

    def _delta(self, notice: DeltaNotice | PlanNotice, now: int) -> News:
        """Notices and events come on two ways; a message begins only in its turn, after what went before it."""
        planned = isinstance(notice, PlanNotice)
        item_id = projection.plan_of(notice.item_id) if planned else notice.item_id
        if item_id in self._written or len(self._early) >= EARLY_LIMIT:
            return  # late: the message is whole
        if item_id not in self._writing:
            if not self._may_begin(notice):
                self._early.append(notice)
                return
            begun = projection.plan(item_id, "") if planned else projection.agent_message(item_id, "")
            self._writing[item_id] = begun
            yield "item/started", self._about(turnId=notice.turn_id, item={**begun}, startedAtMs=now)
        self._writing[item_id]["text"] += notice.text
        method = "item/plan/delta" if planned else "item/agentMessage/delta"
        yield method, self._about(turnId=notice.turn_id, itemId=item_id, delta=notice.text)

    def _may_begin(self, notice: DeltaNotice | PlanNotice) -> bool:
        """Not before the sampling that writes it is known to have begun, and everything before that to have ended."""
        return self._sampling and notice.turn_id == self._turn and self._step in (None, notice.step_id)

    def _end_writing(self, item_id: str, turn_id: str, at: int) -> News:
        """What began ends, with what was heard of it; what comes of it later is not told."""
        self._written.add(item_id)
        item = self._writing.pop(item_id, None)
        if item is not None:
            yield "item/completed", self._about(turnId=turn_id, item=item, completedAtMs=at)

    def _broken_off(self, turn_id: str, at: int) -> News:
        """Messages that the end of their turn cut off."""
        for item_id in tuple(self._writing):
            yield from self._end_writing(item_id, turn_id, at)

    def _catch_up(self, at: int) -> News:
        """Deltas that came before their sampling was known to have begun."""
        early, self._early = self._early, []
        for notice in early:
            yield from self._delta(notice, at)

    def _begin_progress(self, call_id: str) -> News:
        self._calls.add(call_id)
        early, self._early_progress = self._early_progress, []
        for notice in early:
            yield from self._progress(notice)

    def _progress(self, notice: ProgressNotice) -> News:
        """Not before the start of its call, nor after its end."""
        if notice.call_id in self._calls:
            progress = {"itemId": notice.call_id, "message": progress_text(notice.progress)}
            yield "item/mcpToolCall/progress", self._about(turnId=notice.turn_id, **progress)
        elif notice.call_id not in self._ended_calls and len(self._early_progress) < EARLY_LIMIT:
            self._early_progress.append(notice)

    def _item(self, method: str, turn_id: str, item: ThreadItem, when: str, at: int) -> tuple[str, dict[str, Any]]:
        return method, {
            "item": projection.item_shape(item),
            "threadId": self._thread_id,
            "turnId": turn_id,
            when: at,
        }

    # ---- the rest

    def _compacted(self, turn_id: str, stored: StoredEvent) -> News:
        """An item of its turn, of which clients hear once it is there."""
        about = self._about(turnId=turn_id, item=projection.compaction(compaction_id(turn_id, stored.sequence)))
        yield "item/started", {**about, "startedAtMs": stored.at}
        yield "item/completed", {**about, "completedAtMs": stored.at}
        yield "thread/compacted", self._about(turnId=turn_id)

    def _tokens(self, event: UsageRecorded) -> tuple[str, dict[str, Any]]:
        self._usage = self._usage + event.usage
        usage: shapes.ThreadTokenUsage = {
            "total": projection.usage_shape(self._usage),
            "last": projection.usage_shape(event.usage),
            "modelContextWindow": None,
        }
        return "thread/tokenUsage/updated", self._about(turnId=event.turn_id, tokenUsage=usage)

    def _status(self) -> tuple[str, dict[str, Any]]:
        return "thread/status/changed", self._about(status=self.status)

    def _about(self, **members: Any) -> dict[str, Any]:
        return {"threadId": self._thread_id, **members}


def startup_news(report: ServerReport, thread_id: str | None) -> News:
    """The state of a server's start; states of which clients know no name are silent."""
    status = STARTUP.get(report.status)
    if status is None:
        return
    wants_credentials = report.status is ServerStatus.AUTHENTICATION_REQUIRED
    yield (
        "mcpServer/startupStatus/updated",
        {
            "threadId": thread_id,
            "name": report.name,
            "status": status,
            "error": report.reason if status == "failed" else None,
            "failureReason": "reauthenticationRequired" if wants_credentials else None,
        },
    )


def progress_text(progress: Progress) -> str:
    """The server's own message, else the numbers."""
    if progress.message:
        return progress.message
    if progress.total is None:
        return f"{progress.progress:g}"
    return f"{progress.progress:g} of {progress.total:g}"
