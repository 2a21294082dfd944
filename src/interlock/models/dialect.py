"""What the two APIs of OpenAI-like endpoints have in common.

Owns: the Protocols of a dialect and of the reader of one answer, and how a reader says that an answer came to nothing.
Never: waits; a dialect is pure.
"""

import secrets
from collections.abc import Iterator
from typing import Any, Literal, Protocol, TypeAlias

from interlock.vocabulary.conversation import ModelEvent, ModelRequest
from interlock.vocabulary.json import JsonObject

Stop: TypeAlias = Literal["failed", "overloaded", "incomplete", "filtered", "broken"]
"""failed: the provider says so. overloaded: it says so, and that trying again may help. incomplete: a limit
cut the answer. filtered: a content filter withheld it. broken: the stream ended before the answer did."""

TRY_AGAIN = {"server_error", "rate_limit_exceeded", "overloaded", "overloaded_error", "internal_error"}
"""Error codes of a running answer after which the same request may succeed."""


def new_call_id() -> str:
    """An id of ours for a call whose endpoint gave it none, or one that is taken."""
    return f"call_{secrets.token_hex(12)}"


class Stopped(Exception):
    """The answer came to nothing."""

    def __init__(self, stop: Stop, reason: str = "") -> None:
        super().__init__(reason)
        self.stop = stop
        self.reason = reason


class Reader(Protocol):
    """Makes model events of the decoded events of one answer. All methods raise Stopped."""

    @property
    def done(self) -> bool:
        """Whether nothing worth waiting for can follow."""
        ...

    def feed(self, event: JsonObject) -> Iterator[ModelEvent]: ...

    def finish(self) -> Iterator[ModelEvent]:
        """What is left when the stream has ended; the last event is SamplingCompleted."""
        ...


class Dialect(Protocol):
    """One API. `provider` names the dialect of opaque entries, `path` is below the base URL."""

    @property
    def provider(self) -> str: ...

    @property
    def path(self) -> str: ...

    def body(self, model: str, request: ModelRequest) -> dict[str, Any]: ...

    def reader(self) -> Reader: ...

    def amended(self, body: dict[str, Any], complaint: str) -> dict[str, Any] | None:
        """The request without an optional member that the provider has just refused; None: nothing to leave out."""
        ...


def parameters(schema: JsonObject) -> dict[str, Any]:
    """An input schema as both APIs take it: an object with `properties`, else as it came (CAT-12 goes further)."""
    return {"type": "object", "properties": {}, **schema}


def stopped_by(error: Any) -> Stopped:
    """An error object {"code", "message"} in the middle of an answer."""
    details = error if isinstance(error, dict) else {"message": error}
    code = str(details.get("code") or details.get("type") or "")
    text = str(details.get("message") or "no reason given")
    return Stopped("overloaded" if code in TRY_AGAIN else "failed", f"{code}: {text}" if code else text)
