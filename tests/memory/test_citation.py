"""What a citation says, and what it leaves out."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.memory.citation import ID_LIMIT, MAXIMUM_ENTRIES, MAXIMUM_IDS, read_citation
from interlock.memory.message import FinishedMessage, finished_message
from tests.manifest import requirement

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "vectors" / "memory_citations.json").read_text())


@requirement("MEM-3", "MEM-4")
@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['case']}, {v['chunking']}")
def test_recorded_messages_cite_what_was_recorded(vector: dict[str, Any]) -> None:
    message = finished_message(vector["model_text"])
    recorded = vector["memoryCitation"]
    if recorded is None:
        assert message.citation is None
    else:
        assert message.citation is not None
        assert message.citation.json() == {"entries": recorded["entries"], "rolloutIds": recorded["threadIds"]}
    assert message.text == vector["text"]


@requirement("MEM-3")
@pytest.mark.parametrize(
    "line",
    [
        *("", "a.md", "a.md:1-2", "a.md|note=[n]", "a.md:1|note=[n]", "a.md:1-2|note=n", "a.md:-1-2|note=[n]"),
        *("a.md:1-x|note=[n]", "a.md:²-3|note=[n]", "a.md:1-4294967296|note=[n]", "a.md:1-2|note=[n] x", "|note=[]"),
    ],
)
def test_a_line_that_cannot_be_read_is_left_out_alone(line: str) -> None:
    body = f"<citation_entries>\n{line}\nb.md:1-2|note=[good]\n</citation_entries>"
    citation = read_citation([body])
    assert citation is not None
    assert [entry.path for entry in citation.entries] == ["b.md"]


@requirement("MEM-3")
def test_entries_and_ids_do_not_need_each_other() -> None:
    ids = read_citation(["<citation_entries>nothing</citation_entries><thread_ids>\na\n</thread_ids>"])
    entries = read_citation(["<rollout_ids>a<citation_entries>\na.md:1-2|note=[n]\n</citation_entries>"])
    assert ids is not None
    assert (ids.entries, ids.rollout_ids) == ((), ("a",))
    assert entries is not None
    assert (len(entries.entries), entries.rollout_ids) == (1, ())


@requirement("MEM-3")
def test_all_blocks_of_a_message_make_one_citation_without_repeated_ids() -> None:
    one = "<rollout_ids>\nb\na\n</rollout_ids>"
    two = "<thread_ids>\na\n\nc\n</thread_ids>"
    citation = read_citation([one, "garbage", two])
    assert citation is not None
    assert citation.rollout_ids == ("b", "a", "c")


def test_a_citation_is_bounded() -> None:
    entries = "a.md:1-2|note=[n]\n" * (MAXIMUM_ENTRIES + 1)
    ids = "\n".join(str(number) for number in range(MAXIMUM_IDS + 1))
    body = f"<citation_entries>{entries}</citation_entries><rollout_ids>{ids}\n{'x' * (ID_LIMIT + 1)}</rollout_ids>"
    citation = read_citation([body])
    assert citation is not None
    assert (len(citation.entries), len(citation.rollout_ids)) == (MAXIMUM_ENTRIES, MAXIMUM_IDS)


@requirement("MEM-3")
@given(text=st.text())
def test_no_body_of_a_citation_breaks_anything_or_takes_back_visible_text(text: str) -> None:
    hidden = text.replace("</oai-mem-citation>", "")
    message = finished_message(f"before <oai-mem-citation>{hidden}</oai-mem-citation> after")
    assert message.text == "before  after"


@requirement("MEM-4")
@pytest.mark.parametrize("raw", ["", " \n", "<oai-mem-citation>x</oai-mem-citation>\n"])
def test_a_message_that_says_nothing_is_no_last_message(raw: str) -> None:
    assert finished_message(raw).last_message is None


@requirement("MEM-2", "MEM-4")
def test_plan_mode_counts_for_the_finished_message_too() -> None:
    raw = "<proposed_plan>\na\n</proposed_plan>\n"
    assert finished_message(raw, plan_mode=True) == FinishedMessage(text="", plan="a\n")
    assert finished_message(raw).last_message == raw
