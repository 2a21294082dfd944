"""From raw results to the vocabulary: what is forgiven, what falls alone, what fails."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.connections import convert
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.resource import ResourceRead
from interlock.vocabulary.slices import at_once
from interlock.vocabulary.tool import BadEntry, ToolAnnotations
from tests.manifest import requirement

OBJECT = {"type": "object"}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def bad(entry: Any, converter: Any = convert.tool, label: str = "name") -> BadEntry:
    good, fallen = at_once(convert.decode([entry], converter, label=label))
    assert good == []
    return fallen[0]


@requirement("TYP-1")
def test_a_tool_keeps_all_its_members_and_the_entry_as_it_came() -> None:
    entry = {
        "name": "look",
        "title": "Look",
        "description": "Looks.",
        "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True, "openWorldHint": False, "title": "L"},
        "icons": [{"src": "data:image/png;base64,"}],
        "_meta": {"connector_id": "c"},
        "newMember": [1],
    }
    tool = convert.tool(entry)
    assert (tool.name, tool.title, tool.description) == ("look", "Look", "Looks.")
    assert tool.input_schema is entry["inputSchema"]
    assert tool.output_schema == {"type": "object"}
    assert tool.annotations == ToolAnnotations(title="L", read_only_hint=True, open_world_hint=False)
    assert tool.icons == ({"src": "data:image/png;base64,"},)
    assert tool.meta == {"connector_id": "c"}
    assert tool.raw is entry


@requirement("CAT-3")
@pytest.mark.parametrize(
    ("entry", "name", "reason"),
    [
        ({"inputSchema": OBJECT}, "#1", "name is missing"),
        ({"name": "", "inputSchema": OBJECT}, "#1", "name is empty"),
        ({"name": 7, "inputSchema": OBJECT}, "#1", "name is not a string"),
        ({"name": "t", "inputSchema": OBJECT, "description": 5}, "t", "description is not a string"),
        ({"name": "t"}, "t", "inputSchema is missing"),
        ({"name": "t", "inputSchema": None}, "t", "inputSchema is missing"),
        ({"name": "t", "inputSchema": [OBJECT]}, "t", "inputSchema is not an object"),
        ({"name": "t", "inputSchema": {"type": "string"}}, "t", 'inputSchema has a type other than "object"'),
        ("words", "#1", "the entry is not an object"),
        (None, "#1", "the entry is not an object"),
    ],
)
def test_a_tool_that_cannot_be_used_falls_alone_with_a_reason_that_names_the_member(
    entry: Any, name: str, reason: str
) -> None:
    good, fallen = at_once(convert.decode([entry, {"name": "good", "inputSchema": OBJECT}], convert.tool))
    assert [tool.name for tool in good] == ["good"]
    assert fallen == [BadEntry(name=name, reason=reason)]


def test_null_members_of_a_tool_count_as_absent() -> None:
    members = ("title", "description", "annotations", "outputSchema", "icons", "_meta")
    tool = convert.tool({"name": "nulls", "inputSchema": OBJECT, **dict.fromkeys(members)})
    assert tool.title is tool.description is tool.output_schema is tool.icons is tool.meta is None
    assert tool.annotations == ToolAnnotations()


def test_odd_hints_count_as_absent_so_a_tool_is_not_taken_for_read_only() -> None:
    annotations = {"readOnlyHint": "yes", "destructiveHint": 0, "title": 5}
    tool = convert.tool({"name": "hints", "inputSchema": OBJECT, "annotations": annotations})
    assert tool.annotations == ToolAnnotations()
    assert convert.tool({"name": "n", "inputSchema": OBJECT, "annotations": "x"}).annotations == ToolAnnotations()


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [OBJECT]},
        {"type": "object", "allOf": [{"if": {}, "then": {}}]},
        {"type": "object", "properties": {"any": True, "never": False}},
        {"type": "object", "properties": {"x": {"$ref": "#/$defs/gone"}}},
    ],
)
def test_unusual_schemas_are_passed_on_as_they_are(schema: dict[str, Any]) -> None:
    assert convert.tool({"name": "t", "inputSchema": schema}).input_schema is schema


def test_a_stateless_tool_with_an_invalid_header_annotation_falls_alone() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "number", "x-mcp-header": "X"}}}
    entry = {"name": "t", "inputSchema": schema}
    assert "x-mcp-header" in bad(entry, convert.stateless_tool).reason
    assert convert.tool(entry).name == "t"


def test_bad_entries_are_counted_over_the_whole_listing() -> None:
    _, fallen = at_once(convert.decode([1, 2], convert.tool, first=100))
    assert [entry.name for entry in fallen] == ["#101", "#102"]


@requirement("TYP-1")
def test_a_resource_keeps_all_its_members() -> None:
    entry = {
        "uri": "zoo://a",
        "name": "a",
        "title": "A",
        "description": "d",
        "mimeType": "text/plain",
        "size": 12,
        "icons": [{"src": "x"}],
        "_meta": {"k": 1},
        "annotations": {"priority": 0.5, "audience": ["user"]},
        "later": True,
    }
    found = convert.resource(entry)
    assert (found.uri, found.name, found.title, found.size) == ("zoo://a", "a", "A", 12)
    assert found.annotations == {"priority": 0.5, "audience": ["user"]}
    assert (found.meta, found.icons, found.mime_type) == ({"k": 1}, ({"src": "x"},), "text/plain")
    assert found.raw is entry


@pytest.mark.parametrize(("size", "kept"), [(2**63 - 1, 2**63 - 1), (2**63, None), (3.0, 3), (3.5, None), ("9", None)])
def test_a_size_that_is_no_64_bit_integer_is_dropped_not_fatal(size: Any, kept: int | None) -> None:
    assert convert.resource({"uri": "zoo://a", "name": "a", "size": size}).size == kept


@requirement("RES-6")
@pytest.mark.parametrize(
    ("entry", "called", "reason"),
    [
        ({"name": "a"}, "#1", "uri is missing"),
        ({"uri": "", "name": "a"}, "#1", "uri is empty"),
        ({"uri": "zoo://n"}, "zoo://n", "name is missing"),
        ({"uri": "zoo://n", "name": 5}, "zoo://n", "name is not a string"),
    ],
)
def test_a_resource_without_its_needed_members_falls_alone(entry: Any, called: str, reason: str) -> None:
    assert bad(entry, convert.resource, "uri") == BadEntry(name=called, reason=reason)


def test_a_template_needs_its_uri_template() -> None:
    assert bad({"name": "a"}, convert.resource_template, "uriTemplate").reason == "uriTemplate is missing"
    assert convert.resource_template({"uriTemplate": "zoo://{id}", "name": "a"}).uri_template == "zoo://{id}"


def resource_read(result: JsonObject, *, server: str) -> ResourceRead:
    return at_once(convert.resource_read(result, server=server))


@requirement("RES-7")
def test_a_read_keeps_text_and_blob_as_they_came_and_in_order() -> None:
    contents = [
        {"uri": "zoo://two/a", "mimeType": "text/plain", "text": ""},
        {"uri": "zoo://two/b", "blob": "@@ not base64 @@", "_meta": {"k": 1}},
    ]
    read = resource_read({"contents": contents}, server="zoo")
    assert [(c.uri, c.text, c.blob) for c in read.contents] == [
        ("zoo://two/a", "", None),
        ("zoo://two/b", None, "@@ not base64 @@"),
    ]
    assert read.contents[1].meta == {"k": 1}
    assert resource_read({"contents": []}, server="zoo").contents == ()


@requirement("RES-7")
@pytest.mark.parametrize("content", [{"uri": "zoo://a"}, {"uri": "zoo://a", "text": None, "blob": 3}, "text"])
def test_a_content_with_neither_text_nor_blob_fails_the_read(content: Any) -> None:
    good = {"uri": "zoo://a", "text": "x"}
    with pytest.raises(ServerFailed, match=r"contents\[1\]") as failed:
        resource_read({"contents": [good, content]}, server="zoo")
    assert failed.value.kind == "protocol"


def test_a_tool_result_keeps_its_blocks_as_they_came() -> None:
    blocks = [{"type": "text", "text": "seen"}, {"type": "hologram", "data": 1}, {"type": "image", "data": "@@@"}]
    raw = {"content": blocks, "structuredContent": [1], "isError": True, "_meta": {"m": 1}}
    result = convert.tool_result(raw, server="zoo")
    assert result.content == tuple(blocks)
    assert (result.structured_content, result.is_error, result.meta) == ([1], True, {"m": 1})


@pytest.mark.parametrize("raw", [{}, {"content": None}, {"structuredContent": {"n": 4}}])
def test_a_result_without_content_is_an_empty_one_for_the_tool_has_run(raw: dict[str, Any]) -> None:
    result = convert.tool_result(raw, server="zoo")
    assert result.content == ()
    assert result.structured_content == raw.get("structuredContent")
    assert not result.is_error


@pytest.mark.parametrize("content", ["text", {"type": "text"}, [["text"]], [{"type": "text"}, 5]])
def test_content_that_is_no_list_of_objects_fails_with_an_unknown_effect(content: Any) -> None:
    with pytest.raises(ServerFailed, match="content") as failed:
        convert.tool_result({"content": content}, server="zoo")
    assert (failed.value.kind, failed.value.effect) == ("protocol", "unknown")


@requirement("CON-1")
def test_of_too_many_blocks_the_first_ones_are_kept_and_the_others_counted() -> None:
    blocks = [{"type": "text", "text": "x"}] * (convert.MAXIMUM_BLOCKS + 2)
    kept = convert.tool_result({"content": blocks}, server="zoo").content
    assert kept[:-1] == tuple(blocks[: convert.MAXIMUM_BLOCKS])
    assert kept[-1] == {"type": "text", "text": "[2 more blocks left out]"}
    assert len(convert.tool_result({"content": blocks[2:]}, server="zoo").content) == convert.MAXIMUM_BLOCKS


def test_an_unknown_kind_of_result_is_told_apart_in_the_stateless_era_only() -> None:
    assert convert.result_kind({}, "stateless") == "complete"
    assert convert.result_kind({"resultType": "input_required"}, "stateless") == "input_required"
    assert convert.result_kind({"resultType": "telepathy"}, "stateless") == "unknown"
    assert convert.result_kind({"resultType": "telepathy"}, "handshake") == "complete"


@requirement("RES-11")
def test_prompts_and_completions_are_converted() -> None:
    found = convert.prompt({"name": "p", "arguments": [{"name": "x", "required": True}, 5], "title": 1})
    assert (found.name, found.title, found.arguments) == ("p", None, ({"name": "x", "required": True},))
    messages = [{"role": "user", "content": {"type": "text", "text": "hi"}}]
    assert convert.prompt_result({"messages": messages}, server="zoo").messages == tuple(messages)
    done = convert.completion({"completion": {"values": ["a", 5, "b"], "total": 9, "hasMore": True}}, server="zoo")
    assert (done.values, done.total, done.has_more) == (("a", "b"), 9, True)
    many = convert.completion({"completion": {"values": ["v"] * 101}}, server="zoo")
    assert (len(many.values), many.has_more) == (100, True)


@pytest.mark.parametrize("member", ["tools", "resources"])
@pytest.mark.parametrize("value", [None, {}, "x"])
def test_a_listing_without_its_list_breaks_the_protocol(member: str, value: Any) -> None:
    with pytest.raises(ServerFailed, match=member) as failed:
        convert.entries({member: value}, member, server="zoo", method=f"{member}/list")
    assert failed.value.kind == "protocol"


@requirement("TYP-1")
def test_server_info_survives_and_bad_members_do_not_matter() -> None:
    info = convert.server_info({"name": "n", "version": 2, "title": "T", "websiteUrl": "https://x", "icons": [{}]})
    assert info is not None
    assert (info.name, info.version, info.title, info.website_url) == ("n", "", "T", "https://x")
    assert convert.server_info("n") is None


CONVERTERS = [convert.tool, convert.stateless_tool, convert.resource, convert.resource_template, convert.prompt]
MEMBERS = ["name", "uri", "uriTemplate", "title", "description", "inputSchema", "size", "icons", "annotations", "_meta"]


@pytest.mark.parametrize("converter", CONVERTERS)
@given(entries=st.lists(st.dictionaries(st.sampled_from(MEMBERS), json_values) | json_values, max_size=4))
def test_any_entry_is_converted_or_falls_alone(converter: Any, entries: list[Any]) -> None:
    good, fallen = at_once(convert.decode(entries, converter))
    assert len(good) + len(fallen) == len(entries)
    assert all(entry.reason and entry.name for entry in fallen)


@pytest.mark.parametrize("converter", [convert.tool_result, resource_read, convert.prompt_result, convert.completion])
@given(result=st.dictionaries(st.sampled_from(["content", "contents", "messages", "completion"]), json_values))
def test_any_result_is_converted_or_fails_as_a_breach_of_the_protocol(converter: Any, result: dict[str, Any]) -> None:
    with suppress(ServerFailed):
        converter(result, server="zoo")
