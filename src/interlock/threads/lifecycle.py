"""The life of one call, from its start to its single end.

Owns: the promise that every started item ends exactly once, whatever happens inside (LIF-1, LIF-4); which effect a call
without a result has (LIF-3); a call that waits for people may do so in the next host (QST-9).
Never: retries, decides, or looks at what the operation does.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import anyio

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

    async def record_surely(self, event: Event) -> object:
        """Whatever is cancelled: a start that may be stored owes an end, and a cancelled call owes one too."""
        ...


@dataclass(slots=True)
class Attempt:
    """How far a running call has come; `sent` is set by the operation just before its request goes out.

    `reading` is set instead where the requests only read: then there is no effect that could be in question.
    `earlier`: an earlier host has sent a round of it, so that it has reached its server whatever happens now (QST-9).
    `arguments` are set where they are not those that the model asked for (LIF-7); the ended item shows them.

    This is where the effect of a call without a result is decided. It is "none" if the server cannot have acted: what
    only reads, what was not sent, and what a connection knows not to have reached it. All else is "unknown", an error
    that the server itself answered with included: it may have come half-way, and SDKs use even -32602 for a result
    that does not fit its schema. What is unknown is said with the error, to models and people alike, but where the
    server answered: its own words tell more, as those of a result with is_error do.
    """

    sent: bool = False
    reading: bool = False
    earlier: bool = False
    arguments: JsonValue = None

    @property
    def effect(self) -> Effect:
        """What a call that ends here may have changed."""
        return "unknown" if (self.sent or self.earlier) and not self.reading else "none"

    def ended_by(self, error: InterlockError) -> ItemError:
        """What a call shows that `error` ends here."""
        effect, answered = self.effect, False
        if isinstance(error, ServerFailed) and not self.reading:
            effect = "unknown" if self.earlier else error.effect
            answered = error.kind == "rejected"
        return _error(error.code, error.message, effect, told=effect == "unknown" and not answered)


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


class Kept(Exception):
    """The call was cancelled because its host stops, and has no end yet: the next host goes on with it (QST-9)."""


SENTENCE_LIMIT = 16 * 1024
"""Bytes of an error's sentence: a server may have written most of it."""

UNKNOWN = "; whether the call took effect is unknown"

Operation = Callable[[Attempt], Awaitable[Answer]]


async def run_item(
    recorder: Recorder,
    start: CallStarted,
    operation: Operation,
    *,
    clock: Clock,
    scope: anyio.CancelScope,
    begun: bool = False,
    keeps: Callable[[], bool] = lambda: False,
) -> Ending:
    """Run `operation` as the item of `start`; return its end once that is stored.

    `begun`: the start is stored already. `keeps` tells, for a call that was cancelled, that it is left open.

    Failures that the host foresees (InterlockError), results with is_error, and a call whose own
    `scope` was cancelled become a failed item. Cancellation from outside and defects of our own
    become one too, and then pass through.

    Raises:
        StorageFailed: the start or the end could not be stored.
        Kept: the call was cancelled through its `scope`, and is left open.
    """
    began, attempt = clock.monotonic(), Attempt()
    came_to: Answer | ItemError | None = None
    kept = False
    if not begun:
        await recorder.record_surely(start)
    try:
        with scope:
            came_to = await operation(attempt)
        if scope.cancelled_caught:
            came_to, kept = _cancelled(start.item, attempt), keeps()
    except InterlockError as error:
        came_to = attempt.ended_by(error)
    except anyio.get_cancelled_exc_class():
        came_to, kept = _cancelled(start.item, attempt), keeps()
        raise
    finally:
        ending = _ended(start.item, attempt, came_to, duration=round((clock.monotonic() - began) * 1000))
        end = CallEnded(turn_id=start.turn_id, step_id=start.step_id, item=ending.item, effect=ending.item.effect)
        if not kept:
            await recorder.record_surely(end)
    if kept:
        raise Kept
    return ending


def _ended(item: McpToolCallItem, attempt: Attempt, came_to: Answer | ItemError | None, *, duration: int) -> Ending:
    """The end of `item`; None: something broke that nobody foresaw."""
    if isinstance(came_to, Answer):
        result = came_to.result
        status: ItemStatus = "failed" if result.is_error else "completed"
        ended = item.ended(status, duration=duration, arguments=attempt.arguments, result=result)
        return Ending(item=ended, answer=came_to)
    error = came_to or _error("internal", f"the call of {item.public_name!r} broke inside the host", "unknown")
    return Ending(item=item.ended("failed", duration=duration, arguments=attempt.arguments, error=error))


def _error(code: str, message: str, effect: Effect, *, told: bool = False) -> ItemError:
    """`told`: the sentence says that the effect is unknown."""
    more = UNKNOWN if told else ""
    return ItemError(code=code, message=clip_text(message, SENTENCE_LIMIT - len(more)) + more, effect=effect)


def _cancelled(item: McpToolCallItem, attempt: Attempt) -> ItemError:
    told = "while it ran" if attempt.sent or attempt.reading else "before it was sent"
    told += "; whether it took effect is unknown" if attempt.effect == "unknown" else ""
    return _error("cancelled", f"the call of {item.public_name!r} was cancelled {told}", attempt.effect)
