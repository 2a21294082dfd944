"""Names for decoded JSON, the two ways in which it is written, and the words for what is none.

Owns: the aliases by which every room speaks of JSON that came from outside; its compact and its canonical text.
Never: parses or validates.
"""

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, TypeAlias

import orjson

JsonValue: TypeAlias = Any
"""Any decoded JSON value: None, bool, int, float, str, list or dict."""

JsonObject: TypeAlias = Mapping[str, Any]
"""A decoded JSON object, treated as frozen by everybody who holds it."""

EXCERPT_LEVELS: Final = 4
EXCERPT_ENTRIES: Final = 10
EXCERPT_BITS: Final = 10_000
"""What an excerpt shows of a value; a longer whole number is one that Python refuses to write."""


def compact(value: JsonValue) -> str:
    """`value` as JSON without spaces: members in their order, non-ASCII characters as they are.

    Raises:
        ValueError: `value` is not JSON, or is nested deeper than about 1,000 levels.
    """
    return _write(value, sort_keys=False)


def canonical(value: JsonValue) -> str:
    """The same text for equal values, whatever the order of their members (CAT-7): compact, members sorted.

    Raises:
        ValueError: as `compact` does.
    """
    return _write(value, sort_keys=True)


def ordered(value: JsonValue) -> JsonValue:
    """A copy of `value` whose objects have their members sorted by name, at every depth.

    Raises:
        ValueError: as `compact` does.
    """
    return ordered_and_written(value)[0]


def ordered_and_written(value: JsonValue) -> tuple[JsonValue, bytes | None]:
    """`ordered`, with the UTF-8 text that it was read from; None where orjson cannot write the value."""
    try:
        text = orjson.dumps(value, default=_plain, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return json.loads(_write_anything(value, sort_keys=True)), None
    return orjson.loads(text), text


def copied(value: JsonObject) -> JsonObject:
    """The same value in objects of our own, so that what its giver does with it later does not matter.

    What is not JSON stays as it is: whoever writes it refuses it.
    """
    try:
        return {name: _copy(member) for name, member in value.items()}
    except RecursionError:
        return value


def _copy(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping):
        return {name: _copy(member) for name, member in value.items()}
    return [_copy(entry) for entry in value] if isinstance(value, list | tuple) else value


def fault(error: json.JSONDecodeError) -> str:
    """What is wrong with a text that is no JSON, without the place, to stand in a sentence: "unterminated string"."""
    words = error.msg[:1].lower() + error.msg[1:]
    return words.removesuffix(" at").removesuffix(" starting")  # the parser's own words lead over to the place


def excerpt(value: JsonValue, limit: int) -> str:
    """The beginning of `value` as Python writes it, in at most `limit` characters, to be quoted in a sentence.

    Its cost is that of the excerpt, however long, wide or deep the value is.
    """
    return _excerpt(value, limit, EXCERPT_LEVELS)[:limit]


def _excerpt(value: JsonValue, limit: int, levels: int) -> str:
    if isinstance(value, str):
        return repr(value[:limit])
    if isinstance(value, int) and value.bit_length() > EXCERPT_BITS:
        return "a huge number"
    if not isinstance(value, dict | list):
        return repr(value)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if levels == 0:
        return f"{opening}…{closing}" if value else opening + closing
    parts = [_part(value, part, limit, levels - 1) for part in islice(value, EXCERPT_ENTRIES)]
    return opening + ", ".join(parts + ["…"] * (len(value) > EXCERPT_ENTRIES)) + closing


def _part(whole: dict[Any, Any] | list[Any], part: JsonValue, limit: int, levels: int) -> str:
    """A member by its name, or an entry."""
    written = _excerpt(part, limit, levels)
    return f"{written}: {_excerpt(whole[part], limit, levels)}" if isinstance(whole, dict) else written


def _write(value: JsonValue, *, sort_keys: bool) -> str:
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_SORT_KEYS if sort_keys else 0).decode()
    except orjson.JSONEncodeError:
        # Integers over 64 bits, lone surrogates and nesting over 254 levels are JSON too; rare, so slow is fine.
        return _write_anything(value, sort_keys=sort_keys)


def _write_anything(value: JsonValue, *, sort_keys: bool) -> str:
    def written(ascii_only: bool) -> str:
        return json.dumps(
            value, ensure_ascii=ascii_only, separators=(",", ":"), sort_keys=sort_keys, default=_plain, allow_nan=False
        )

    try:
        text = written(ascii_only=False)
        return text if _is_encodable(text) else written(ascii_only=True)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"a value cannot be written as JSON: {error}") from error


def _is_encodable(text: str) -> bool:
    """False for lone surrogates: only an escape can carry those."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
