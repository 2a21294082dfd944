"""Edits of TOML as text, so that every comment, blank line and spelling that is not edited stays.

Owns: where the tables and the pairs of a document stand; taking tables out, putting one in, setting a key.
Never: writes a file, or vouches for the result: who edits compares what both texts mean.

The documents are valid TOML. A table that is not written under a header of its own is not for this module.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Path = tuple[str, ...]
"""The keys of a table's header: ("mcp_servers", "git")."""

_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*|[\[\]{}\n]",
    re.DOTALL,
)


class NotUnderHeader(Exception):
    """The table has no header of its own: it is written inline, or by dotted keys."""


@dataclass(frozen=True, slots=True)
class _Section:
    """A header with its pairs: from `start` to `end`, pairs from `body` on; comments and blanks after are not part."""

    path: Path
    start: int
    body: int
    end: int


def without_table(text: str, path: Path) -> str:
    """`text` without the table and all that is below it. Comments between tables stay.

    Raises:
        NotUnderHeader: there is no such header.
    """
    gone = [section for section in _sections(text) if section.path[: len(path)] == path]
    if not gone:
        raise NotUnderHeader
    for section in reversed(gone):
        rest = text[section.end :]
        kept = rest.lstrip()
        # Blank lines go with the table; the indentation of what follows stays.
        blank = rest[: len(rest) - len(kept)].rpartition("\n")[0]
        after = rest[len(blank) + 1 :] if blank or rest.startswith("\n") else rest
        text = text[: section.start] + after
        if not kept:
            text = text.rstrip() + "\n" if text.strip() else ""
    return text


def with_table(text: str, table: str) -> str:
    """`text` with the lines of a new table at its end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += newline
    gap = newline if text.strip() else ""
    return text + gap + table.replace("\n", newline)


def with_pair(text: str, path: Path, key: str, value: str) -> str:
    """`text` with `key = value` in the table's own body; in the place of the pair that is there, or behind the others.

    Raises:
        NotUnderHeader: there is no such header.
    """
    section = next((section for section in _sections(text) if section.path == path), None)
    if section is None:
        raise NotUnderHeader
    for start, end in _lines(text, section.body, section.end):
        line = text[start:end]
        if _is_pair(line) and list(tomllib.loads(line)) == [key]:
            return text[:start] + _with_value(line, value) + text[end:]
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if text[: section.end].endswith("\n") else newline
    return f"{text[: section.end]}{gap}{key} = {value}{newline}{text[section.end :]}"


def _with_value(line: str, value: str) -> str:
    return re.sub(r"\A([^=]*=[ \t]*)(?:\"[^\"]*\"|'[^']*'|[^#\s]+)", lambda match: match[1] + value, line)


def _sections(text: str) -> list[_Section]:
    found: list[_Section] = []
    path: Path | None = None
    start = body = end = 0
    for first, last in _lines(text, 0, len(text)):
        line = text[first:last]
        if _is_header(line):
            if path is not None:
                found.append(_Section(path, start, body, end))
            path, start, body, end = _path(line), first, last, last
        elif _is_pair(line):
            end = last
    if path is not None:
        found.append(_Section(path, start, body, end))
    return found


def _lines(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The spans of lines; a value over several lines belongs to the line that it begins on."""
    while start < stop:
        end = _line_end(text, start)
        yield start, end
        start = end


def _line_end(text: str, start: int) -> int:
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] in ("[", "{"):
            depth += 1
        elif token[0] in ("]", "}"):
            depth -= 1
        elif token[0] == "\n" and depth <= 0:
            return token.end()
    return len(text)


def _is_header(line: str) -> bool:
    return line.lstrip(" \t").startswith("[")


def _is_pair(line: str) -> bool:
    return not _is_header(line) and not line.lstrip().startswith("#") and bool(line.strip())


def _path(header: str) -> Path:
    table: Any = tomllib.loads(header)
    keys: list[str] = []
    while table:
        key, value = next(iter(table.items()))
        keys.append(key)
        table = value[0] if isinstance(value, list) else value
    return tuple(keys)
