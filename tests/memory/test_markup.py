"""What people see of a message with hidden markup, however it is cut into pieces."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.memory import markup
from interlock.memory.markup import BODY_LIMIT, PLAN_LIMIT, TAG_LINE_LIMIT, VisibleText
from tests.manifest import requirement

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "vectors" / "memory_citations.json").read_text())
STREAMED = [vector for vector in VECTORS if vector["chunking"] != "none"]

PIECES = st.sampled_from(
    [
        *(markup.OPENER, markup.CLOSER, markup.PLAN_OPENER, markup.PLAN_CLOSER),
        *("<oai-mem-", "</oai-mem-citation", "<proposed", "_plan>", "</", "<", ">", "<<oai-mem-citation>"),
        *("\n", "\r\n", " ", "\t", "word", "é", "🦀", "a <b> c", ""),
    ]
)
TEXTS = st.lists(PIECES, max_size=14).map("".join)


def deltas(text: str, sizes: list[int], *, plan_mode: bool = False) -> tuple[str, tuple[str, ...], list[str]]:
    """What comes out when `text` streams in by pieces of these sizes, over and over."""
    visible = VisibleText(plan_mode=plan_mode)
    shown: list[str] = []
    position = turn = 0
    while position < len(text):
        size = sizes[turn % len(sizes)]
        shown.append(visible.feed(text[position : position + size]))
        position, turn = position + size, turn + 1
    shown.append(visible.finish())
    return "".join(shown), visible.citations, [piece for piece in shown if piece]


@requirement("MEM-1")
@given(text=TEXTS, sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6), plan_mode=st.booleans())
def test_the_sizes_of_the_pieces_change_nothing(text: str, sizes: list[int], plan_mode: bool) -> None:
    whole, bodies = markup.separate(text, plan_mode=plan_mode)
    assert deltas(text, sizes, plan_mode=plan_mode)[:2] == (whole, bodies)


@requirement("MEM-1")
@pytest.mark.parametrize("plan_mode", [False, True])
def test_every_split_into_two_gives_the_same(plan_mode: bool) -> None:
    text = "a\n <proposed_plan>\nb <oai-mem-citation>c</oai-mem-citation>\n</proposed_plan> \nd <oai-mem-x <oai-mem"
    whole = markup.separate(text, plan_mode=plan_mode)
    for cut in range(len(text) + 1):
        visible = VisibleText(plan_mode=plan_mode)
        shown = visible.feed(text[:cut]) + visible.feed(text[cut:]) + visible.finish()
        assert (shown, visible.citations) == whole


@requirement("MEM-1")
@given(text=TEXTS)
def test_nothing_is_shown_that_a_longer_message_would_hide(text: str) -> None:
    visible = VisibleText()
    shown = "".join(visible.feed(character) for character in text)
    for ending in ("", "n", "oai-mem-citation>", markup.OPENER, markup.CLOSER):
        assert markup.separate(text + ending)[0].startswith(shown)


@requirement("MEM-1")
@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['case']}, {v['chunking']}")
def test_recorded_messages_come_out_as_they_were_recorded(vector: dict[str, Any]) -> None:
    assert markup.separate(vector["model_text"])[0] == vector["text"]


@requirement("MEM-1")
@pytest.mark.parametrize("vector", STREAMED, ids=lambda v: f"{v['case']}, {v['chunking']}")
def test_recorded_streams_come_out_piece_by_piece_as_they_were_recorded(vector: dict[str, Any]) -> None:
    size = int(vector["chunking"].split()[0])
    assert deltas(vector["model_text"], [size])[2] == vector["client_deltas"]


@requirement("MEM-1")
def test_a_partial_opener_at_the_end_is_shown_once_the_message_is_whole() -> None:
    visible = VisibleText()
    assert visible.feed("see <oai-mem-cit") == "see "
    assert visible.finish() == "<oai-mem-cit"


@requirement("MEM-1")
def test_a_block_without_an_end_hides_the_rest_and_can_still_be_read() -> None:
    assert markup.separate("see <oai-mem-citation>a</oai-mem-cit") == ("see ", ("a</oai-mem-cit",))


@requirement("MEM-2")
@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("a\n<proposed_plan>\n1. b\n</proposed_plan>\nc", "a\nc"),
        ("a\n  <proposed_plan>\t\r\n1. b\r\n</proposed_plan>  \r\nc", "a\nc"),
        ("a <proposed_plan>\nb\n</proposed_plan>", "a <proposed_plan>\nb\n</proposed_plan>"),
        ("<proposed_plan> a\nb", "<proposed_plan> a\nb"),
        ("<proposed_plan>\nb", ""),
        ("</proposed_plan>\nb", "</proposed_plan>\nb"),
        ("a\n<proposed_plan>", "a\n"),
        ("a\n<proposed_pl", "a\n<proposed_pl"),
        ("<proposed_plan>\na\n<proposed_plan>\nb\n</proposed_plan>\nc", "c"),
        ("<oai-mem-citation>x</oai-mem-citation><proposed_plan>\na\n</proposed_plan>\nb", "b"),
        ("<proposed_plan>\na<oai-mem-citation>\n</proposed_plan>\n</oai-mem-citation>\n</proposed_plan>\nb", "b"),
        (" " * TAG_LINE_LIMIT + "<proposed_plan>\na", " " * TAG_LINE_LIMIT + "<proposed_plan>\na"),
    ],
)
def test_plans_are_hidden_in_plan_mode_after_the_citations(text: str, visible: str) -> None:
    assert markup.separate(text, plan_mode=True)[0] == visible


@requirement("MEM-2")
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_what_is_hidden_of_plans_can_be_taken_piece_by_piece_and_is_bounded(size: int) -> None:
    text = "a\n<proposed_plan>\n1. b\n</proposed_plan>\nc\n<proposed_plan>\n2. d"
    visible = VisibleText(plan_mode=True)
    plans: list[str] = []
    for place in range(0, len(text), size):
        visible.feed(text[place : place + size])
        plans.append(visible.take_plan())
    visible.finish()
    assert "".join([*plans, visible.take_plan()]) == "1. b\n2. d"
    assert visible.take_plan() == ""

    visible.feed("x" * (PLAN_LIMIT + 10))
    assert len(visible.take_plan()) == PLAN_LIMIT - len("1. b\n2. d")


@requirement("MEM-2")
def test_plans_stay_outside_plan_mode() -> None:
    text = "<proposed_plan>\na\n</proposed_plan>\n"
    assert markup.separate(text) == (text, ())


def test_the_bodies_that_are_kept_are_bounded() -> None:
    text = f"a<oai-mem-citation>{'x' * BODY_LIMIT}y</oai-mem-citation>b<oai-mem-citation>z</oai-mem-citation>"
    shown, bodies = markup.separate(text)
    assert shown == "ab"
    assert bodies == ("x" * BODY_LIMIT, "")
