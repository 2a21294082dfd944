"""Every command that a guide, or a sentence of ours, tells people to type is there, with its options."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from interlock.surfaces.cli.app import app

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
IN_A_BLOCK = re.compile(r"^(?: {4}|[^`>|#\n]*\| )?(?:\.venv/bin/)?interlock (.+)$", re.MULTILINE)
IN_A_SENTENCE = re.compile(r"`interlock ([^`]+)`")


def typed() -> Iterator[tuple[str, str]]:
    """The place and the words of each command, those of the shell around it cut off."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for words in [*IN_A_BLOCK.findall(text), *IN_A_SENTENCE.findall(text)]:
            yield page.name, words
    for file in sorted((ROOT / "src" / "interlock").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
                text = "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            for words in IN_A_SENTENCE.findall(text):
                yield file.name, words


NO_COMMANDS = ("COMMAND", "…", "broke inside")
COMMANDS = sorted({(place, words) for place, words in typed() if not words.startswith(NO_COMMANDS)})


def test_commands_are_found_where_they_are_written() -> None:
    places = {place for place, _ in COMMANDS}
    assert {page.name for page in PAGES} - {"architecture.md", "bring-your-own-loop.md", "glossary.md"} <= places
    assert "opening.py" in places
    assert ("first-steps.md", 'exec "What time is it in Rome?"') in COMMANDS


@pytest.mark.parametrize(("place", "words"), COMMANDS, ids=lambda text: str(text)[:60])
def test_every_command_that_is_written_down_is_there(place: str, words: str) -> None:
    arguments = shlex.split(re.split(r" [|>] | …| \.\.\.", words)[0], comments=True)
    command: Any = typer.main.get_command(app)
    while arguments and hasattr(command, "resolve_command") and not arguments[0].startswith("-"):
        context = command.make_context("interlock", ["--help"], resilient_parsing=True)
        name = arguments[0]
        _, command, arguments = command.resolve_command(context, arguments)
        assert command is not None, f"{place}: there is no command {name}"
    command.make_context("interlock", arguments, resilient_parsing=True)  # refuses options that it does not know
