"""What a model and a person are shown of a server's descriptions."""

import pytest

from interlock.catalog.entries import entry_of
from interlock.catalog.showing import shown
from tests.catalog.tools import tool


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("plain, fără semne 漢字 👩‍👩‍👧", "plain, fără semne 漢字 👩‍👩‍👧"),
        ("\x1b[2J\x1b]0;owned\x07 safe \u202ekcatta", " safe kcatta"),
        ("\x1b[1;31mred\x1b[0m \x9b31m", "red 31m"),
        ("line\r\nline\rline\tend\n", "line\nline\nline\tend\n"),
        ("a\x00b\x07c\x7fd", "abcd"),
        ("see\U000e0069\U000e0067\U000e006e this", "see this"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ and \x1bPq never ends", "link and "),
        ("\x1b", ""),
    ],
)
def test_a_description_has_no_characters_that_steer_or_hide(said: str, expected: str) -> None:
    assert shown(said) == expected


def test_descriptions_inside_a_schema_are_shown_clean_and_what_a_call_needs_is_not_touched() -> None:
    schema = {
        "type": "object",
        "properties": {
            "colour": {"description": "one\x1b[31m of", "enum": ["\x1b[31m", "\x1b[0m"], "default": "\x1b[0m"},
            "description": {"anyOf": [{"title": "a\x07", "type": "string"}]},
        },
    }
    original = tool("paint", input_schema=schema, description="\x1b[31mpaint")

    entry = entry_of("a", "mcp__a__paint", original)

    assert entry.tool is original
    assert entry.spec.description == "paint"
    assert entry.spec.input_schema == {
        "properties": {
            "colour": {"default": "\x1b[0m", "description": "one of", "enum": ["\x1b[31m", "\x1b[0m"]},
            "description": {"anyOf": [{"title": "a", "type": "string"}]},
        },
        "type": "object",
    }
    assert schema["properties"]["colour"]["description"] == "one\x1b[31m of"  # type: ignore[index]  # plain JSON
