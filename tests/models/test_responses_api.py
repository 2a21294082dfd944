import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.models.dialect import Stopped
from interlock.models.responses_api import ResponsesDialect, ResponsesReader
from interlock.testing import Say
from interlock.testing.dialect import ResponsesDialect as Written
from interlock.vocabulary.conversation import (
    AssistantEntry,
    CallEntry,
    EntryCompleted,
    MediaPart,
    ModelEvent,
    ModelRequest,
    OpaqueEntry,
    OutputEntry,
    SamplingCompleted,
    TextDelta,
    TextPart,
    Usage,
    UserEntry,
)
from interlock.vocabulary.tool import ToolSpec
from tests.manifest import requirement

DIALECT = ResponsesDialect(("image", "audio", "file"))
PNG = MediaPart(kind="image", data="aGk=", mime_type="image/png")
WAV = MediaPart(kind="audio", data="aGk=", mime_type="audio/wav")
PDF = MediaPart(kind="file", data="aGk=", mime_type="application/pdf", name="docs://shelf/guide.pdf")


def read(*events: dict[str, Any]) -> list[ModelEvent]:
    reader = ResponsesReader()
    made = [made for event in events for made in reader.feed(event)]
    return made + list(reader.finish())


def done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def completed(**response: Any) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"id": "resp_1", **response}}


def call(name: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": name, "name": name, "arguments": "{}"}


def calls_in(events: list[ModelEvent]) -> list[CallEntry]:
    entries = [event.entry for event in events if isinstance(event, EntryCompleted)]
    return [entry for entry in entries if isinstance(entry, CallEntry)]


def failed(code: str, message: str) -> dict[str, Any]:
    return {"type": "response.failed", "response": {"error": {"code": code, "message": message}}}


def test_a_history_becomes_input_items_in_order_and_other_providers_entries_are_skipped() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "encrypted_content": "x", "summary": []}
    entries = (
        UserEntry(content=(TextPart(text="look"), PNG)),
        OpaqueEntry(provider="openai-responses", payload=reasoning),
        OpaqueEntry(provider="another", payload={"type": "thinking"}),
        AssistantEntry(text="I look"),
        CallEntry(call_id="c1", name="look", arguments='{"at": 1}'),
        OutputEntry(call_id="c1", content=(TextPart(text="a cat"), TextPart(text="on a mat"))),
    )
    body = DIALECT.body("m", ModelRequest(entries=entries, instructions="be brief"))
    assert body["instructions"] == "be brief"
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["input"] == [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"},
            ],
        },
        reasoning,
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look"}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "a cat\non a mat"},
    ]


@requirement("CAT-10")
def test_images_and_documents_of_a_tool_are_parts_of_its_output_and_what_has_no_part_is_named() -> None:
    svg = MediaPart(kind="image", data="aGk=", mime_type="image/svg+xml")
    output = OutputEntry(call_id="c1", content=(TextPart(text="two"), PNG, PDF, WAV, svg))
    item = DIALECT.body("m", ModelRequest(entries=(output,)))["input"][0]
    assert item["output"] == [
        {"type": "input_text", "text": "two"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"},
        {"type": "input_file", "filename": "guide.pdf", "file_data": "data:application/pdf;base64,aGk="},
        {"type": "input_text", "text": "[audio (audio/wav, 3 bytes) left out: it cannot be shown to this model]"},
        {"type": "input_text", "text": "[image (image/svg+xml, 3 bytes) left out: it cannot be shown to this model]"},
    ]


@requirement("CAT-10")
def test_a_model_that_takes_no_media_is_told_of_them_in_words() -> None:
    body = ResponsesDialect(()).body("m", ModelRequest(entries=(UserEntry(content=(PNG,)),)))
    assert body["input"][0]["content"][0]["type"] == "input_text"


def test_tools_go_out_as_plain_functions_with_their_schema_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}
    tools = (
        ToolSpec(name="one", description="first", input_schema=schema),
        ToolSpec(name="two", description="", input_schema={"type": "object"}),
    )
    sent = DIALECT.body("m", ModelRequest(entries=(), tools=tools))["tools"]
    assert sent[0] == {
        "type": "function",
        "name": "one",
        "description": "first",
        "parameters": schema,
        "strict": False,
    }
    assert sent[1]["parameters"] == {"type": "object", "properties": {}}


def test_an_output_schema_asks_for_a_message_in_it() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    body = DIALECT.body("m", ModelRequest(entries=(), output_schema=schema))
    assert body["text"]["format"] == {"type": "json_schema", "name": "final_message", "schema": schema, "strict": True}


def test_reasoning_is_kept_for_the_provider_only_when_it_can_read_it_again() -> None:
    kept = {"type": "reasoning", "id": "rs_1", "encrypted_content": "x"}
    lost = {"type": "reasoning", "id": "rs_2", "encrypted_content": None}
    events = read(done(0, kept), done(1, lost), completed())
    assert events[:-1] == [EntryCompleted(entry=OpaqueEntry(provider="openai-responses", payload=kept))]


@given(st.permutations(range(5)))
def test_entries_come_in_the_order_of_the_output_however_the_items_finish(order: list[int]) -> None:
    events = read(*(done(index, call(f"c{index}")) for index in order), completed())
    names = [e.entry.name for e in events if isinstance(e, EntryCompleted) and isinstance(e.entry, CallEntry)]
    assert names == [f"c{index}" for index in range(5)]


def test_an_entry_is_given_as_soon_as_those_before_it_are() -> None:
    reader = ResponsesReader()
    assert list(reader.feed(done(1, call("b")))) == []
    assert len(list(reader.feed(done(0, call("a"))))) == 2


def test_an_endpoint_that_sends_only_the_whole_output_is_understood() -> None:
    events = read(completed(output=[call("a"), call("b")]))
    assert [type(event) for event in events] == [EntryCompleted, EntryCompleted, SamplingCompleted]


def test_a_refusal_is_a_message() -> None:
    item = {"type": "message", "content": [{"type": "refusal", "refusal": "I would rather not"}]}
    events = read({"type": "response.refusal.delta", "delta": "I would"}, done(0, item), completed())
    assert events[0] == TextDelta(text="I would")
    assert events[1] == EntryCompleted(entry=AssistantEntry(text="I would rather not"))


def test_usage_is_counted_and_odd_counts_are_nothing() -> None:
    usage = {"input_tokens": 7, "input_tokens_details": {"cached_tokens": 3}, "output_tokens": None}
    last = read(completed(usage=usage))[-1]
    assert last == SamplingCompleted(usage=Usage(input_tokens=7, cached_input_tokens=3), response_id="resp_1")


@pytest.mark.parametrize(
    ("event", "stop", "reason"),
    [
        (
            {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "x"}}},
            "overloaded",
            "x",
        ),
        ({"type": "response.failed", "response": {"error": {"code": "invalid_prompt", "message": "y"}}}, "failed", "y"),
        ({"type": "response.failed", "response": None}, "failed", "no reason given"),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}, "overloaded", "slow"),
        (
            {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}},
            "incomplete",
            "max_output_tokens",
        ),
        (
            {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "content_filter"}}},
            "filtered",
            "content_filter",
        ),
    ],
)
def test_an_answer_that_comes_to_nothing_says_how(event: dict[str, Any], stop: str, reason: str) -> None:
    with pytest.raises(Stopped) as caught:
        read(event)
    assert caught.value.stop == stop
    assert reason in caught.value.reason


@requirement("LIF-1")
@pytest.mark.parametrize("given", [{}, {"call_id": None}, {"call_id": " "}, {"call_id": 7}])
def test_a_call_that_an_endpoint_gives_no_id_is_made_under_one_of_ours(given: dict[str, Any]) -> None:
    nameless = {"type": "function_call", "name": "look", "arguments": "{}", **given}
    made = calls_in(read(done(0, nameless), done(1, nameless), completed()))
    assert [(entry.name, entry.arguments) for entry in made] == [("look", "{}")] * 2
    assert len({entry.call_id for entry in made}) == 2
    assert all(entry.call_id.startswith("call_") for entry in made)


def test_a_stream_without_its_end_is_broken() -> None:
    with pytest.raises(Stopped) as caught:
        read(done(0, call("a")))
    assert caught.value.stop == "broken"


def test_a_model_that_does_not_reason_is_asked_again_without_its_reasoning() -> None:
    body = DIALECT.body("m", ModelRequest(entries=()))
    amended = DIALECT.amended(body, "Encrypted content is not supported with this model.")
    assert amended == {name: value for name, value in body.items() if name != "include"}
    assert DIALECT.amended(amended, "Encrypted content is not supported with this model.") is None
    assert DIALECT.amended(body, "no such model") is None


@given(st.text(min_size=1), st.integers(min_value=1, max_value=4))
def test_a_text_is_the_same_however_it_is_cut(text: str, piece: int) -> None:

    stream = "".join(Written("1", "m").said(Say(text, piece)))
    events = [json.loads(line[6:]) for line in stream.split("\n") if line.startswith("data: ")]
    made = read(*events, completed())
    assert "".join(event.text for event in made if isinstance(event, TextDelta)) == text
    assert EntryCompleted(entry=AssistantEntry(text=text)) in made
