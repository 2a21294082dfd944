"""JSON text that gives back what was put in.

Owns: how a decoded JSON value becomes the text of a stored payload, and back.
Never: loses anything silently: what JSON cannot carry is refused.

orjson writes the common case. It turns NaN into null unseen and knows neither lone surrogates nor
integers over 64 bits, so those go the slow way; reading always takes the standard library, which
knows all of them.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import orjson

from interlock.vocabulary.json import JsonValue

_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def dumps(value: JsonValue) -> str:
    """Compact JSON. ValueError, in words, for what JSON cannot carry (NaN, a key that is no string, a cycle)."""
    try:
        text = orjson.dumps(value, default=_plain, option=_OPTIONS)
    except (TypeError, RecursionError):
        return _dumps_slowly(value)
    if b"null" in text:
        _check(value)  # a null may have been a NaN
    return text.decode()


def loads(text: str) -> JsonValue:
    """The value of a JSON text; ValueError or RecursionError when it is none."""
    return _DECODER.decode(text)


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _dumps_slowly(value: JsonValue) -> str:
    try:
        text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=_plain)
    except TypeError as error:
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    _check(value)  # after json.dumps, which refuses what contains itself
    return text


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is no JSON value")


def _check(value: JsonValue) -> None:
    """Refuse NaN, infinities, and keys that json.dumps would turn into strings; by levels, without recursion."""
    level = [value]
    while level:
        level = [inner for outer in level for inner in _children(outer)]


def _children(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a JSON number")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("an object has a key that is no string")
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []
