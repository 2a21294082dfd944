"""The arguments of the resource tools, from the model's JSON text to values that can be used.

Owns: what counts as absent, blank or wrong (RES-2, RES-3), and the server that an item names.
Never: knows which servers exist.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import orjson

from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.json import JsonObject, JsonValue

HOST = "interlock"
"""The server that an item names when the call went to all of them (BEHAVIOUR section 5)."""


RawArguments: TypeAlias = str | JsonObject | None
"""The arguments as they came: the model's JSON text, or an application's object; None for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListArguments:
    """One page of `server` from `cursor` on, or everything of every server."""

    server: str | None = None
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadArguments:
    server: str
    uri: str


def list_arguments(raw: RawArguments) -> ListArguments:
    """The arguments of a list. Blank strings and null mean absent; other properties are ignored.

    Raises:
        InvalidRequest: broken JSON, a wrong type, or a cursor without a server.
    """
    members = _object(raw)
    server, cursor = _optional(members, "server"), _optional(members, "cursor")
    if cursor is not None and server is None:
        raise InvalidRequest(
            "cannot list from a cursor without a server: a cursor belongs to the server that gave it; add server",
            field="server",
        )
    return ListArguments(server=server, cursor=cursor)


def read_arguments(raw: RawArguments) -> ReadArguments:
    """The arguments of a read, trimmed; other properties are ignored.

    Raises:
        InvalidRequest: broken JSON, a wrong type, or `server` or `uri` missing or blank.
    """
    members = _object(raw)
    return ReadArguments(server=_required(members, "server"), uri=_required(members, "uri"))


def item_server(raw: RawArguments) -> str:
    """The server that the item of a call with these arguments names; never fails."""
    try:
        return _optional(_object(raw), "server") or HOST
    except InvalidRequest:
        return HOST


def _object(raw: RawArguments) -> JsonObject:
    """The members of the arguments; an empty text, null and "" stand for none."""
    value = _decoded(raw) if isinstance(raw, str) else raw
    if value is None or value == "":
        return {}
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"cannot use {_kind(value)} as arguments; send one JSON object", field=None)
    return value


def _decoded(text: str) -> JsonValue:
    if not text.strip():
        return None
    try:
        return orjson.loads(text)
    except ValueError as error:
        message = f"cannot read the arguments: they are not JSON ({error}); send one JSON object"
        raise InvalidRequest(message, field=None) from None


def _optional(members: JsonObject, name: str) -> str | None:
    value = members.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidRequest(f"cannot use {_kind(value)} as {name}; send a string", field=name)
    return value.strip() or None


def _required(members: JsonObject, name: str) -> str:
    value = _optional(members, name)
    if value is None:
        raise InvalidRequest(f"cannot read a resource without {name}: it is missing or blank; add {name}", field=name)
    return value


def _kind(value: JsonValue) -> str:
    match value:
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"
