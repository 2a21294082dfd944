"""clip: what does not fit loses its middle, and says exactly how much."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.history.clip import (
    ITEM_LIMIT,
    byte_budget,
    byte_length,
    clip_parts,
    clip_result,
    clip_text,
    result_size,
    token_budget,
)
from interlock.vocabulary.conversation import MediaPart, Part, TextPart
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.tool import ToolResult
from tests.manifest import requirement

MARKER = re.compile(r"…(\d+) characters left out…")
LIMITS = st.integers(min_value=0, max_value=400)
# Lone surrogates come in through JSON escapes; emoji and Chinese take four and three bytes.
TEXTS = st.text(st.characters() | st.sampled_from("é漢😀👩‍👩‍👧\ud83d\ude00x"), max_size=600)


def parts_of(clipped: str) -> tuple[str, int, str]:
    found = MARKER.search(clipped)
    assert found is not None
    return clipped[: found.start()], int(found[1]), clipped[found.end() :]


@requirement("RES-10")
def test_the_default_budget_is_ten_thousand_tokens_of_four_bytes_times_one_point_two() -> None:
    assert token_budget() == 48_000
    assert token_budget(1) == 5  # 4.8 rounded up
    assert byte_budget(10_000) == 12_000


@requirement("RES-10")
@settings(deadline=None)
@given(text=TEXTS, limit=LIMITS)
def test_a_clipped_text_never_exceeds_its_limit(text: str, limit: int) -> None:
    assert byte_length(clip_text(text, limit)) <= limit


@requirement("RES-10")
@settings(deadline=None)
@given(text=TEXTS, limit=LIMITS)
def test_what_fits_is_unchanged_and_what_was_clipped_fits(text: str, limit: int) -> None:
    clipped = clip_text(text, limit)
    assert (clipped == text) == (byte_length(text) <= limit)
    assert clip_text(clipped, limit) == clipped


@requirement("RES-10")
@settings(deadline=None)
@given(text=TEXTS.filter(lambda text: "…" not in text), limit=st.integers(min_value=40, max_value=400))
def test_the_marker_states_the_real_loss_between_a_true_head_and_a_true_tail(text: str, limit: int) -> None:
    clipped = clip_text(text, limit)
    if clipped == text:
        return
    head, left_out, tail = parts_of(clipped)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert left_out == len(text) - len(head) - len(tail)
    assert abs(byte_length(head) - byte_length(tail)) <= 5  # halves, but for a character that did not fit


@requirement("RES-10")
def test_a_budget_is_used_to_the_last_byte_where_characters_allow() -> None:
    clipped = clip_text("x" * 50_000, 12_000)
    assert len(clipped.encode()) in (11_999, 12_000)


@pytest.mark.parametrize("limit", range(45, 60))
def test_an_emoji_is_kept_whole_or_not_at_all(limit: int) -> None:
    head, _, tail = parts_of(clip_text("😀" * 100, limit))
    assert set(head + tail) <= {"😀"}


def test_a_limit_too_small_for_the_marker_leaves_an_ellipsis_or_nothing() -> None:
    assert clip_text("x" * 100, 10) == "…"
    assert clip_text("x" * 100, 2) == ""


@requirement("RES-10")
def test_the_texts_of_several_parts_share_one_limit_and_media_stay_in_place() -> None:
    image = MediaPart(kind="image", data="A" * 5000, mime_type="image/png")
    parts = (TextPart(text="a" * 300), image, TextPart(text="b" * 300), TextPart(text="c" * 300))
    clipped = clip_parts(parts, 200)
    assert image in clipped
    texts = [part.text for part in clipped if isinstance(part, TextPart)]
    assert sum(map(byte_length, texts)) <= 200
    assert texts[0].startswith("aaa")
    assert texts[-1].endswith("ccc")
    assert not any("b" in text for text in texts)
    head, left_out, tail = parts_of("".join(texts))
    assert left_out == 900 - len(head) - len(tail)
    assert clipped.index(image) == 1


PARTS = st.lists(
    st.builds(lambda text: TextPart(text=text), TEXTS)
    | st.builds(lambda data: MediaPart(kind="audio", data=data, mime_type="audio/wav"), st.just("AAAA")),
    max_size=6,
)


@requirement("RES-10")
@settings(deadline=None)
@given(parts=PARTS, limit=LIMITS)
def test_parts_are_clipped_as_their_joined_text_would_be(parts: list[Part], limit: int) -> None:
    clipped = clip_parts(parts, limit)
    joined = "".join(part.text for part in parts if isinstance(part, TextPart))
    assert "".join(part.text for part in clipped if isinstance(part, TextPart)) == clip_text(joined, limit)
    assert [part for part in clipped if isinstance(part, MediaPart)] == [p for p in parts if isinstance(p, MediaPart)]


def test_parts_that_fit_are_the_same_parts() -> None:
    parts = (TextPart(text=""), TextPart(text="é"))
    assert clip_parts(parts, 2) == parts


def text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}


@requirement("RES-10")
def test_a_result_within_the_bound_is_stored_as_it_came() -> None:
    result = ToolResult(content=(text_block("x" * 1000),), structured_content={"a": 1}, meta={"k": "v"})
    assert clip_result(result) is result


@requirement("RES-10")
def test_a_long_text_result_keeps_head_and_tail_up_to_one_mebibyte() -> None:
    result = ToolResult(content=(text_block("a" * 900_000), text_block("b" * 900_000)), is_error=True, meta={"k": 1})
    clipped = clip_result(result)
    assert clipped.is_error
    assert clipped.meta == {"k": 1}
    assert result_size(clipped) <= ITEM_LIMIT + 200  # the text is bounded, its block adds a few bytes
    head, left_out, tail = parts_of(clipped.content[0]["text"])
    assert head.startswith("a")
    assert tail.endswith("b")
    assert left_out == 1_800_001 - len(head) - len(tail)


@requirement("RES-10")
def test_the_largest_picture_falls_before_the_words_do() -> None:
    small = {"type": "image", "data": "A" * 1000, "mimeType": "image/png"}
    large = {"type": "image", "data": "B" * 2_000_000, "mimeType": "image/jpeg"}
    clipped = clip_result(ToolResult(content=(text_block("words"), large, small)))
    assert clipped.content[0] == text_block("words")
    assert clipped.content[1] == text_block("[image (image/jpeg) left out: 2000000 characters of base64]")
    assert clipped.content[2] == small


def test_an_embedded_blob_counts_as_media() -> None:
    block = {"type": "resource", "resource": {"uri": "a://x", "mimeType": "a/b", "blob": "A" * 2_000_000}}
    clipped = clip_result(ToolResult(content=(block,)))
    assert clipped.content == (text_block("[resource (a/b) left out: 2000000 characters of base64]"),)


@requirement("RES-10")
def test_long_structured_content_becomes_the_clipped_text_of_its_json() -> None:
    result = ToolResult(content=(text_block("t"),), structured_content={"s": "S" * 2_000_000})
    clipped = clip_result(result)
    assert clipped.structured_content is None
    text = clipped.content[0]["text"]
    assert text.startswith('{"content":[{"type":"text","text":"t"}],"structuredContent":{"s":"SSS')
    assert byte_length(text) <= ITEM_LIMIT


def test_a_million_tiny_blocks_do_not_get_past_the_bound() -> None:
    clipped = clip_result(ToolResult(content=tuple(text_block("x") for _ in range(100_000))))
    assert result_size(clipped) <= ITEM_LIMIT


def test_metadata_that_fills_the_bound_alone_is_left_out() -> None:
    clipped = clip_result(ToolResult(content=(text_block("t"),), meta={"k": "m" * 2_000_000}))
    assert clipped.meta is None
    assert clipped.content == (text_block("t"),)


def test_a_result_nested_too_deep_to_be_written_is_left_out_in_words() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    clipped = clip_result(ToolResult(structured_content=deep))
    assert clipped.structured_content is None
    assert "nested too deep" in clipped.content[0]["text"]
