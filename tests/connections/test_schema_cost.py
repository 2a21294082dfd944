"""Checks of what servers send are bounded before they begin."""

from typing import Any

import pytest

from interlock.connections.schema_cost import SchemaCost
from interlock.vocabulary.slices import at_once
from tests.manifest import requirement

Schema = dict[str, Any]

TREE: Schema = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
}
UNION: Schema = {
    "$id": "https://example.org/any",
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "https://example.org/any#"}}],
}
MODELS: Schema = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}}},
    "$defs": {
        "Row": {"properties": {"$id": {"type": "integer"}, "at": {"anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}]}}},
        "P": {"properties": {"x": {"$ref": "#n"}, "y": {"$ref": "#n"}}},
        "N": {"$anchor": "n", "type": "number"},
    },
}


def deep(levels: int, wrap: Any, inner: Any) -> Any:
    for _ in range(levels):
        inner = wrap(inner)
    return inner


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, {"a": [1, 2]}),
        (TREE, deep(40, lambda child: {"name": "n", "children": [child, {"name": "leaf"}]}, {"name": "end"})),
        (UNION, deep(60, lambda inner: [inner, "x"], "x")),
        (MODELS, {"rows": [{"$id": n, "at": {"x": n, "y": n}} for n in range(5000)]}),
    ],
    ids=["nothing", "tree", "union", "models"],
)
def test_what_servers_usually_send_is_affordable(schema: Schema, value: Any) -> None:
    assert at_once(SchemaCost(schema).affordable(value))


LAUGHS: Schema = {
    "$ref": "#/$defs/a0",
    "$defs": {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)} | {"a40": {}},
}
TWICE: Schema = {"properties": {"x": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}
DYNAMIC: Schema = {
    "$dynamicAnchor": "n",
    "additionalProperties": {"anyOf": [{"$dynamicRef": "#n"}, {"$dynamicRef": "#n"}]},
}
UNEVALUATED: Schema = deep(40, lambda inner: {"allOf": [inner], "unevaluatedProperties": False}, {})
CIRCLE: Schema = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
NESTED = deep(40, lambda inner: {"x": inner}, 1)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (LAUGHS, 1),
        (TWICE, NESTED),
        (DYNAMIC, NESTED),
        (UNEVALUATED, {"x": 1}),
        (CIRCLE, 1),
        ({"$ref": "https://example.org/elsewhere"}, 1),
        ({"allOf": [{"$id": "https://example.org/own", "$ref": "#/$defs/a", "$defs": {"a": {}}}]}, 1),
        ({"enum": [{} for _ in range(20_000)]}, 1),
        (TREE, deep(1000, lambda inner: [inner], 1)),
    ],
    ids=["laughs", "twice", "dynamic", "unevaluated", "circle", "elsewhere", "own id", "large", "deep value"],
)
@requirement("CON-1")
def test_what_could_take_for_ever_is_not(schema: Schema, value: Any) -> None:
    assert not at_once(SchemaCost(schema).affordable(value))


def test_a_schema_that_is_costly_for_deep_values_is_cheap_for_flat_ones() -> None:
    cost = SchemaCost(TWICE)
    assert at_once(cost.affordable({"x": 1}))
    assert not at_once(cost.affordable(NESTED))
    assert at_once(cost.affordable({"x": {"x": 1}}))
