"""arguments: what counts as absent, blank or wrong."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.resources.arguments import ListArguments, ReadArguments, item_server, list_arguments, read_arguments
from interlock.vocabulary.errors import InvalidRequest
from tests.manifest import requirement

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["server", "cursor", "uri", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@requirement("RES-2")
@pytest.mark.parametrize("nothing", ["", "  \n", "null", '""', "{}", None, {}, '{"server": null, "cursor": null}'])
def test_nothing_means_everything_for_a_list(nothing: Any) -> None:
    assert list_arguments(nothing) == ListArguments()


@requirement("RES-2")
def test_strings_are_trimmed_and_blank_means_absent() -> None:
    assert list_arguments('{"server": "  alpha ", "cursor": " c2 "}') == ListArguments(server="alpha", cursor="c2")
    assert list_arguments('{"server": "alpha", "cursor": "\\t "}') == ListArguments(server="alpha")
    assert list_arguments('{"server": " ", "cursor": ""}') == ListArguments()
    assert read_arguments('{"server": " a ", "uri": " a://x y "}') == ReadArguments(server="a", uri="a://x y")


@requirement("RES-2")
def test_other_properties_are_ignored() -> None:
    assert list_arguments('{"foo": 1, "server": "a"}') == ListArguments(server="a")
    assert read_arguments('{"foo": [], "server": "a", "uri": "u"}') == ReadArguments(server="a", uri="u")


@requirement("RES-3")
@pytest.mark.parametrize(
    "text", ['{"cursor": "c1"}', '{"server": " ", "cursor": "c1"}', '{"server": null, "cursor": "c"}']
)
def test_a_cursor_without_a_server_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="add server"):
        list_arguments(text)


@requirement("RES-2")
@pytest.mark.parametrize("value", [1, 1.5, True, [], {}, ["a"]])
@pytest.mark.parametrize("field", ["server", "cursor"])
def test_a_wrong_type_is_refused_by_the_name_of_its_field(field: str, value: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        list_arguments(json.dumps({"server": "a", field: value}))
    assert caught.value.facts["field"] == field
    assert field in caught.value.message


@requirement("RES-2")
@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "server"),
        ("null", "server"),
        ("{}", "server"),
        ('{"uri": "u"}', "server"),
        ('{"server": "a"}', "uri"),
        ('{"server": "a", "uri": "  "}', "uri"),
        ('{"server": "a", "uri": null}', "uri"),
        ('{"server": "a", "uri": 5}', "uri"),
        ('{"server": "", "uri": ""}', "server"),
    ],
)
def test_a_read_needs_server_and_uri_and_says_which_is_missing(text: str, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_arguments(text)
    assert caught.value.facts["field"] == field
    assert field in caught.value.message


@requirement("RES-2")
@pytest.mark.parametrize("text", ["{not json", "[1, 2]", "5", '"alpha"', "true", '{"a": NaN}', "[" * 2000])
def test_what_is_no_json_object_is_refused_clearly(text: str) -> None:
    for read in (list_arguments, read_arguments):
        with pytest.raises(InvalidRequest, match="send one JSON object"):
            read(text)


@settings(deadline=None)
@given(raw=JSON.map(json.dumps) | st.text(max_size=20))
def test_any_text_is_either_arguments_or_an_invalid_request(raw: str) -> None:
    for read in (list_arguments, read_arguments):
        with suppress(InvalidRequest):
            read(raw)
    assert item_server(raw).strip()


@requirement("RES-1")
def test_the_item_names_the_argument_or_the_host() -> None:
    assert item_server('{"server": " alpha "}') == "alpha"
    for text in ("", "{}", "{broken", '{"server": 5}', '{"server": " "}'):
        assert item_server(text) == "interlock"
