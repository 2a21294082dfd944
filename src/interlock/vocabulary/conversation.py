"""What a language model is told and what it says, in no provider's dialect.

Owns: the parts of a message, the entries of the model's history, requests to a model and its events.
Never: knows a provider; adapters in `models` translate both ways.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.tool import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaPart:
    """Base64 data with its MIME type; `kind` says what the source called it."""

    kind: Literal["image", "audio", "file"]
    data: str
    mime_type: str
    name: str | None = None


Part: TypeAlias = TextPart | MediaPart


@dataclass(frozen=True, slots=True, kw_only=True)
class UserEntry:
    content: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantEntry:
    """A message of the model, raw: hidden markup included."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEntry:
    """A function call by the model; `arguments` is its JSON text as it came."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputEntry:
    """What the model is told about a call; clipped already. `success` False: the call failed."""

    call_id: str
    content: tuple[Part, ...]
    success: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueEntry:
    """An item of one provider (reasoning, say) to be given back to it unchanged; others skip it."""

    provider: str
    payload: JsonObject


Entry: TypeAlias = UserEntry | AssistantEntry | CallEntry | OutputEntry | OpaqueEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one sampling, or a sum of several."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            reasoning_output_tokens=self.reasoning_output_tokens + other.reasoning_output_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One sampling. `output_schema` asks for a final message in that JSON Schema."""

    entries: tuple[Entry, ...]
    instructions: str = ""
    tools: tuple[ToolSpec, ...] = ()
    output_schema: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of the message that is being written."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryCompleted:
    """A finished entry: AssistantEntry, CallEntry or OpaqueEntry, in the order in which they belong in the history."""

    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingCompleted:
    """The last event of every sampling that did not fail."""

    usage: Usage | None = None
    response_id: str | None = None


ModelEvent: TypeAlias = TextDelta | EntryCompleted | SamplingCompleted
