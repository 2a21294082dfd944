"""Arguments as a model writes them."""

import json
import re
from datetime import UTC, datetime
from types import MappingProxyType

import pytest

from interlock.threads.request import ARGUMENTS_LIMIT, read_request
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.json import JsonObject
from tests.manifest import requirement


@requirement("CAT-9")
@pytest.mark.parametrize(
    "text", ['{"a": 1.0, "b": 12345678901234567890, "c": [null, true], "": ""}', '{"é": "\\u0000"}', "{}"]
)
def test_arguments_go_out_as_they_were_given(text: str) -> None:
    assert read_request("c", "f", text).usable_arguments() == json.loads(text)


@pytest.mark.parametrize("nothing", [None, "", "  ", "null", {}])
def test_no_arguments_are_an_empty_object(nothing: str | None) -> None:
    assert read_request("c", "f", nothing).usable_arguments() == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": ', "expecting value at character 6"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": [-1E999]}', "the number -1E999 is too large"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": "\\ud800"}', "half of a surrogate pair"),
        ('"' + "x" * ARGUMENTS_LIMIT + '"', f"more than {ARGUMENTS_LIMIT} bytes"),
    ],
)
def test_broken_arguments_are_kept_as_text_and_refused_with_the_reason(text: str, reason: str) -> None:
    request = read_request("c", "f", text)

    assert request.arguments == text[:ARGUMENTS_LIMIT]
    with pytest.raises(InvalidRequest) as refused:
        request.usable_arguments()
    assert refused.value.message == f"the arguments of 'f' are not valid JSON ({reason}); call it again with valid JSON"


@pytest.mark.parametrize("text", ["[1]", "7", '"text"', "true"])
def test_arguments_that_are_no_object_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="must be a JSON object"):
        read_request("c", "f", text).usable_arguments()


def test_an_application_may_pass_an_object_but_only_one_that_json_can_carry() -> None:
    assert read_request("c", "f", {"a": [1]}).usable_arguments() == {"a": [1]}
    with pytest.raises(InvalidRequest, match="a set is not a JSON value"):
        read_request("c", "f", {"a": {1}}).usable_arguments()


@requirement("CAT-9")
@pytest.mark.parametrize(
    "arguments", [{"a": 1.5, "b": [None, True]}, {"n": 2**70}, {"deep": {"é": ["\x00"]}}, MappingProxyType({"a": 1})]
)
def test_an_object_goes_out_as_it_was_given_whatever_becomes_of_it_later(arguments: JsonObject) -> None:
    request = read_request("c", "f", arguments)

    assert request.usable_arguments() == json.loads(request.text) == dict(arguments)
    assert request.arguments is not arguments


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"a": [float("nan")]}, "Out of range float values are not JSON compliant"),
        ({"a": "\ud800"}, "half of a surrogate pair"),
        ({"a": datetime(2026, 1, 1, tzinfo=UTC)}, "a datetime is not a JSON value"),
        ({"a": "x" * ARGUMENTS_LIMIT}, f"more than {ARGUMENTS_LIMIT} bytes"),
    ],
)
def test_an_object_that_json_cannot_carry_is_refused_with_the_reason(arguments: JsonObject, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(f"({reason})")):
        read_request("c", "f", arguments).usable_arguments()
