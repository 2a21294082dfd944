"""result: what a model is told of a tool's result. Results as a recorded server gave them to the real program."""

import json
from typing import Any

import pytest

from interlock.catalog.result import result_parts
from interlock.vocabulary.conversation import MediaPart, Part, TextPart
from interlock.vocabulary.tool import ToolResult
from tests.manifest import requirement

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # a PNG
IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
IMAGE_PART = MediaPart(kind="image", data=PIXEL, mime_type="image/png")


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def told(*blocks: dict[str, Any], structured: Any = None) -> tuple[Part, ...]:
    return result_parts(ToolResult(content=blocks, structured_content=structured))


def words(*blocks: dict[str, Any]) -> str:
    (part,) = told(*blocks)
    assert isinstance(part, TextPart)
    return part.text


@requirement("CAT-9")
def test_text_blocks_are_joined_by_newlines() -> None:
    assert words(text("hello")) == "hello"
    assert words(text("a"), text("b")) == "a\nb"
    assert words(text('héllo   "q" \n nl')) == 'héllo   "q" \n nl'


@requirement("CAT-9")
@pytest.mark.parametrize("value", [{"a": 1}, {"b": [1, 2.5, None]}, [1, 2], "s", 0, False, {}, {"ü": "é"}])
def test_structured_content_stands_alone_as_compact_json(value: Any) -> None:
    (part,) = told(text("the same in words"), IMAGE, structured=value)
    assert isinstance(part, TextPart)
    assert json.loads(part.text) == value
    assert part.text == json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@requirement("CAT-9")
def test_null_structured_content_is_none() -> None:
    assert told(text("t"), structured=None) == (TextPart(text="t"),)


def test_an_empty_result_is_an_empty_text() -> None:
    assert told() == (TextPart(text=""),)


@requirement("CAT-10")
def test_media_stand_between_the_texts_around_them() -> None:
    audio = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
    assert told(text("pic"), IMAGE, text("and"), text("sound"), audio) == (
        TextPart(text="pic"),
        IMAGE_PART,
        TextPart(text="and\nsound"),
        MediaPart(kind="audio", data="AAAA", mime_type="audio/wav"),
    )


@requirement("CAT-10")
def test_a_data_url_and_wrapped_base64_are_understood() -> None:
    assert told({**IMAGE, "data": f"data:image/png;base64,{PIXEL}"}) == (IMAGE_PART,)
    assert told({**IMAGE, "data": f"{PIXEL[:40]}\r\n{PIXEL[40:]}\n"}) == (IMAGE_PART,)


@requirement("CAT-10")
@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": "!!!", "mimeType": "image/png"},
        {"type": "image", "data": "", "mimeType": "image/png"},
        {"type": "image", "data": PIXEL},
        {"type": "audio", "mimeType": "audio/wav"},
        {"type": "image", "data": 5, "mimeType": "image/png"},
        {"type": "image", "data": "é", "mimeType": "image/png"},
    ],
)
def test_media_that_no_provider_would_take_are_named_and_left_out(block: dict[str, Any]) -> None:
    assert "left out" in words(block)
    assert words(block).startswith(f"[{block['type']}")


@requirement("CAT-10")
def test_a_link_is_shown_and_never_opened() -> None:
    link = {
        "type": "resource_link",
        "uri": "a://x",
        "name": "x",
        "mimeType": "text/plain",
        "description": "d",
        "size": 5,
    }
    assert words(link) == "[resource link x: a://x (text/plain), 5 bytes: d]"
    assert words({"type": "resource_link", "uri": "file:///etc/passwd"}) == "[resource link: file:///etc/passwd]"


@requirement("CAT-10")
def test_embedded_text_comes_under_its_uri() -> None:
    block = {"type": "resource", "resource": {"uri": "a://x", "mimeType": "text/plain", "text": "body"}}
    assert words(text("see"), block) == "see\n[resource a://x (text/plain)]\nbody"


@requirement("CAT-10")
@pytest.mark.parametrize(
    ("mime_type", "kind"),
    [("application/pdf", "file"), ("image/png", "image"), ("audio/wav", "audio"), (None, "file")],
)
def test_an_embedded_blob_is_a_file_or_what_its_type_says(mime_type: str | None, kind: str) -> None:
    resource = {"uri": "a://x", "blob": "AAE="} | ({"mimeType": mime_type} if mime_type else {})
    (part,) = told({"type": "resource", "resource": resource})
    assert isinstance(part, MediaPart)
    assert (part.kind, part.data, part.name) == (kind, "AAE=", "a://x")
    assert part.mime_type == (mime_type or "application/octet-stream")


@requirement("CAT-10")
@pytest.mark.parametrize(
    "block",
    [
        {"type": "wibble", "x": 1},
        {"x": 1},
        {"type": "text", "text": 5},
        {"type": "resource", "resource": "a://x"},
        {"type": "resource", "resource": {"uri": "a://x"}},
        {"type": "resource_link"},
    ],
)
def test_a_block_that_cannot_be_shown_is_named_and_the_rest_stays(block: dict[str, Any]) -> None:
    shown = words(text("before"), block, text("after"))
    assert shown.startswith("before\n[")
    assert "left out" in shown
    assert shown.endswith("]\nafter")


def test_structured_content_nested_too_deep_is_said_to_be() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    (part,) = told(structured=deep)
    assert isinstance(part, TextPart)
    assert "nested too deep" in part.text
