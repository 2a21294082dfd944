"""The Responses API: requests out, events in.

Owns: both translations, and the order of the entries of one answer.
Never: waits, or keeps anything from one answer to the next.
"""

from collections.abc import Collection, Iterator
from typing import Any

from interlock.models.dialect import Stopped, new_call_id, parameters, stopped_by
from interlock.models.parts import MediaKind, data_url, file_name, kind, only_text, placeholder
from interlock.vocabulary.conversation import (
    AssistantEntry,
    CallEntry,
    Entry,
    EntryCompleted,
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

PROVIDER = "openai-responses"
ENCRYPTED_REASONING = "reasoning.encrypted_content"


class ResponsesDialect:
    """POST /responses, stateless: nothing is stored at the provider, reasoning travels encrypted in the history."""

    provider = PROVIDER
    path = "/responses"

    def __init__(self, media: Collection[MediaKind]) -> None:
        self._media = media

    def body(self, model: str, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": model,
            "input": [item for entry in request.entries for item in self._items(entry)],
            "store": False,
            "stream": True,
            "include": [ENCRYPTED_REASONING],
        }
        if request.instructions:
            body["instructions"] = request.instructions
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": parameters(tool.input_schema),
                    "strict": False,
                }
                for tool in request.tools
            ]
            body["parallel_tool_calls"] = True
        if request.output_schema is not None:
            schema = {"type": "json_schema", "name": "final_message", "schema": dict(request.output_schema)}
            body["text"] = {"format": {**schema, "strict": True}}
        return body

    def reader(self) -> "ResponsesReader":
        return ResponsesReader()

    def amended(self, body: dict[str, Any], complaint: str) -> dict[str, Any] | None:
        """Models that do not reason refuse to encrypt their reasoning."""
        refused = "encrypted content" in complaint.lower() or "include" in complaint.lower()
        if "include" not in body or not refused:
            return None
        return {name: value for name, value in body.items() if name != "include"}

    def _items(self, entry: Entry) -> Iterator[dict[str, Any]]:
        match entry:
            case UserEntry():
                yield {"type": "message", "role": "user", "content": [self._part(part) for part in entry.content]}
            case AssistantEntry():
                content = [{"type": "output_text", "text": entry.text}]
                yield {"type": "message", "role": "assistant", "content": content}
            case CallEntry():
                yield {
                    "type": "function_call",
                    "call_id": entry.call_id,
                    "name": entry.name,
                    "arguments": entry.arguments,
                }
            case OutputEntry():
                yield {"type": "function_call_output", "call_id": entry.call_id, "output": self._output(entry)}
            case OpaqueEntry():
                if entry.provider == PROVIDER:
                    yield dict(entry.payload)

    def _output(self, entry: OutputEntry) -> str | list[dict[str, Any]]:
        text = only_text(entry.content)
        return [self._part(part) for part in entry.content] if text is None else text

    def _part(self, part: Part) -> dict[str, Any]:
        if isinstance(part, TextPart):
            return {"type": "input_text", "text": part.text}
        match kind(part, self._media):
            case "image":
                return {"type": "input_image", "image_url": data_url(part), "detail": "auto"}
            case "file":
                return {"type": "input_file", "filename": file_name(part), "file_data": data_url(part)}
            case "audio" | None:  # this API has no part for audio
                return {"type": "input_text", "text": placeholder(part)}


class ResponsesReader:
    """One answer. Items may finish out of order; entries are given in the order of the output."""

    def __init__(self) -> None:
        self._finished: dict[int, Any] = {}
        self._next = 0
        self._response: JsonObject | None = None

    @property
    def done(self) -> bool:
        return self._response is not None

    def feed(self, event: JsonObject) -> Iterator[ModelEvent]:
        match event.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                if isinstance(text := event.get("delta"), str) and text:
                    yield TextDelta(text=text)
            case "response.output_item.done":
                self._finished[_index(event, self._next + len(self._finished))] = event.get("item")
                yield from self._in_order()
            case "response.completed" | "response.done":
                self._response = _object(event.get("response"))
                yield from self._remaining(self._response.get("output"))
            case "response.failed":
                raise stopped_by(_object(event.get("response")).get("error"))
            case "response.incomplete":
                raise _incomplete(_object(event.get("response")))
            case "error":
                raise stopped_by(event.get("error") or event)

    def finish(self) -> Iterator[ModelEvent]:
        if self._response is None:
            raise Stopped("broken")
        identifier = self._response.get("id")
        yield SamplingCompleted(
            usage=_usage(self._response.get("usage")), response_id=identifier if isinstance(identifier, str) else None
        )

    def _in_order(self) -> Iterator[ModelEvent]:
        while self._next in self._finished:
            item = self._finished.pop(self._next)
            self._next += 1
            yield from _completed(item)

    def _remaining(self, output: Any) -> Iterator[ModelEvent]:
        """What never got its own event: items behind a gap, or all of them where only the whole output is sent."""
        if self._next == 0 and not self._finished and isinstance(output, list):
            self._finished = dict(enumerate(output))
        for index in sorted(self._finished):
            yield from _completed(self._finished[index])
        self._finished.clear()


def _completed(item: Any) -> Iterator[EntryCompleted]:
    """The entry of a finished output item; a reasoning item that nobody can read again is dropped."""
    match item:
        case {"type": "message"}:
            yield EntryCompleted(entry=AssistantEntry(text=_text(item)))
        case {"type": "function_call", "name": str(name)}:
            arguments = item.get("arguments")
            text = arguments if isinstance(arguments, str) else ""
            yield EntryCompleted(entry=CallEntry(call_id=_call_id(item), name=name, arguments=text))
        case {"type": "reasoning"} if not item.get("encrypted_content"):
            return  # nothing is stored at the provider, so its id alone would be refused
        case {"type": str()}:
            yield EntryCompleted(entry=OpaqueEntry(provider=PROVIDER, payload=item))


def _call_id(item: JsonObject) -> str:
    """The id under which the output goes back; one of ours where a compatible endpoint gives none."""
    call_id = item.get("call_id")
    return call_id if isinstance(call_id, str) and call_id.strip() else new_call_id()


def _text(item: JsonObject) -> str:
    parts = [part for part in item.get("content") or () if isinstance(part, dict)]
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)


def _incomplete(response: JsonObject) -> Stopped:
    reason = str(_object(response.get("incomplete_details")).get("reason") or "no reason given")
    return Stopped("filtered" if reason == "content_filter" else "incomplete", reason)


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    return Usage(
        input_tokens=_count(usage, "input_tokens"),
        cached_input_tokens=_count(_object(usage.get("input_tokens_details")), "cached_tokens"),
        output_tokens=_count(usage, "output_tokens"),
        reasoning_output_tokens=_count(_object(usage.get("output_tokens_details")), "reasoning_tokens"),
    )


def _count(counts: JsonObject, name: str) -> int:
    value = counts.get(name)
    return value if type(value) is int and value >= 0 else 0


def _index(event: JsonObject, otherwise: int) -> int:
    index = event.get("output_index")
    return index if type(index) is int else otherwise


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
