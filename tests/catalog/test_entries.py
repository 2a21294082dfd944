"""entries: filters, bad tools, duplicates and renames, before anything is replaced."""

from typing import Any

import pytest

from interlock.catalog.entries import replacement
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.tool import BadEntry
from tests.catalog.tools import config, listing, tool
from tests.manifest import requirement

BAD = BadEntry(name="broken", reason="its inputSchema is a number")


@requirement("CAT-3")
def test_a_bad_tool_refuses_the_whole_and_says_what_waits_and_how_to_let_it_in() -> None:
    with pytest.raises(ServerFailed) as caught:
        replacement(listing("s", "a", "b", bad=(BAD,)), config("s"))
    error = caught.value
    assert (error.kind, error.effect, error.server) == ("protocol", "none", "s")
    assert "'broken'" in error.message
    assert "its inputSchema is a number" in error.message
    assert "2 good tools" in error.message
    assert 'on_bad_tool = "skip"' in error.message
    assert error.facts["bad_tools"] == ["broken"]


@requirement("CAT-3")
def test_skipping_leaves_out_only_the_bad_tool_with_a_note() -> None:
    made = replacement(listing("s", "a", "b", bad=(BAD,)), config("s", on_bad_tool="skip"))
    assert [entry.tool.name for entry in made.entries] == ["a", "b"]
    assert [(note.kind, note.tool) for note in made.notes] == [("bad_tool", "broken")]


@requirement("CAT-3")
def test_an_empty_remote_name_is_a_bad_tool() -> None:
    with pytest.raises(ServerFailed, match="#2"):
        replacement(listing("s", "a", ""), config("s"))


@requirement("CAT-3")
def test_a_schema_nested_too_deep_is_a_bad_tool() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5000):
        schema = {"items": schema}
    with pytest.raises(ServerFailed, match="nested too deep"):
        replacement(listing("s", tool("deep", input_schema=schema)), config("s"))


@requirement("CAT-8")
def test_filters_match_remote_names_and_deny_wins() -> None:
    filters = config("s", enabled_tools=("a.b", "c"), disabled_tools=("c",))
    made = replacement(listing("s", "a.b", "c", "d"), filters)
    assert [entry.tool.name for entry in made.entries] == ["a.b"]
    assert {note.tool for note in made.notes if note.kind == "filtered"} == {"c", "d"}


@requirement("CAT-8", "CAT-3")
def test_a_bad_tool_that_is_filtered_out_is_no_reason_to_refuse() -> None:
    made = replacement(listing("s", "a", bad=(BAD,)), config("s", disabled_tools=("broken",)))
    assert [entry.tool.name for entry in made.entries] == ["a"]
    nameless = listing("s", "a", bad=(BadEntry(name="#2", reason="it has no name"),))
    with pytest.raises(ServerFailed):
        replacement(nameless, config("s", enabled_tools=("a",)))


@requirement("CAT-8")
def test_an_app_only_tool_has_an_entry_that_the_model_does_not_see() -> None:
    app_only = tool("render", meta={"ui": {"visibility": ["app"]}})
    (entry,) = replacement(listing("s", app_only), config("s")).entries
    assert not entry.visible_to_model


def test_of_two_equal_names_the_first_wins_with_a_note() -> None:
    made = replacement(listing("s", tool("a", description="first"), tool("a", description="second")), config("s"))
    assert [entry.spec.description for entry in made.entries] == ["first"]
    assert [note.kind for note in made.notes] == ["duplicate"]


@requirement("CAT-4")
def test_a_renamed_tool_says_so() -> None:
    made = replacement(listing("s", "get.user"), config("s"))
    (note,) = made.notes
    assert (note.kind, note.tool) == ("renamed", "get.user")
    assert made.entries[0].public_name in note.message


@requirement("CAT-7")
def test_the_order_of_a_schemas_members_does_not_reach_the_model_and_the_servers_own_copy_stays() -> None:
    one = {"type": "object", "properties": {"b": {}, "a": {}}}
    other = {"properties": {"a": {}, "b": {}}, "type": "object"}
    (first,) = replacement(listing("s", tool("t", input_schema=one)), config("s")).entries
    (second,) = replacement(listing("s", tool("t", input_schema=other)), config("s")).entries
    assert list(first.spec.input_schema["properties"]) == list(second.spec.input_schema["properties"]) == ["a", "b"]
    assert list(first.tool.input_schema["properties"]) == ["b", "a"]


def test_the_title_stands_in_for_a_missing_description() -> None:
    (entry,) = replacement(listing("s", tool("t", title="Title")), config("s")).entries
    assert entry.spec.description == "Title"
