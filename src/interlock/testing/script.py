"""The vocabulary of scripts: what a model says, step by step.

Owns: the steps that ScriptedModel and ScriptedEndpoint play.
Never: plays them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from interlock.testing.gates import Gate
from interlock.vocabulary.conversation import Entry, Usage
from interlock.vocabulary.errors import ModelFailed
from interlock.vocabulary.json import JsonValue


@dataclass(frozen=True, slots=True)
class Say:
    """A message, written in pieces of `piece` characters (0: in one)."""

    text: str
    piece: int = 0

    def pieces(self) -> tuple[str, ...]:
        size = self.piece or len(self.text) or 1
        return tuple(self.text[start : start + size] for start in range(0, len(self.text), size))


@dataclass(frozen=True, slots=True)
class Call:
    """A function call. Arguments that are text go out as they are, also if they are no JSON.

    `call_id` None: "call-N", counted over the whole script.
    """

    name: str
    arguments: JsonValue = field(default_factory=dict)
    call_id: str | None = None

    def arguments_text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Give:
    """An entry as it is, such as a provider's reasoning item. For ScriptedModel."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Wait:
    """Go on only when the gate is open."""

    gate: Gate


@dataclass(frozen=True, slots=True)
class Fail:
    """The sampling fails here. For ScriptedModel."""

    error: ModelFailed = field(default_factory=lambda: ModelFailed("the script lets this sampling fail"))


@dataclass(frozen=True, slots=True)
class Refuse:
    """The endpoint refuses the request with an HTTP status. Must be the only step. For ScriptedEndpoint."""

    status: int
    message: str = "refused by the script"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Break:
    """The endpoint cuts the connection in the middle of the stream. For ScriptedEndpoint."""


@dataclass(frozen=True, slots=True)
class Raw:
    """Text written into the event stream as it is; the usual end of the stream is left out. For ScriptedEndpoint."""

    text: str


ModelStep: TypeAlias = Say | Call | Give | Wait | Fail
EndpointStep: TypeAlias = Say | Call | Wait | Refuse | Break | Raw

DEFAULT_USAGE = Usage(input_tokens=10, output_tokens=5)

StepT = TypeVar("StepT")
RequestT = TypeVar("RequestT")
Steps: TypeAlias = StepT | Sequence[StepT]
Sampling: TypeAlias = Steps[StepT] | Callable[[RequestT], Steps[StepT]]
"""One answer of a model: a step, several, or a function of the request that gives them."""


class Script(Generic[StepT, RequestT]):
    """Samplings in order, each played once; call ids are counted through the whole script."""

    def __init__(self, samplings: Sequence[Sampling[StepT, RequestT]]) -> None:
        self._samplings = tuple(samplings)
        self._played = 0
        self._calls = 0

    def __repr__(self) -> str:
        return f"<Script {self._played} of {len(self._samplings)} samplings played>"

    @property
    def played(self) -> int:
        return self._played

    @property
    def remaining(self) -> int:
        return len(self._samplings) - self._played

    def take(self, request: RequestT) -> tuple[StepT, ...] | None:
        """The steps of the next sampling; None when there is none."""
        if not self.remaining:
            return None
        sampling = self._samplings[self._played]
        self._played += 1
        steps = sampling(request) if callable(sampling) else sampling
        return tuple(steps) if isinstance(steps, Sequence) else (steps,)

    def name(self, call: Call) -> str:
        """The id of a call that is about to be played."""
        self._calls += 1
        return call.call_id or f"call-{self._calls}"
