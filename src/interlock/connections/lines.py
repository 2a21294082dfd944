"""From bytes on a pipe to JSON-RPC messages, whatever the bytes.

Owns: splitting into lines, the bound of a line, decoding what is not quite JSON, finding the id of what is lost.
Never: reads a file descriptor, or knows what a message means.
"""

import json
import math
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from interlock.connections.collector import REST
from interlock.vocabulary.json import JsonValue

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MOST_TOGETHER = 10_000
"""Messages that are read of one line or body. More, even of two bytes each, would take the host's time for minutes."""
LARGE = 256 * 1024
"""Bytes from which on it is worth while to let the collector rest."""
KEPT_OF_LONG_LINE = 4096
"""Bytes kept of each end of a line beyond the limit, to find its id there."""

_NOT_WORTH_WHILE = nullcontext()
_NOT_BLANK = re.compile(r"[^ \t\r]")
_HEAD_ID = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"[^"]*"\s*,\s*)?"id"\s*:\s*(?:(\d{1,18})|"([^"\\]{1,200})")\s*[,}]')
_TAIL_ID = re.compile(rb',\s*"id"\s*:\s*(?:(\d{1,18})|"([^"\\]{1,200})")\s*(?:,\s*"jsonrpc"\s*:\s*"[^"]*"\s*)?\}\s*\Z')


@dataclass(frozen=True, slots=True)
class LongLine:
    """What is kept of a line beyond the limit. Told twice: when it passes the limit (no tail yet), and at its end."""

    head: bytes
    tail: bytes | None = None


class LineSplitter:
    """Splits a byte stream at line feeds. Pieces of an unfinished line are joined once, when it ends."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None
        """The beginning of the line that passed the limit, while it lasts; `_pieces` then holds only its end."""

    def feed(self, chunk: bytes) -> Iterator[bytes | LongLine]:
        """The lines that `chunk` completes, without their ends, and long lines as what is left of them."""
        end = chunk.find(b"\n")
        if end < 0:
            yield from self._keep(chunk)
            return
        if self._pieces:
            yield from self._keep(chunk[:end])
            yield self._take()
        else:
            yield from self._whole(chunk[:end])
        last = chunk.rfind(b"\n")
        if last > end:
            for line in chunk[end + 1 : last].split(b"\n"):
                yield from self._whole(line)
        if last + 1 < len(chunk):
            yield from self._keep(chunk[last + 1 :])

    def rest(self) -> bytes:
        """What came after the last line feed, at the end of the stream; nothing of a line beyond the limit."""
        line = self._take()
        return line if isinstance(line, bytes) else b""

    def _whole(self, line: bytes) -> Iterator[bytes | LongLine]:
        if len(line) <= self._limit:
            yield line
        else:
            yield LongLine(line[:KEPT_OF_LONG_LINE])
            yield LongLine(line[:KEPT_OF_LONG_LINE], line[-KEPT_OF_LONG_LINE:])

    def _keep(self, piece: bytes) -> Iterator[LongLine]:
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size <= self._limit:
            return
        line = b"".join(self._pieces[-2:] if self._head is not None else self._pieces)
        self._pieces = [line[-KEPT_OF_LONG_LINE:]]
        if self._head is None:
            self._head = line[:KEPT_OF_LONG_LINE]
            yield LongLine(self._head)

    def _take(self) -> bytes | LongLine:
        line = b"".join(self._pieces)
        head, self._head, self._pieces, self._size = self._head, None, [], 0
        return line if head is None else LongLine(head, line)


def answered_id(head: bytes, tail: bytes) -> int | str | None:
    """The id of a broken answer, if it stands for certain at the top level: first or last in its object."""
    if b'"method"' in head[:200] or b'"method"' in tail[-200:]:
        return None  # a request of the server: its ids are its own
    match = _HEAD_ID.match(head) or _TAIL_ID.search(tail)
    if match is None:
        return None
    number, text = match.groups()
    return int(number) if number is not None else text.decode("utf-8", "replace")


def decode(line: bytes) -> JsonValue:
    """The message of a line or body. One piece of work: its length is the only bound.

    Raises:
        orjson.JSONDecodeError: it is not quite JSON.
    """
    if len(line) < LARGE:  # nearly all are
        return orjson.loads(line)
    with REST.span():
        return orjson.loads(line)


def _resting(text: bytes | str) -> AbstractContextManager[None]:
    return REST.span() if len(text) >= LARGE else _NOT_WORTH_WHILE


class NotJson(ValueError):
    """A line that holds no JSON, even read with good will. `kind` is the kind of the diagnostic."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def decode_leniently(line: bytes) -> tuple[list[JsonValue], str | None]:
    """The messages of a line that orjson refused, and the kind of what was wrong (None: nothing worth a count).

    Read are: a byte order mark before it, invalid UTF-8 (as U+FFFD), NaN, infinities and numbers beyond any float (as
    null), lone surrogates (as "?"), several messages on one line, up to MOST_TOGETHER. The values returned are such
    that orjson can write them.

    Raises:
        NotJson: the line is something else, such as a log message.
    """
    line = line.removeprefix(BYTE_ORDER_MARK)
    text = line.decode("utf-8", "replace")
    valid = "\ufffd" not in text or _is_utf8(line)
    try:
        with _resting(text):
            messages = list(islice(_values(text), MOST_TOGETHER + 1))
    except (ValueError, RecursionError):
        raise NotJson("noise" if valid else "invalid_utf8") from None
    if len(messages) > MOST_TOGETHER:
        raise NotJson("noise")
    if not valid:
        return messages, "invalid_utf8"
    return messages, "joined_messages" if len(messages) > 1 else None


def decode_plainly(text: str) -> JsonValue:
    """One JSON value, read by the same rules.

    Raises:
        ValueError, RecursionError: it is none.
    """
    with _resting(text):
        return _writable(_DECODER.decode(text))


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _finite(number: str) -> float | None:
    value = float(number)
    return value if math.isfinite(value) else None


def _whole(number: str) -> int | float | None:
    """A whole number; beyond 64 bits the nearest float, as orjson reads it, and beyond that nothing."""
    return int(number) if len(number) <= 20 else _finite(number)


_DECODER = json.JSONDecoder(parse_constant=lambda _: None, parse_float=_finite, parse_int=_whole)


def _values(text: str) -> Iterator[JsonValue]:
    text = text.strip()
    position, end = 0, len(text)
    while position < end:
        value, position = _DECODER.raw_decode(text, position)
        yield _writable(value)
        found = _NOT_BLANK.search(text, position)
        position = end if found is None else found.start()


def _writable(value: Any) -> JsonValue:
    return orjson.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
