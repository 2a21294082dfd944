"""What the app server says unasked.

Owns: the table of notifications and requests that it sends, with their shapes.
Never: sends one, or has a shape without an entry in the table.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired

from typing_extensions import TypedDict

from interlock.surfaces.rpc import shapes


class ThreadNotice(TypedDict):
    threadId: str


class ThreadStarted(TypedDict):
    thread: shapes.Thread


class StatusChanged(TypedDict):
    threadId: str
    status: shapes.ThreadStatus


class NameUpdated(TypedDict):
    threadId: str
    threadName: str | None


class SettingsUpdated(TypedDict):
    threadId: str
    threadSettings: shapes.ThreadSettings


class TokenUsageUpdated(TypedDict):
    threadId: str
    turnId: str
    tokenUsage: shapes.ThreadTokenUsage


class Compacted(TypedDict):
    threadId: str
    turnId: str


class TurnNotice(TypedDict):
    threadId: str
    turn: shapes.Turn


class ItemStarted(TypedDict):
    item: shapes.ThreadItem
    threadId: str
    turnId: str
    startedAtMs: int


class ItemCompleted(TypedDict):
    item: shapes.ThreadItem
    threadId: str
    turnId: str
    completedAtMs: int


class Delta(TypedDict):
    threadId: str
    turnId: str
    itemId: str
    delta: str


class CallProgress(TypedDict):
    threadId: str
    turnId: str
    itemId: str
    message: str


class StartupStatus(TypedDict):
    threadId: str | None
    name: str
    status: Literal["starting", "ready", "failed", "cancelled"]
    error: str | None
    failureReason: Literal["reauthenticationRequired"] | None


class RequestResolved(TypedDict):
    threadId: str
    requestId: int


class TurnFailure(TypedDict):
    error: shapes.TurnError
    willRetry: bool
    threadId: str
    turnId: str


class Warned(TypedDict):
    threadId: str | None
    message: str


class ConfigurationWarning(TypedDict):
    summary: str
    details: str | None
    path: NotRequired[str]


class FormQuestion(TypedDict):
    threadId: str
    turnId: str | None
    serverName: str
    mode: Literal["form"]
    _meta: Any
    message: str
    requestedSchema: dict[str, Any]


class UrlQuestion(TypedDict):
    threadId: str
    turnId: str | None
    serverName: str
    mode: Literal["url"]
    _meta: Any
    message: str
    url: str
    elicitationId: str


class QuestionAnswer(TypedDict):
    action: Literal["accept", "decline", "cancel"]
    content: NotRequired[Any]
    _meta: NotRequired[Any]


NOTIFICATIONS: Final[Mapping[str, tuple[Any, str]]] = {
    "thread/started": (ThreadStarted, "A thread was started, resumed or forked by this connection."),
    "thread/status/changed": (StatusChanged, "A thread began or ended a turn, or waits for somebody's answer."),
    "thread/closed": (ThreadNotice, "A thread is not loaded any more; what is stored of it stays."),
    "thread/archived": (ThreadNotice, "A thread was archived."),
    "thread/unarchived": (ThreadNotice, "A thread was taken back from the archive."),
    "thread/name/updated": (NameUpdated, "A thread has another name."),
    "thread/settings/updated": (SettingsUpdated, "Later turns of the thread run with these settings."),
    "thread/tokenUsage/updated": (TokenUsageUpdated, "Tokens of the sampling that ended, and of the thread."),
    "thread/compacted": (Compacted, "The model's history of the thread was compacted."),
    "turn/started": (TurnNotice, "A turn began."),
    "turn/completed": (TurnNotice, "A turn ended: completed, failed or interrupted. Exactly one for each start."),
    "item/started": (ItemStarted, "A message or call began."),
    "item/completed": (ItemCompleted, "A message or call ended; its item is whole now."),
    "item/agentMessage/delta": (Delta, "A piece of the text of a message that is being written."),
    "item/plan/delta": (Delta, "A piece of a plan that is proposed in plan mode."),
    "item/mcpToolCall/progress": (CallProgress, "A running call told its progress."),
    "mcpServer/startupStatus/updated": (StartupStatus, "A server of a thread is starting, ready, or failed."),
    "serverRequest/resolved": (RequestResolved, "A question is settled; its prompt can go."),
    "error": (TurnFailure, "Why a turn failed; `turn/completed` follows."),
    "warning": (Warned, "Something people should know that stops nothing."),
    "configWarning": (ConfigurationWarning, "Something is odd in the configuration's files."),
}

SERVER_REQUESTS: Final[Mapping[str, tuple[Any, Any, str]]] = {
    "mcpServer/elicitation/request": (
        FormQuestion | UrlQuestion,
        QuestionAnswer,
        "A server asks a person, or a call wants an approval. Any answer that does not fit counts as decline.",
    ),
}
