"""What checking a value against a schema may cost, before it is done.

Owns: an upper bound of how often the parts of a schema are applied to a value.
Never: checks a value, or judges a schema by anything but that.

A few lines of schema can ask for 2^40 steps: definitions that name the next one twice, recursion into the same member
twice, unevaluatedProperties within each other. The validator is native code that nothing interrupts, so whoever checks
what a server sends has to know beforehand. Every part that a keyword holds counts as applied: either to the same value
(allOf, $ref, …) or to its members (properties, items, …); unfolding that along the value's depth bounds the work.
"""

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from interlock.vocabulary.json import JsonObject, JsonValue
from interlock.vocabulary.slices import Sliced

MOST_STEPS: Final = 2_000_000
"""Steps that a check may take: a third of a second, if each of them is really taken; the bound is a loose one. Native
code does them in one piece, for which everybody waits."""
MOST_PARTS: Final = 10_000
"""Parts of a schema that are looked at; larger ones are not checked."""
DEEPEST: Final = 128

SAME_VALUE: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
NOT_APPLIED: Final = frozenset(
    {"$defs", "definitions", "enum", "const", "default", "examples", "required", "$vocabulary"}
)
ANCHORS: Final = ("$anchor", "$dynamicAnchor")
MAPS: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"})
"""Keywords that hold schemas by name."""

Part = int
"""A part of a schema, by its position in the list of all."""


class SchemaCost:
    """The bound for one schema. Made once, asked for each value."""

    def __init__(self, schema: JsonObject) -> None:
        self._parts = _Parts(schema)
        self._unfolded: list[int] = []
        """By depth: the parts that are applied to a value, to one member of it, one member of that, and so on."""
        self._settled = False
        try:
            self._order = tuple(TopologicalSorter(self._parts.same).static_order()) if self._parts.known else ()
        except CycleError:  # it applies itself to the same value for ever
            self._order = ()
        self._at_depth: list[int] = []

    def affordable(self, value: JsonValue) -> Sliced[bool]:
        """Whether a check of `value` surely takes no more than MOST_STEPS; found out in slices."""
        if not self._order:
            return False
        depth, size = yield from _depth_and_size(value)
        return depth <= DEEPEST and self._steps(depth) * size <= MOST_STEPS

    def _steps(self, depth: int) -> int:
        """For one path through a value of this depth; deeper values never take fewer."""
        while len(self._unfolded) <= depth and not self._settled:
            before, self._at_depth = self._at_depth, self._next()
            self._unfolded.append(self._at_depth[0])
            self._settled = self._at_depth == before or self._unfolded[-1] > MOST_STEPS
        return self._unfolded[min(depth, len(self._unfolded) - 1)]

    def _next(self) -> list[int]:
        above, found = self._at_depth, [0] * len(self._order)
        for part in self._order:
            steps = 1 + self._parts.weight[part] * sum(found[other] for other in self._parts.same[part])
            if above:
                steps += sum(above[other] for other in self._parts.members[part])
            found[part] = min(steps, MOST_STEPS + 1)
        return found


class _Parts:
    """All objects and lists of a schema, and which of them each applies to its own value and to members of it.

    `known` is False where a reference leads out of the schema, a part is a schema of its own ($id), or there are too
    many parts.
    """

    def __init__(self, schema: JsonObject) -> None:
        self.same: dict[Part, list[Part]] = {}
        self.members: dict[Part, list[Part]] = {}
        self.weight: list[int] = []
        self.known = True
        self._all: list[Any] = [schema]
        self._number: dict[int, Part] = {id(schema): 0}
        self._maps = set[Part]()
        self._anchors: dict[str, list[Part]] = {}
        references: list[tuple[Part, str]] = []
        for part, node in enumerate(self._all):  # it grows meanwhile
            if part >= MOST_PARTS:
                self.known = False
                return
            references += self._read(part, node)
        for part, reference in references:
            self._refer(part, reference)

    def _read(self, part: Part, node: Any) -> Iterator[tuple[Part, str]]:
        same, members = self.same.setdefault(part, []), self.members.setdefault(part, [])
        # What is evaluated has to be found out once more for each of these, below each other.
        self.weight.append(3 if isinstance(node, dict) and any(name.startswith("unevaluated") for name in node) else 1)
        if isinstance(node, list) or part in self._maps:
            inside = node if isinstance(node, list) else node.values()
            same += [self._part(inner) for inner in inside if isinstance(inner, dict | list)]
            return
        for keyword, inner in node.items():
            if isinstance(inner, dict | list):
                held = self._part(inner)
                if keyword in MAPS and isinstance(inner, dict):
                    self._maps.add(held)
                if keyword not in NOT_APPLIED:
                    (same if keyword in SAME_VALUE else members).append(held)
            elif isinstance(inner, str) and keyword in REFERENCES:
                yield part, inner
            elif isinstance(inner, str) and keyword in ANCHORS:
                self._anchors.setdefault("#" + inner, []).append(part)
        self.known = self.known and (part == 0 or not isinstance(node.get("$id"), str))

    def _part(self, node: Any) -> Part:
        if id(node) not in self._number:
            self._number[id(node)] = len(self._all)
            self._all.append(node)
        return self._number[id(node)]

    def _refer(self, part: Part, reference: str) -> None:
        found = self._anchors.get(reference) or self._pointed(reference)
        self.known = self.known and bool(found)
        self.same[part] += found

    def _pointed(self, reference: str) -> list[Part]:
        """What a JSON pointer (RFC 6901) from the root leads to; nothing if that is no part."""
        node = self._all[0]
        own = node.get("$id")
        reference = reference.removeprefix(own) if isinstance(own, str) else reference
        if reference not in ("", "#") and not reference.startswith("#/"):
            return []
        for step in reference.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and name.isdecimal() and len(name) < 6 and int(name) < len(node):
                node = node[int(name)]
            elif isinstance(node, Mapping):
                node = node.get(name)
            else:
                return []
        return [self._number[id(node)]] if id(node) in self._number else []


def _depth_and_size(value: JsonValue) -> Sliced[tuple[int, int]]:
    """Levels of a value below its own, and values in it; not counted beyond what could be afforded."""
    depth, size, level = 0, 1, [value]
    while size <= MOST_STEPS and depth <= DEEPEST:
        below: list[Any] = []
        for node in level:
            if isinstance(node, dict | list):
                below += node.values() if isinstance(node, dict) else node
                yield
                if len(below) > MOST_STEPS:
                    break
        if not below:
            break
        depth, size, level = depth + 1, size + len(below), below
    return depth, size
