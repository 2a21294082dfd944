"""What a model asks for when it calls a function.

Owns: decoding of a call's arguments, and the sentence for arguments that cannot be used.
Never: checks them against a schema, or changes a value (CAT-9).
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

import orjson

from interlock.vocabulary.construction import quickly_made
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.json import JsonObject, JsonValue, fault

ARGUMENTS_LIMIT = 16 * 1024 * 1024
"""Bytes of JSON that one call may carry: far above what a model writes, below a server's usual line limit."""


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """One call as it was asked for.

    `text` is the JSON text of the arguments, `arguments` what it says; where it could not be decoded
    both are the raw text, and `problem` is the sentence that says why.
    """

    call_id: str
    public_name: str
    text: str
    arguments: JsonValue
    problem: str | None = None

    def usable_arguments(self) -> JsonObject:
        """The arguments as a JSON object; none at all are an empty one.

        Raises:
            InvalidRequest: they are not JSON, or not an object.
        """
        if self.problem is not None:
            raise InvalidRequest(self.problem)
        if self.arguments is None:
            return {}
        if not isinstance(self.arguments, Mapping):
            raise InvalidRequest(f"the arguments of {self.public_name!r} must be a JSON object; call it again with one")
        return self.arguments


def read_request(call_id: str, public_name: str, arguments: str | JsonObject | None) -> CallRequest:
    """Decode the arguments, given as JSON text or as a decoded object; blank text means none."""
    try:
        text, decoded = _read(arguments)
        return CallRequest(call_id=call_id, public_name=public_name, text=text, arguments=decoded)
    except (ValueError, TypeError, RecursionError) as error:
        raw = (arguments if isinstance(arguments, str) else repr(arguments))[:ARGUMENTS_LIMIT]
        problem = (
            f"the arguments of {public_name!r} are not valid JSON ({_reason(error)}); call it again with valid JSON"
        )
        return CallRequest(call_id=call_id, public_name=public_name, text=raw, arguments=raw, problem=problem)


def _read(arguments: str | JsonObject | None) -> tuple[str, JsonValue]:
    """The arguments as JSON text and decoded: what its caller does with an object later does not matter."""
    if isinstance(arguments, str):
        return arguments, _decode(arguments)
    if arguments is None:
        return "", None
    try:
        written = orjson.dumps(arguments, option=_AS_JSON)
    except orjson.JSONEncodeError:
        written = b"null"
    if b"null" in written:  # it may have been a NaN; this and whatever orjson refuses is read with care
        text = _ENCODER.encode(arguments)
        return text, _decode(text)
    if len(written) > ARGUMENTS_LIMIT:
        raise ValueError(_TOO_LONG)
    return written.decode(), orjson.loads(written)


def _decode(text: str) -> JsonValue:
    if not text.strip():
        return None
    if len(text.encode()) > ARGUMENTS_LIMIT:
        raise ValueError(_TOO_LONG)
    decoded: JsonValue = _DECODER.decode(text)
    if "\\u" in text:
        _ENCODER.encode(decoded).encode()  # half of a surrogate pair could not be sent or stored
    return decoded


def _mapping(value: object) -> dict[object, object]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is not a JSON value")


def _finite(number: str) -> float:
    """`number`, unless it is beyond what a float holds: an infinity could neither be stored nor sent."""
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"the number {number[:40]} is too large")
    return value


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


_TOO_LONG: Final = f"more than {ARGUMENTS_LIMIT} bytes"
_AS_JSON: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
_ENCODER: Final = json.JSONEncoder(allow_nan=False, ensure_ascii=False, default=_mapping)
_DECODER: Final = json.JSONDecoder(parse_constant=_not_json, parse_float=_finite)


def _reason(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            return f"{fault(error)} at character {error.pos}"
        case RecursionError():
            return "nested too deeply"
        case UnicodeEncodeError():
            return "half of a surrogate pair"
        case _:
            return str(error)
