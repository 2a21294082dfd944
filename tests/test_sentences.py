"""How sentences name a server: always so that it can be told from the words around it, and always in one way."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "interlock"
REPR = ord("r")


def unquoted(tree: ast.Module) -> Iterator[ast.JoinedStr]:
    """Formatted texts that say `server` and then a value without `!r`; representations of objects apart."""
    for text in ast.walk(tree):
        if isinstance(text, ast.JoinedStr) and not starts_a_representation(text):
            for words, value in zip(text.values, text.values[1:], strict=False):
                if isinstance(words, ast.Constant) and isinstance(value, ast.FormattedValue):
                    said = re.search(r"\bserver [\"']?$", str(words.value))
                    if said is not None and (value.conversion != REPR or not said[0].endswith(" ")):
                        yield text


def starts_a_representation(text: ast.JoinedStr) -> bool:
    return bool(text.values) and isinstance(text.values[0], ast.Constant) and str(text.values[0].value).startswith("<")


def test_every_sentence_quotes_the_name_of_a_server_the_same_way() -> None:
    found = [
        f"{file.relative_to(SOURCE)}:{text.lineno}"
        for file in sorted(SOURCE.rglob("*.py"))
        for text in unquoted(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_the_other_ways_are_noticed() -> None:
    ways = ("f'server \"{x}\" is'", "f\"the server '{x}' is\"", "f'no server {x}'", "f'server {x!s}'")
    assert [len(list(unquoted(ast.parse(way)))) for way in ways] == [1, 1, 1, 1]
    assert list(unquoted(ast.parse("f'no server {x!r}, {y} servers'"))) == []
