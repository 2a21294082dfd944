"""From the library's values to the shapes of the wire.

Owns: how a thread, a turn and an item look to a client (RPC-1, LIF-2).
Never: waits, reads the store, or decides anything.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, assert_never

from interlock.surfaces.rpc import shapes
from interlock.vocabulary.conversation import MediaPart, Part, TextPart, Usage
from interlock.vocabulary.event import ThreadRecord, TurnStatus
from interlock.vocabulary.item import (
    AgentMessageItem,
    ItemStatus,
    McpToolCallItem,
    ThreadItem,
    UserMessageItem,
)
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.thread import ThreadState, TurnState

HOST_IN_ITEMS: Final = "interlock"
HOST_ON_THE_WIRE: Final = "codex"
"""What clients know the host's own resource tools under when no server is named (BEHAVIOUR section 5)."""
RESOURCE_TOOLS: Final = frozenset({"list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"})

ITEM_STATUS: Final[Mapping[ItemStatus, Any]] = {
    "in_progress": "inProgress",
    "completed": "completed",
    "failed": "failed",
}
TURN_STATUS: Final[Mapping[TurnStatus, shapes.TurnStatus]] = {
    "in_progress": "inProgress",
    "completed": "completed",
    "failed": "failed",
    "interrupted": "interrupted",
}
IDLE: Final[shapes.ThreadStatus] = {"type": "idle"}
NOT_LOADED: Final[shapes.ThreadStatus] = {"type": "notLoaded"}


def seconds(milliseconds: int) -> int:
    return milliseconds // 1000


# ---- items


def item_shape(item: ThreadItem) -> shapes.ThreadItem:
    match item:
        case UserMessageItem():
            return {"type": "userMessage", "id": item.id, "clientId": None, "content": user_inputs(item.content)}
        case AgentMessageItem():
            return agent_message(item.id, item.text, item.citation)
        case McpToolCallItem():
            return call_shape(item)
        case _:
            assert_never(item)


def agent_message(item_id: str, text: str, citation: JsonObject | None = None) -> shapes.AgentMessage:
    return {
        "type": "agentMessage",
        "id": item_id,
        "text": text,
        "phase": None,
        "memoryCitation": None
        if citation is None
        else {"entries": list(citation.get("entries", ())), "threadIds": list(citation.get("rolloutIds", ()))},
        "delivery": None,
    }


def shapes_of(item: ThreadItem) -> tuple[tuple[str, Callable[[], shapes.ThreadItem]], ...]:
    """The items that clients know for one of ours, with their ids: a plan is an item of its own, which follows what
    was said before it."""
    own = (item.id, partial(item_shape, item))
    if not isinstance(item, AgentMessageItem) or item.plan is None:
        return (own,)
    proposed = (plan_of(item.id), partial(plan, plan_of(item.id), item.plan))
    return (own, proposed) if item.text.strip() else (proposed, own)


def shapes_in(turn: TurnState) -> Iterator[tuple[str, Callable[[], shapes.ThreadItem]]]:
    """All items of the turn that clients know, its compactions among them where they were."""
    compactions = deque(turn.compactions)
    for place, item in enumerate(turn.items):
        while compactions and compactions[0].place <= place:
            yield _compaction(compactions.popleft().id)
        yield from shapes_of(item)
    yield from [_compaction(later.id) for later in compactions]


def _compaction(compaction_id: str) -> tuple[str, Callable[[], shapes.ThreadItem]]:
    return compaction_id, partial(compaction, compaction_id)


def compaction(compaction_id: str) -> shapes.ContextCompaction:
    return {"type": "contextCompaction", "id": compaction_id}


def plan_of(message_id: str) -> str:
    """The id of the item for the plans that a message proposes."""
    return f"{message_id}-plan"


def plan(item_id: str, text: str) -> shapes.Plan:
    return {"type": "plan", "id": item_id, "text": text}


def call_shape(item: McpToolCallItem) -> shapes.McpToolCall:
    shape: shapes.McpToolCall = {
        "type": "mcpToolCall",
        "id": item.id,
        "server": _server(item),
        "tool": item.tool,
        "status": ITEM_STATUS[item.status],
        "arguments": item.arguments,
        "appContext": _app_context(item),
        "pluginId": item.plugin_id,
        "readOnlyHint": item.read_only_hint,
        "result": None,
        "error": None if item.error is None else {"message": item.error.message},
        "durationMs": item.duration,
    }
    if item.mcp_app_resource_uri is not None:
        shape["mcpAppResourceUri"] = item.mcp_app_resource_uri
    if item.result is not None:
        shape["result"] = {
            "content": list(item.result.content),
            "structuredContent": item.result.structured_content,
            "_meta": item.result.meta,
        }
    return shape


def _server(item: McpToolCallItem) -> str:
    of_host = item.server == HOST_IN_ITEMS and item.tool in RESOURCE_TOOLS and item.public_name == item.tool
    return HOST_ON_THE_WIRE if of_host else item.server


def _app_context(item: McpToolCallItem) -> shapes.AppContext | None:
    if item.connector_id is None:
        return None
    return {
        "connectorId": item.connector_id,
        "linkId": item.link_id,
        "resourceUri": item.mcp_app_resource_uri,
        "appName": item.app_name,
        "actionName": item.action_name,
    }


def user_inputs(parts: Iterable[Part]) -> list[shapes.UserInput]:
    return [_user_input(part) for part in parts]


def _user_input(part: Part) -> shapes.UserInput:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text, "text_elements": []}
        case MediaPart(kind="image" | "audio" as kind):
            return {"type": kind, "url": f"data:{part.mime_type};base64,{part.data}"}
        case MediaPart():
            return {"type": "text", "text": f"[file {part.name or part.mime_type}]", "text_elements": []}
        case _:
            assert_never(part)


# ---- turns


def turn_shape(turn: TurnState, view: shapes.ItemsView) -> shapes.Turn:
    """`view` "summary" holds what the user said and the last message of the model; see `itemsView`."""
    ended = turn.ended_at
    return {
        "id": turn.turn_id,
        "items": _items(turn, view),
        "itemsView": view,
        "status": TURN_STATUS[turn.status],
        "error": turn_error(turn.error) if turn.status == "failed" else None,
        "startedAt": seconds(turn.started_at) if turn.started_at else None,
        "completedAt": None if ended is None else seconds(ended),
        "durationMs": None if ended is None or not turn.started_at else max(0, ended - turn.started_at),
    }


def new_turn(turn_id: str, started_at: int | None) -> shapes.Turn:
    """A turn that has just begun; `started_at` is milliseconds."""
    return {
        "id": turn_id,
        "items": [],
        "itemsView": "notLoaded",
        "status": "inProgress",
        "error": None,
        "startedAt": None if started_at is None else seconds(started_at),
        "completedAt": None,
        "durationMs": None,
    }


def turn_error(sentence: str | None) -> shapes.TurnError:
    return {"message": sentence or "the turn failed", "codexErrorInfo": "other", "additionalDetails": None}


def _items(turn: TurnState, view: shapes.ItemsView) -> list[shapes.ThreadItem]:
    match view:
        case "full":
            return [shape() for _, shape in shapes_in(turn)]
        case "summary":
            said = [item for item in turn.items if isinstance(item, UserMessageItem)]
            answers = [item for item in turn.items if isinstance(item, AgentMessageItem)]
            return [*map(item_shape, said), *map(item_shape, answers[-1:])]
        case "notLoaded":
            return []
        case _:
            assert_never(view)


def usage_shape(usage: Usage) -> shapes.TokenUsage:
    return {
        "totalTokens": usage.total_tokens,
        "inputTokens": usage.input_tokens,
        "cachedInputTokens": usage.cached_input_tokens,
        "cacheWriteInputTokens": 0,
        "outputTokens": usage.output_tokens,
        "reasoningOutputTokens": usage.reasoning_output_tokens,
    }


# ---- threads


def thread_shape(
    record: ThreadRecord,
    *,
    status: shapes.ThreadStatus,
    provider: str,
    cwd: str,
    version: str,
    ephemeral: bool,
    forked_from: str | None = None,
    turns: Iterable[shapes.Turn] = (),
) -> shapes.Thread:
    return {
        "id": record.thread_id,
        "extra": None,
        "sessionId": record.thread_id,
        "forkedFromId": forked_from,
        "parentThreadId": None,
        "preview": record.preview,
        "ephemeral": ephemeral,
        "section": None,
        "sectionEnteredAt": None,
        "projectId": None,
        "historyMode": "legacy",
        "modelProvider": provider,
        "createdAt": seconds(record.created_at),
        "updatedAt": seconds(record.updated_at),
        "recencyAt": seconds(record.updated_at),
        "status": status,
        "path": None,
        "cwd": cwd,
        "cliVersion": version,
        "source": "appServer",
        "canAcceptDirectInput": None if status["type"] == "notLoaded" else True,
        "threadSource": None,
        "agentNickname": None,
        "agentRole": None,
        "gitInfo": None,
        "name": record.name,
        "turns": list(turns),
    }


def record_of(state: ThreadState) -> ThreadRecord:
    """What lists say of a thread whose state is at hand."""
    return ThreadRecord(
        thread_id=state.thread_id,
        created_at=state.created_at or 0,
        updated_at=state.updated_at or 0,
        name=state.name,
        preview=_preview(state),
        model=state.model,
        turns=len(state.turns),
        last_sequence=state.last_sequence,
    )


def _preview(state: ThreadState) -> str:
    for turn in state.turns:
        text = " ".join(part.text for part in turn.input if isinstance(part, TextPart)).strip()
        if text:
            return text[:200]
    return ""


def approval_shape(policy: Policy) -> shapes.ApprovalPolicy:
    if policy.approval == "never":
        return "never"
    if not policy.mcp_elicitations:
        return {"granular": {"mcp_elicitations": False, "rules": True, "sandbox_approval": True}}
    return "on-request"


def sandbox_shape(policy: Policy) -> shapes.SandboxPolicy:
    if policy.full_access:
        return {"type": "dangerFullAccess"}
    return {"type": "readOnly", "networkAccess": False}
