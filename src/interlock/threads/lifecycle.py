"""The life of one call, from its start to its single end.

Owns: the promise that every started item ends exactly once, whatever happens inside (LIF-1, LIF-4).
Never: retries, decides, or looks at what the operation does.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

import anyio
import anyio.lowlevel

from interlock.history.clip import clip_text
from interlock.vocabulary.conversation import Part
from interlock.vocabulary.errors import Effect, InterlockError, ServerFailed
from interlock.vocabulary.event import CallEnded, CallStarted, Event
from interlock.vocabulary.item import ItemError, ItemStatus, McpToolCallItem
from interlock.vocabulary.json import JsonValue
from interlock.vocabulary.ports import Clock
from interlock.vocabulary.tool import ToolResult


class Recorder(Protocol):
    """What the lifecycle needs of the Journal: stored when it returns."""

    async def record(self, event: Event) -> object: ...


@dataclass(slots=True)
class Attempt:
    """How far a running call has come; `sent` is set by the operation just before its request goes out.

    `reading` is set instead where the requests only read: then there is no effect that could be in question.
    `arguments` are set where they are not those that the model asked for (LIF-7); the ended item shows them.
    """

    sent: bool = False
    reading: bool = False
    arguments: JsonValue = None

    @property
    def effect(self) -> Effect:
        """What a call that ends here may have changed."""
        return "unknown" if self.sent else "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a call gave: the result as its item keeps it, and the parts that the model is shown."""

    result: ToolResult
    content: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The ended item as it was stored; `answer` is None when there is none (the item says why)."""

    item: McpToolCallItem
    answer: Answer | None = None


SENTENCE_LIMIT = 16 * 1024
"""Bytes of an error's sentence: a server may have written most of it."""

Operation = Callable[[Attempt], Awaitable[Answer]]


async def run_item(
    recorder: Recorder, start: CallStarted, operation: Operation, *, clock: Clock, scope: anyio.CancelScope
) -> Ending:
    """Run `operation` as the item of `start`; return its end once that is stored.

    Failures that the host foresees (InterlockError), results with is_error, and a call whose own
    `scope` was cancelled become a failed item. Cancellation from outside and defects of our own
    become one too, and then pass through.

    Raises:
        StorageFailed: the start or the end could not be stored.
    """
    began, attempt = clock.monotonic(), Attempt()
    ending = _failed(start.item, "internal", f"the call of {start.item.public_name!r} broke inside the host", "unknown")
    await _record(recorder, start)
    try:
        with scope:
            await anyio.lowlevel.checkpoint_if_cancelled()
            ending = _answered(start.item, await operation(attempt))
        if scope.cancelled_caught:
            ending = _cancelled(start.item, attempt)
    except InterlockError as error:
        ending = _failed(start.item, error.code, error.message, _effect(error))
    except anyio.get_cancelled_exc_class():
        ending = _cancelled(start.item, attempt)
        raise
    finally:
        item = replace(ending.item, duration=round((clock.monotonic() - began) * 1000))
        if attempt.arguments is not None:
            item = replace(item, arguments=attempt.arguments)
        ending = replace(ending, item=item)
        end = CallEnded(turn_id=start.turn_id, step_id=start.step_id, item=item, effect=item.effect)
        await _record(recorder, end)
    return ending


async def _record(recorder: Recorder, event: Event) -> None:
    # A start that may be stored owes an end, and an end is owed also by a cancelled call: neither is interrupted.
    with anyio.CancelScope(shield=True):
        await recorder.record(event)


def _answered(item: McpToolCallItem, answer: Answer) -> Ending:
    status: ItemStatus = "failed" if answer.result.is_error else "completed"
    return Ending(item=replace(item, status=status, result=answer.result), answer=answer)


def _failed(item: McpToolCallItem, code: str, message: str, effect: Effect) -> Ending:
    error = ItemError(code=code, message=clip_text(message, SENTENCE_LIMIT), effect=effect)
    return Ending(item=replace(item, status="failed", error=error))


def _effect(error: InterlockError) -> Effect:
    return error.effect if isinstance(error, ServerFailed) else "none"


def _cancelled(item: McpToolCallItem, attempt: Attempt) -> Ending:
    told = "while it ran" if attempt.sent or attempt.reading else "before it was sent"
    told += "; whether it took effect is unknown" if attempt.sent else ""
    return _failed(item, "cancelled", f"the call of {item.public_name!r} was cancelled {told}", attempt.effect)
