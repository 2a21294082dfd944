"""Which of the user's rules speaks for a call (APR-4).

Owns: what it means for a rule to match, and the sentence for why it does not.
Never: decides without a rule (`approval` does), or reads a configuration file.

The first rule that matches decides, in the order of the file: the reader can stop at it, and an exception
is written above what it is an exception from. A rule that names an argument does not match where the value
has another type: a pattern over a text says nothing about a list, so a later rule, or the mode, decides.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from posixpath import isabs, normpath
from typing import Final, assert_never

from interlock.questions.checks import is_number
from interlock.vocabulary.json import JsonObject, JsonValue
from interlock.vocabulary.policy import ApprovalRule, ArgumentTest, Between, Hint, Like, OneOf, Present, Within
from interlock.vocabulary.tool import ToolAnnotations

_ABSENT: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """What rules and modes look at: the identity of the tool, its annotations, the arguments of the call."""

    server: str
    tool: str
    annotations: ToolAnnotations = field(default_factory=ToolAnnotations)
    arguments: JsonObject = field(default_factory=dict[str, JsonValue])
    connector_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """One rule held against a call. `number` counts from 1; `mismatch` None: it matches."""

    number: int
    rule: ApprovalRule
    mismatch: str | None


def examine(rules: tuple[ApprovalRule, ...], call: CallFacts) -> tuple[Examined, ...]:
    """Every rule up to the first that matches, each with the first thing that does not fit."""
    seen = []
    for number, rule in enumerate(rules, start=1):
        mismatch = next(_mismatches(rule, call), None)
        seen.append(Examined(number=number, rule=rule, mismatch=mismatch))
        if mismatch is None:
            break
    return tuple(seen)


def deciding(examined: tuple[Examined, ...]) -> Examined | None:
    """The rule that matched, which is the last one looked at."""
    return examined[-1] if examined and examined[-1].mismatch is None else None


def _mismatches(rule: ApprovalRule, call: CallFacts) -> Iterator[str]:
    if not fnmatchcase(call.server, rule.server):
        yield f"the server is {call.server!r}, not like {rule.server!r}"
    if not fnmatchcase(call.tool, rule.tool):
        yield f"the tool is {call.tool!r}, not like {rule.tool!r}"
    for hint, wanted in rule.hints.items():
        if (given := _hint(call.annotations, hint)) is not wanted:
            yield f"{hint} is {'not given' if given is None else str(given).lower()}, not {str(wanted).lower()}"
    for path, test in rule.arguments.items():
        value = _member(call.arguments, path)
        if not _passes(test, value):
            yield f"argument {path} {'is missing' if value is _ABSENT else 'is not what the rule wants'}"


def _hint(annotations: ToolAnnotations, hint: Hint) -> bool | None:
    match hint:
        case "read_only":
            return annotations.read_only_hint
        case "destructive":
            return annotations.destructive_hint
        case "idempotent":
            return annotations.idempotent_hint
        case "open_world":
            return annotations.open_world_hint
        case _:
            assert_never(hint)


def _member(arguments: JsonObject, path: str) -> JsonValue:
    """The member at `path`; a name that holds dots itself is found by its whole name first."""
    if path in arguments:
        return arguments[path]
    head, dot, rest = path.partition(".")
    inner = arguments.get(head)
    return _member(inner, rest) if dot and isinstance(inner, Mapping) else _ABSENT


def _passes(test: ArgumentTest, value: JsonValue) -> bool:
    match test:
        case Present():
            return (value is not _ABSENT) is test.expected
        case Like():
            return isinstance(value, str) and fnmatchcase(value, test.pattern)
        case Within():
            return isinstance(value, str) and _is_within(value, test.folder)
        case OneOf():
            return any(_equal(value, wanted) for wanted in test.values)
        case Between():
            return is_number(value) and _is_between(value, test)
        case _:
            assert_never(test)


def _equal(value: JsonValue, wanted: JsonValue) -> bool:
    return isinstance(value, bool) is isinstance(wanted, bool) and bool(value == wanted)  # JSON's true is not 1


def _is_between(value: float, test: Between) -> bool:
    return (test.minimum is None or value >= test.minimum) and (test.maximum is None or value <= test.maximum)


def _is_within(path: str, folder: str) -> bool:
    """A path without a fixed beginning (relative, or `~`) is in no folder: nobody here knows where it starts."""
    if not isabs(path) or "\0" in path:
        return False
    inside, outside = normpath(path), normpath(folder)
    return inside == outside or inside.startswith(outside.rstrip("/") + "/")
