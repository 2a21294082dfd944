"""Short ways to write the events of a made-up Thread."""

from typing import Any

from interlock.vocabulary.conversation import CallEntry, OutputEntry, TextPart, Usage, UserEntry
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    EntriesRecorded,
    Event,
    MessageCompleted,
    StoredEvent,
    ThreadStarted,
    TurnEnded,
    TurnStarted,
    UsageRecorded,
)
from interlock.vocabulary.item import AgentMessageItem, ItemError, McpToolCallItem, UserMessageItem


class FixedClock:
    def monotonic(self) -> float:
        return 0.0

    def now_milliseconds(self) -> int:
        return 1000


def call_item(call_id: str, **members: Any) -> McpToolCallItem:
    return McpToolCallItem(id=call_id, server="git", tool="log", public_name="mcp__git__log", arguments={}, **members)


def call_started(call_id: str, turn_id: str = "u1") -> CallStarted:
    return CallStarted(turn_id=turn_id, step_id="s1", item=call_item(call_id))


def call_ended(call_id: str, turn_id: str = "u1") -> CallEnded:
    item = call_item(call_id, status="failed", error=ItemError(code="interrupted", message="the host stopped"))
    return CallEnded(turn_id=turn_id, step_id="s1", item=item, effect="unknown")


def user_said(text: str, turn_id: str = "u1") -> list[Event]:
    parts = (TextPart(text=text),)
    return [
        TurnStarted(turn_id=turn_id, input=parts, model="m1"),
        EntriesRecorded(turn_id=turn_id, entries=(UserEntry(content=parts),)),
        MessageCompleted(turn_id=turn_id, item=UserMessageItem(id=f"{turn_id}-user", content=parts)),
    ]


def one_call(call_id: str, turn_id: str = "u1") -> list[Event]:
    output = OutputEntry(call_id=call_id, content=(TextPart(text="interrupted"),), success=False)
    return [
        EntriesRecorded(turn_id=turn_id, entries=(CallEntry(call_id=call_id, name="mcp__git__log", arguments="{}"),)),
        call_started(call_id, turn_id),
        call_ended(call_id, turn_id),
        EntriesRecorded(turn_id=turn_id, entries=(output,)),
        UsageRecorded(turn_id=turn_id, usage=Usage(input_tokens=10, output_tokens=1)),
    ]


def model_said(text: str, turn_id: str = "u1") -> list[Event]:
    return [
        MessageCompleted(turn_id=turn_id, item=AgentMessageItem(id=f"{turn_id}-agent", text=text)),
        TurnEnded(turn_id=turn_id, status="completed", last_message=text),
    ]


def whole_thread() -> list[Event]:
    return [
        ThreadStarted(name="first", model="m0"),
        *user_said("hello"),
        *one_call("c1"),
        *model_said("done"),
        *user_said("again", "u2"),
        *one_call("c2", "u2"),
    ]


def stored(events: list[Event], thread_id: str = "a") -> list[StoredEvent]:
    return [
        StoredEvent(thread_id=thread_id, sequence=sequence, at=sequence * 10, event=event)
        for sequence, event in enumerate(events, 1)
    ]
