"""Chat Completions: requests out, chunks in.

Owns: both translations, with what vLLM, Ollama and other endpoints do differently.
Never: waits, or keeps anything from one answer to the next.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from interlock.models.dialect import Stopped, new_call_id, parameters, stopped_by
from interlock.models.parts import AUDIO_FORMATS, MediaKind, data_url, file_name, kind, mime_type, placeholder
from interlock.vocabulary.conversation import (
    AssistantEntry,
    CallEntry,
    Entry,
    EntryCompleted,
    MediaPart,
    ModelEvent,
    ModelRequest,
    OpaqueEntry,
    OutputEntry,
    Part,
    SamplingCompleted,
    TextDelta,
    TextPart,
    Usage,
    UserEntry,
)
from interlock.vocabulary.json import JsonObject

PROVIDER = "openai-chat"
"""Gives no opaque entries: this API has none."""


class ChatDialect:
    """POST /chat/completions."""

    provider = PROVIDER
    path = "/chat/completions"

    def __init__(self, media: Collection[MediaKind]) -> None:
        self._media = media

    def body(self, model: str, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": model,
            "messages": _Messages(self._media).of(request),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": parameters(tool.input_schema),
                    },
                }
                for tool in request.tools
            ]
        if request.output_schema is not None:
            schema = {"name": "final_message", "schema": dict(request.output_schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def reader(self) -> "ChatReader":
        return ChatReader()

    def amended(self, body: dict[str, Any], complaint: str) -> dict[str, Any] | None:
        """Some endpoints do not know `stream_options`."""
        if "stream_options" not in body or "stream_options" not in complaint:
            return None
        return {name: value for name, value in body.items() if name != "stream_options"}


class _Messages:
    """The messages of a history. A tool's message holds text only, so its media follow in a user's message,
    after the last of a run of outputs: all outputs of an answer must stand directly behind it."""

    def __init__(self, media: Collection[MediaKind]) -> None:
        self._media = media
        self._messages: list[dict[str, Any]] = []
        self._held: list[dict[str, Any]] = []

    def of(self, request: ModelRequest) -> list[dict[str, Any]]:
        if request.instructions:
            self._messages.append({"role": "system", "content": request.instructions})
        for entry in request.entries:
            if not isinstance(entry, OutputEntry):
                self._release()
            self._add(entry)
        self._release()
        return self._messages

    def _add(self, entry: Entry) -> None:
        match entry:
            case UserEntry():
                self._messages.append({"role": "user", "content": self._content(entry.content)})
            case AssistantEntry():
                self._messages.append({"role": "assistant", "content": entry.text})
            case CallEntry():
                function = {"name": entry.name, "arguments": entry.arguments}
                call = {"id": entry.call_id, "type": "function", "function": function}
                self._answer().setdefault("tool_calls", []).append(call)
            case OutputEntry():
                content = self._output(entry)
                self._messages.append({"role": "tool", "tool_call_id": entry.call_id, "content": content})
            case OpaqueEntry():
                pass  # another provider's

    def _answer(self) -> dict[str, Any]:
        """The message of the model that is being put together."""
        if not self._messages or self._messages[-1]["role"] != "assistant":
            self._messages.append({"role": "assistant", "content": None})
        return self._messages[-1]

    def _output(self, entry: OutputEntry) -> str:
        lines: list[str] = []
        for part in entry.content:
            if isinstance(part, TextPart):
                lines.append(part.text)
            elif kind(part, self._media) is None:
                lines.append(placeholder(part))
            else:
                lines.append(f"[{part.kind} ({part.mime_type}): in the next user message]")
                self._held.append({"type": "text", "text": f"{part.kind} from the output of call {entry.call_id}:"})
                self._held.append(self._part(part))
        return "\n".join(lines)

    def _release(self) -> None:
        if self._held:
            self._messages.append({"role": "user", "content": self._held})
            self._held = []

    def _content(self, parts: Collection[Part]) -> str | list[dict[str, Any]]:
        """Plain text where there is nothing else: small endpoints do not know content parts."""
        converted = [self._part(part) for part in parts]
        if all(part["type"] == "text" for part in converted):
            return "\n".join(part["text"] for part in converted)
        return converted

    def _part(self, part: TextPart | MediaPart) -> dict[str, Any]:
        if isinstance(part, TextPart):
            return {"type": "text", "text": part.text}
        match kind(part, self._media):
            case "image":
                return {"type": "image_url", "image_url": {"url": data_url(part)}}
            case "audio":
                sound = {"data": part.data, "format": AUDIO_FORMATS[mime_type(part)]}
                return {"type": "input_audio", "input_audio": sound}
            case "file":
                return {"type": "file", "file": {"filename": file_name(part), "file_data": data_url(part)}}
            case None:
                return {"type": "text", "text": placeholder(part)}


@dataclass(slots=True)
class _Call:
    """A call that is still being written."""

    index: Any
    call_id: str = ""
    name: str = ""
    arguments: str = ""


class ChatReader:
    """One answer: text first, then its calls, given when the stream has ended."""

    done = False  # usage comes last, in a chunk of its own

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls: list[_Call] = []
        self._reason: str | None = None
        self._counted = False
        self._usage: Usage | None = None
        self._id: str | None = None

    def feed(self, event: JsonObject) -> Iterator[ModelEvent]:
        if event.get("error"):
            raise stopped_by(event["error"])
        if isinstance(identifier := event.get("id"), str):
            self._id = identifier
        self._usage = _usage(event.get("usage")) or self._usage
        self._counted = self._usage is not None and not event.get("choices")
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or choice.get("message") or {}
            for member in ("content", "refusal"):
                if isinstance(text := delta.get(member), str) and text:
                    self._text.append(text)
                    yield TextDelta(text=text)
            for piece in delta.get("tool_calls") or ():
                self._take(piece)
            self._reason = choice.get("finish_reason") or self._reason

    def finish(self) -> Iterator[ModelEvent]:
        match self._reason:
            case "content_filter":
                raise Stopped("filtered", "content_filter")
            case "length":
                raise Stopped("incomplete", "length")
            case None if not self._counted:  # a chunk with nothing but the count of tokens is an end, too
                raise Stopped("broken")
        if text := "".join(self._text):
            yield EntryCompleted(entry=AssistantEntry(text=text))
        for call in self._calls:
            call_id = call.call_id or new_call_id()
            yield EntryCompleted(entry=CallEntry(call_id=call_id, name=call.name, arguments=call.arguments))
        yield SamplingCompleted(usage=self._usage, response_id=self._id)

    def _take(self, piece: JsonObject) -> None:
        call = self._call(piece.get("index"), piece.get("id") or "")
        call.call_id = call.call_id or piece.get("id") or ""
        function = piece.get("function") or {}
        name, arguments = function.get("name") or "", function.get("arguments")
        if name != call.name:  # some repeat it in every piece
            call.name += name
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments)
        call.arguments += arguments or ""

    def _call(self, index: Any, call_id: str) -> _Call:
        """The call that a piece belongs to: by index; a new id under an old or absent index is a new call."""
        for call in reversed(self._calls):
            if call.index == index and (not call_id or call_id == call.call_id or not call.call_id):
                return call
        if index is None and not call_id and self._calls:
            return self._calls[-1]
        self._calls.append(_Call(index))
        return self._calls[-1]


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    return Usage(
        input_tokens=usage.get("prompt_tokens") or 0,
        cached_input_tokens=(usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0,
        output_tokens=usage.get("completion_tokens") or 0,
        reasoning_output_tokens=(usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0,
    )
