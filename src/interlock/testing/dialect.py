"""Scripted answers in the two dialects of OpenAI-like endpoints, as server-sent events.

Owns: what one step looks like on the wire, in the Responses API and in Chat Completions.
Never: opens a socket.
"""

import json
from collections.abc import Iterator
from typing import Any, Protocol

from interlock.testing.script import Say
from interlock.vocabulary.conversation import Usage


class Dialect(Protocol):
    """One answer in the making; every method gives the text to send."""

    def opened(self) -> str: ...

    def said(self, message: Say) -> Iterator[str]: ...

    def called(self, call_id: str, name: str, arguments: str) -> Iterator[str]: ...

    def completed(self, usage: Usage | None) -> str: ...


class ResponsesDialect:
    """POST /responses."""

    def __init__(self, answer_id: str, model: str) -> None:
        self._response: dict[str, Any] = {"id": f"resp_{answer_id}", "object": "response", "model": model}
        self._output: list[dict[str, Any]] = []
        self._sequence = 0

    def opened(self) -> str:
        return self._event("response.created", response={**self._response, "status": "in_progress", "output": []})

    def said(self, message: Say) -> Iterator[str]:
        index, item_id = len(self._output), f"msg_{len(self._output)}"
        item: dict[str, Any] = {"type": "message", "id": item_id, "role": "assistant"}
        yield self._event(
            "response.output_item.added", output_index=index, item={**item, "status": "in_progress", "content": []}
        )
        for piece in message.pieces():
            yield self._event(
                "response.output_text.delta", output_index=index, content_index=0, item_id=item_id, delta=piece
            )
        content = [{"type": "output_text", "text": message.text, "annotations": []}]
        yield self._done({**item, "status": "completed", "content": content})

    def called(self, call_id: str, name: str, arguments: str) -> Iterator[str]:
        index, item_id = len(self._output), f"fc_{len(self._output)}"
        item = {"type": "function_call", "id": item_id, "call_id": call_id, "name": name}
        yield self._event(
            "response.output_item.added", output_index=index, item={**item, "arguments": "", "status": "in_progress"}
        )
        yield self._event(
            "response.function_call_arguments.delta", output_index=index, item_id=item_id, delta=arguments
        )
        yield self._done({**item, "arguments": arguments, "status": "completed"})

    def completed(self, usage: Usage | None) -> str:
        counts = None
        if usage is not None:
            counts = {
                "input_tokens": usage.input_tokens,
                "input_tokens_details": {"cached_tokens": usage.cached_input_tokens},
                "output_tokens": usage.output_tokens,
                "output_tokens_details": {"reasoning_tokens": usage.reasoning_output_tokens},
                "total_tokens": usage.total_tokens,
            }
        response = {**self._response, "status": "completed", "output": self._output, "usage": counts}
        return self._event("response.completed", response=response)

    def _done(self, item: dict[str, Any]) -> str:
        self._output.append(item)
        return self._event("response.output_item.done", output_index=len(self._output) - 1, item=item)

    def _event(self, kind: str, **members: Any) -> str:
        self._sequence += 1
        data = {"type": kind, "sequence_number": self._sequence, **members}
        return f"event: {kind}\ndata: {json.dumps(data)}\n\n"


class ChatDialect:
    """POST /chat/completions."""

    def __init__(self, answer_id: str, model: str) -> None:
        self._head = {"id": f"chatcmpl-{answer_id}", "object": "chat.completion.chunk", "created": 0, "model": model}
        self._calls = 0

    def opened(self) -> str:
        return self._delta({"role": "assistant", "content": ""})

    def said(self, message: Say) -> Iterator[str]:
        for piece in message.pieces():
            yield self._delta({"content": piece})

    def called(self, call_id: str, name: str, arguments: str) -> Iterator[str]:
        index = self._calls
        self._calls += 1
        first = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        yield self._delta({"tool_calls": [first]})
        yield self._delta({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})

    def completed(self, usage: Usage | None) -> str:
        text = self._delta({}, "tool_calls" if self._calls else "stop")
        if usage is not None:
            counts = {
                "prompt_tokens": usage.input_tokens,
                "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
                "completion_tokens": usage.output_tokens,
                "completion_tokens_details": {"reasoning_tokens": usage.reasoning_output_tokens},
                "total_tokens": usage.total_tokens,
            }
            text += _data({**self._head, "choices": [], "usage": counts})
        return text + "data: [DONE]\n\n"

    def _delta(self, delta: dict[str, Any], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return _data({**self._head, "choices": [choice]})


def _data(value: object) -> str:
    return f"data: {json.dumps(value)}\n\n"
