"""Files become decoded documents.

Owns: reading, decoding, and saying where in a file it went wrong; comments and trailing commas of JSON files.
Never: knows what the keys mean.
"""

import errno
import json
import os
import re
import select
import stat
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.json import fault

MAXIMUM_FILE = 8 * 1024 * 1024
"""Bytes; far above any configuration that a person wrote."""

PIPE_PATIENCE = 5
"""Seconds between two pieces of a file that comes through a pipe; nobody may write to it at all."""

_TOML_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_TOML_TWICE = re.compile(r"Cannot (?:declare|redefine namespace|mutate immutable namespace) (\(.*\))")


def read_bytes(file: Path, what: str = "the configuration file") -> bytes:
    """The content of a file; `what` names it in an error.

    Raises:
        InvalidRequest: it does not exist, cannot be read, or is larger than MAXIMUM_FILE.
    """
    try:
        content = first_bytes(file, MAXIMUM_FILE + 1)
    except OSError as error:
        raise InvalidRequest(
            f"cannot read {what} {file}: {(error.strerror or 'unreadable').lower()}; check "
            f"{'who may read it and its folders' if isinstance(error, PermissionError) else 'the path'}"
        ) from error
    if len(content) > MAXIMUM_FILE:
        raise InvalidRequest(f"cannot read {what} {file}: it is larger than {MAXIMUM_FILE} bytes")
    return content


def first_bytes(file: Path, limit: int) -> bytes:
    """At most `limit` bytes of a file, or of a pipe to whose end somebody writes within PIPE_PATIENCE.

    Raises:
        OSError: it cannot be read, or nothing comes through the pipe.
    """
    with open(file, "rb", buffering=0, opener=_without_waiting) as stream:
        if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            return stream.read(limit)
        content = b""
        ready = select.poll()
        ready.register(stream, select.POLLIN)
        while len(content) < limit and ready.poll(PIPE_PATIENCE * 1000):
            piece = os.read(stream.fileno(), limit - len(content))
            if not piece:
                return content
            content += piece
    if len(content) < limit:
        raise TimeoutError(errno.ETIMEDOUT, "nothing more came through this pipe")
    return content


def _without_waiting(path: str, flags: int) -> int:
    """For `open`, which closes what is no file; to open a pipe would otherwise wait for somebody who writes to it."""
    return os.open(path, flags | os.O_NONBLOCK)


def parse(file: Path, content: bytes) -> dict[str, Any]:
    """Decode a file by its suffix: `.json` and `.jsonc` as JSON with comments, everything else as TOML.

    Raises:
        InvalidRequest: the document is malformed; the message has file, line and column.
    """
    text = _decode(file, content)
    if file.suffix.lower() in {".json", ".jsonc"}:
        return _parse_json(file, text)
    return _parse_toml(file, text)


class Members(dict[str, Any]):
    """A JSON object; `repeated` are the names that it gives more than once, of which the last one counts."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        counts = Counter(name for name, _ in pairs) if len(pairs) > len(self) else {}
        self.repeated = tuple(name for name, count in counts.items() if count > 1)


def is_json(file: Path) -> bool:
    return file.suffix.lower() in {".json", ".jsonc"}


def _decode(file: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
        _malformed(file, line, column, "this is not UTF-8")


def _parse_toml(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _TOML_PLACE.search(message)
        line, column = (int(place[1]), int(place[2])) if place and place[1] else _end(text)
        _malformed(file, line, column, _toml_fault(_TOML_PLACE.sub("", message)))
    except RecursionError:
        raise InvalidRequest(f"cannot read {file}: it is nested too deeply") from None


def _toml_fault(message: str) -> str:
    """The parser's words; what is written twice in the file's own spelling, and not as Python's."""
    if message.startswith("Cannot overwrite a value"):
        return "this key is written before"
    twice = _TOML_TWICE.match(message)
    if twice is None:
        return _lower(message)
    keys = [key for pair in re.findall(r"'([^']*)'|\"([^\"]*)\"", twice[1]) for key in pair if key]
    return f"[{'.'.join(keys)}] is written before"


def _parse_json(file: Path, text: str) -> dict[str, Any]:
    try:
        document = json.loads(without_comments(text), object_pairs_hook=Members)
    except json.JSONDecodeError as error:
        _malformed(file, error.lineno, error.colno, fault(error))
    except RecursionError:
        raise InvalidRequest(f"cannot read {file}: it is nested too deeply") from None
    if not isinstance(document, dict):
        _malformed(file, 1, 1, 'the file must hold a JSON object such as {"mcpServers": {}}')
    return document


_JSON_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*+|/\*.*?\*/|,(?=(?:\s|//[^\n]*+|/\*.*?\*/)*+[}\]])', re.DOTALL)


def without_comments(text: str) -> str:
    """JSON with comments and trailing commas turned to blanks, so that every place keeps its line and column."""
    return _JSON_TOKEN.sub(_blank, text)


def _blank(token: re.Match[str]) -> str:
    if token[0].startswith('"'):
        return token[0]
    return re.sub(r"[^\n]", " ", token[0])


def _end(text: str) -> tuple[int, int]:
    return text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _malformed(file: Path, line: int, column: int, why: str) -> NoReturn:
    raise InvalidRequest(
        f"cannot read {file}:{line}:{column}: {why}; correct that line", file=str(file), line=line, column=column
    )
