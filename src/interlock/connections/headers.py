"""The protocol's own headers of a request over HTTP (specification 2026-07-28: Streamable HTTP, Standard and Custom
Headers).

Owns: their names, how a value is written into one, and which arguments of a tool go into headers of their own.
Never: sends anything, follows a `$ref`, or takes a value of a schema (a default, an example) for a schema.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from interlock.vocabulary.json import JsonObject, JsonValue

PROTOCOL_VERSION: Final = "mcp-protocol-version"
METHOD: Final = "mcp-method"
NAME: Final = "mcp-name"
PARAMETER: Final = "Mcp-Param-"
"""What the header of an argument begins with; the annotation of its property follows."""
NAMED_BY: Final[Mapping[str, str]] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Which parameter of a method goes into the header of its name."""

ANNOTATION: Final = "x-mcp-header"
ANNOTATED_TYPES: Final = frozenset({"string", "integer", "boolean"})
SCHEMA_IN: Final = frozenset({"items", "contains", "contentSchema", "propertyNames", "not", "if", "then", "else"}) | {
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
}
SCHEMAS_IN: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
NAMED_SCHEMAS_IN: Final = frozenset({"$defs", "definitions", "patternProperties", "dependentSchemas"})

_PLAIN = re.compile(r"[\x20-\x7e]*")
_ENCODED = re.compile(r"=\?base64\?.*\?=")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")

Path: TypeAlias = tuple[str, ...]
"""The names of properties from the root of a schema to one of its properties."""


def encoded(value: str) -> str:
    """The value of a header: as it is where a header can carry that, else in base64, marked as such."""
    if _PLAIN.fullmatch(value) and value == value.strip() and not _ENCODED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode('ascii')}?="


def invalid_annotation(schema: JsonValue) -> str | None:
    """Why the header annotations of an input schema cannot be used; None if they can, or if there are none."""
    seen = set[str]()
    for path, position in _positions(schema):
        if ANNOTATION not in position:
            continue
        if not path:
            return f"{ANNOTATION} stands where no chain of properties leads to"
        header, where = position[ANNOTATION], ".".join(path)[:200]
        if not isinstance(header, str) or not _TOKEN.fullmatch(header):
            return f"the {ANNOTATION} of property {where!r} is not the name of a header"
        if not isinstance(kind := position.get("type"), str) or kind not in ANNOTATED_TYPES:
            return f"property {where!r} has {ANNOTATION}, but is no string, integer or boolean"
        if header.lower() in seen:
            return f"the {ANNOTATION} {header[:200]!r} of property {where!r} was used before"
        seen.add(header.lower())
    return None


def header_map(schema: JsonValue) -> Mapping[Path, str]:
    """The annotation of every annotated property, by its path. For a schema whose annotations are valid."""
    return {
        path: position[ANNOTATION]
        for path, position in _positions(schema)
        if path and isinstance(position.get(ANNOTATION), str)
    }


def parameter_headers(annotations: Mapping[Path, str], arguments: JsonObject) -> dict[str, str]:
    """The headers of the arguments that are there and can be written into one."""
    found = ((annotation, _written(_at(path, arguments))) for path, annotation in annotations.items())
    return {PARAMETER + annotation: encoded(text) for annotation, text in found if text is not None}


def _positions(root: JsonValue) -> Iterator[tuple[Path | None, Mapping[str, Any]]]:
    """Every schema within a schema, with its path; None where other keywords than `properties` lead there."""
    waiting: list[tuple[Path | None, Any]] = [((), root)]
    while waiting:
        path, position = waiting.pop()
        if isinstance(position, Mapping):
            yield path, position
            for keyword, value in position.items():
                if keyword == "properties" and isinstance(value, Mapping):
                    waiting += ((None if path is None else (*path, name), inner) for name, inner in value.items())
                else:
                    waiting += ((None, inner) for inner in _within(keyword, value))


def _within(keyword: str, value: Any) -> tuple[Any, ...]:
    """The schemas that a keyword other than `properties` holds."""
    if keyword in SCHEMA_IN:
        return (value,)
    if keyword in SCHEMAS_IN and isinstance(value, list):
        return tuple(value)
    if keyword in NAMED_SCHEMAS_IN and isinstance(value, Mapping):
        return tuple(value.values())
    return ()


def _at(path: Path, arguments: JsonObject) -> JsonValue:
    found: JsonValue = arguments
    for name in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found


def _written(value: JsonValue) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        return None
    try:
        return str(value)
    except ValueError:  # an integer of more digits than Python writes
        return None
