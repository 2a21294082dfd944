from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.models.chat_completions import ChatDialect, ChatReader
from interlock.models.dialect import Stopped
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

DIALECT = ChatDialect(("image", "audio", "file"))
PNG = MediaPart(kind="image", data="aGk=", mime_type="image/png")
MP3 = MediaPart(kind="audio", data="aGk=", mime_type="audio/mpeg")
ZIP = MediaPart(kind="file", data="aGk=", mime_type="application/zip", name="docs://a.zip")


def text(value: str) -> TextPart:
    return TextPart(text=value)


def messages(*entries: Any, dialect: ChatDialect = DIALECT, **request: Any) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = dialect.body("m", ModelRequest(entries=entries, **request))["messages"]
    return sent


def read(*chunks: dict[str, Any]) -> list[ModelEvent]:
    reader = ChatReader()
    made = [made for chunk in chunks for made in reader.feed(chunk)]
    return made + list(reader.finish())


def chunk(finish_reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def piece(
    index: int | None, call_id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    return chunk(tool_calls=[{"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}])


def calls(events: list[ModelEvent]) -> list[CallEntry]:
    return [e.entry for e in events if isinstance(e, EntryCompleted) and isinstance(e.entry, CallEntry)]


def test_a_message_and_its_calls_are_one_assistant_message_and_outputs_follow_it() -> None:
    sent = messages(
        UserEntry(content=(text("look"),)),
        OpaqueEntry(provider="openai-responses", payload={"type": "reasoning"}),
        AssistantEntry(text="I look twice"),
        CallEntry(call_id="c1", name="look", arguments="{}"),
        CallEntry(call_id="c2", name="look", arguments="{}"),
        OutputEntry(call_id="c1", content=(text("a cat"),)),
        OutputEntry(call_id="c2", content=(text("a dog"),)),
        CallEntry(call_id="c3", name="look", arguments="{}"),
        instructions="be brief",
    )
    call = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    assert sent == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": "I look twice", "tool_calls": [{"id": "c1", **call}, {"id": "c2", **call}]},
        {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
        {"role": "tool", "tool_call_id": "c2", "content": "a dog"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c3", **call}]},
    ]


@requirement("CAT-10")
def test_media_of_outputs_follow_all_outputs_in_a_users_message() -> None:
    sent = messages(
        OutputEntry(call_id="c1", content=(text("see"), PNG)),
        OutputEntry(call_id="c2", content=(MP3, ZIP)),
        AssistantEntry(text="nice"),
    )
    assert [message["role"] for message in sent] == ["tool", "tool", "user", "assistant"]
    assert sent[0]["content"] == "see\n[image (image/png): in the next user message]"
    assert sent[1]["content"].endswith(
        "[file docs://a.zip (application/zip, 3 bytes) left out: it cannot be shown to this model]"
    )
    assert sent[2]["content"] == [
        {"type": "text", "text": "image from the output of call c1:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "text", "text": "audio from the output of call c2:"},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
    ]


@requirement("CAT-10")
def test_a_model_that_reads_text_alone_gets_text_alone() -> None:
    sent = messages(UserEntry(content=(text("what is this"), PNG)), dialect=ChatDialect(()))
    assert sent[0]["content"].startswith("what is this\n[image (image/png, 3 bytes) left out")


def test_tools_and_an_output_schema_are_sent() -> None:
    tool = ToolSpec(name="one", description="first", input_schema={})
    body = DIALECT.body("m", ModelRequest(entries=(), tools=(tool,), output_schema={"type": "object"}))
    assert body["tools"][0]["function"]["parameters"] == {"type": "object", "properties": {}}
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}


def test_text_comes_as_deltas_and_then_whole_before_the_calls() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": None}
    events = read(
        chunk(role="assistant", content=""),
        chunk(content="hel"),
        chunk(content="lo", tool_calls=None),
        piece(0, "c1", "f", "{}"),
        chunk("tool_calls"),
        {"id": "c", "choices": [], "usage": usage},
    )
    assert events == [
        TextDelta(text="hel"),
        TextDelta(text="lo"),
        EntryCompleted(entry=AssistantEntry(text="hello")),
        EntryCompleted(entry=CallEntry(call_id="c1", name="f", arguments="{}")),
        SamplingCompleted(usage=Usage(input_tokens=3, output_tokens=2), response_id="c"),
    ]


@given(st.lists(st.text(max_size=12), min_size=1, max_size=4), st.data())
def test_calls_are_the_same_however_their_arguments_are_cut_and_mixed(
    arguments: list[str], data: st.DataObject
) -> None:
    pieces = [(index, letter) for index, whole in enumerate(arguments) for letter in whole]
    mixed = data.draw(st.permutations(range(len(arguments))))
    pieces.sort(key=lambda piece: mixed[piece[0]])
    first = [piece(index, f"c{index}", "f", "") for index in range(len(arguments))]
    events = read(*first, *(piece(index, arguments=letter) for index, letter in pieces), chunk("tool_calls"))
    assert [call.arguments for call in calls(events)] == arguments


def test_calls_under_one_index_with_ids_of_their_own_are_several() -> None:
    events = read(piece(0, "a", "f", "{}"), piece(0, "b", "g", "{}"), chunk("stop"))
    assert [(call.call_id, call.name) for call in calls(events)] == [("a", "f"), ("b", "g")]


def test_calls_without_index_are_kept_apart_by_their_ids() -> None:
    events = read(piece(None, "a", "f", "{"), piece(None, None, None, "}"), piece(None, "b", "f", "{}"), chunk("stop"))
    assert [(call.call_id, call.arguments) for call in calls(events)] == [("a", "{}"), ("b", "{}")]


def test_an_id_and_a_name_repeated_in_every_piece_count_once() -> None:
    events = read(piece(0, "a", "f", '{"x":'), piece(0, "a", "f", "1}"), chunk("tool_calls"))
    assert calls(events) == [CallEntry(call_id="a", name="f", arguments='{"x":1}')]


def test_calls_without_ids_get_ids_that_no_other_call_has() -> None:
    made = calls(read(piece(0, None, "f", {"x": 1}), piece(1, "", "g"), chunk("tool_calls")))
    assert made[0].arguments == '{"x": 1}'
    assert len({call.call_id for call in made}) == 2
    assert all(call.call_id for call in made)


@pytest.mark.parametrize(("reason", "stop"), [("content_filter", "filtered"), ("length", "incomplete")])
def test_an_answer_that_was_cut_or_withheld_says_so(reason: str, stop: str) -> None:
    with pytest.raises(Stopped) as caught:
        read(chunk(content="so far"), chunk(reason))
    assert caught.value.stop == stop


def test_a_stream_without_its_end_is_broken_also_when_it_counts_tokens_as_it_goes() -> None:
    with pytest.raises(Stopped) as caught:
        read({**chunk(content="so far"), "usage": {"prompt_tokens": 1}})
    assert caught.value.stop == "broken"


def test_a_lone_count_of_tokens_is_an_end_for_endpoints_that_give_no_reason() -> None:
    assert isinstance(read(chunk(content="hi"), {"choices": [], "usage": {"prompt_tokens": 1}})[-1], SamplingCompleted)


def test_null_members_are_as_good_as_absent_ones() -> None:
    odd = {"id": None, "choices": None, "usage": None, "error": None}
    assert (
        read(odd, {"choices": [{"delta": None, "finish_reason": None}]}, chunk("stop"))[-1].__class__
        is SamplingCompleted
    )


def test_an_error_in_the_stream_stops_the_answer() -> None:
    with pytest.raises(Stopped, match="overloaded_error: come back"):
        read({"error": {"type": "overloaded_error", "message": "come back"}})


def test_an_endpoint_that_does_not_know_stream_options_is_asked_again_without_them() -> None:
    body = DIALECT.body("m", ModelRequest(entries=()))
    amended = DIALECT.amended(body, "unknown field stream_options")
    assert amended is not None
    assert "stream_options" not in amended
    assert DIALECT.amended(amended, "unknown field stream_options") is None
