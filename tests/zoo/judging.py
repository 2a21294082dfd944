"""What should have come of an operation and of a whole scenario, compared with what came.

Owns: the meaning of every check that a scenario file can make (see README.md).
Never: waits, drives or reads anything.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

GRACE = 20.0
"""Seconds beyond its own limit after which an operation counts as hung."""
SHOWN = 160
"""Characters of a text that a problem quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an operation came to: a value, or an error (`error` is None exactly if it succeeded).

    `names` are raw names or URIs, `exposed` the names that the model sees, `text` what is shown of a result or, of a
    listing, all descriptions as shown. None: does not apply.
    """

    error: str | None = None
    names: list[str] | None = None
    exposed: list[str] | None = None
    text: str | None = None
    is_error: bool = False

    @property
    def succeeded(self) -> bool:
        return self.error is None


def problems_of(operation: dict[str, Any], outcome: Outcome, seconds: float) -> list[str]:
    """What is wrong with one operation, as sentences."""
    where = " ".join(str(operation[key]) for key in ("op", "tool", "uri") if key in operation)
    found = [*_outcome_problems(operation, outcome)]
    if seconds > (limit := limit_of(operation)):
        found.append(f"took {seconds:.1f} s, at most {limit} expected")
    return [f"{where}: {problem}" for problem in found]


def limit_of(operation: dict[str, Any]) -> float:
    """Seconds that the operation may take."""
    return float(operation.get("within", 10))


def _outcome_problems(operation: dict[str, Any], outcome: Outcome) -> Iterator[str]:
    wanted = operation.get("ok", True)
    if wanted != "any" and outcome.succeeded != wanted:
        yield f"expected ok={wanted}, got {outcome.error or 'a result'!r:.{SHOWN}}"
    elif outcome.error is not None:
        yield from _error_problems(operation, outcome.error)
    else:
        yield from _name_problems(operation, outcome.names or [])
        yield from _exposed_problems(operation, outcome.exposed or [])
        yield from _text_problems(operation, outcome)


def _error_problems(operation: dict[str, Any], error: str) -> Iterator[str]:
    contained = _contained(operation, "error_contains", error.lower())
    if contained is not None and not any(contained):
        yield f"error {error[:SHOWN]!r} names none of {operation['error_contains']}"
    if any(_contained(operation, "error_lacks", error.lower()) or ()):
        yield f"error {error[:SHOWN]!r} contains {operation['error_lacks']}"
    if len(error) > operation.get("error_max", len(error)):
        yield f"error text of {len(error)} characters, at most {operation['error_max']} expected"


def _name_problems(operation: dict[str, Any], names: list[str]) -> Iterator[str]:
    if missing := [name for name in operation.get("names_include", ()) if name not in names]:
        yield f"missing {missing} in {names[:8]}"
    if unwanted := [name for name in operation.get("names_exclude", ()) if name in names]:
        yield f"should not list {unwanted}"
    if len(names) != operation.get("count", len(names)):
        yield f"{len(names)} entries, expected {operation['count']}"
    if not operation.get("count_min", 0) <= len(names) <= operation.get("count_max", len(names)):
        yield f"{len(names)} entries, expected {operation.get('count_min', 0)} to {operation.get('count_max')}"


def _exposed_problems(operation: dict[str, Any], exposed: list[str]) -> Iterator[str]:
    if operation.get("exposed_unique") and len(set(exposed)) != len(exposed):
        yield f"names for the model collide: {sorted(exposed)[:6]}"
    pattern = operation.get("exposed_pattern", ".*")
    if odd := [name for name in exposed if not re.fullmatch(pattern, name)]:
        yield f"names for the model {odd[:3]} do not fit {pattern}"


def _text_problems(operation: dict[str, Any], outcome: Outcome) -> Iterator[str]:
    text = outcome.text or ""
    if not all(_contained(operation, "text_contains", text) or (True,)):
        yield f"text {text[:SHOWN]!r} lacks {operation['text_contains']!r}"
    if text != operation.get("text_equals", text):
        yield f"text {text[:SHOWN]!r} is not {operation['text_equals']!r}"
    if any(_contained(operation, "text_lacks", text) or ()):
        yield f"text contains one of {operation['text_lacks']!r}"
    if outcome.is_error != operation.get("is_error", outcome.is_error):
        yield f"is_error={outcome.is_error}, expected {operation['is_error']}"


def _contained(operation: dict[str, Any], check: str, text: str) -> list[bool] | None:
    """Which of the texts that the check names are in `text` (errors are compared in lower case)."""
    if check not in operation:
        return None
    wanted = operation[check] if isinstance(operation[check], list) else [operation[check]]
    return [(part.lower() if check.startswith("error") else part) in text for part in wanted]


def trace_problems(expect: dict[str, Any], trace: list[dict[str, Any]]) -> Iterator[str]:
    """What is wrong with what the animal saw."""
    for check in expect.get("after", ()):
        if "trace" not in check:
            continue
        seen = sum(matches(check["trace"], entry) for entry in trace)
        least = check.get("min", 0 if "max" in check else 1)
        if not least <= seen <= check.get("max", seen):
            yield f"trace {check['trace']}: seen {seen} times, expected {least} to {check.get('max', 'any')}"


def whole_problems(expect: dict[str, Any], seconds: float, peak_megabytes: float | None) -> Iterator[str]:
    """What is wrong with the time and memory of the whole scenario; memory None: it is not known."""
    for check in expect.get("after", ()):
        if seconds > check.get("finishes_within", seconds):
            yield f"the whole run took {seconds:.1f} s, at most {check['finishes_within']} expected"
        if peak_megabytes is not None and peak_megabytes > check.get("max_rss_mb", peak_megabytes):
            yield f"peak memory {peak_megabytes:.0f} MB, at most {check['max_rss_mb']} expected"


def matches(wanted: Any, got: Any) -> bool:
    """Whether `got` has all that `wanted` names; a text that starts with ~ is a regular expression."""
    if isinstance(wanted, dict):
        if wanted.get("$absent"):
            return got is None
        return isinstance(got, dict) and all(matches(value, got.get(key)) for key, value in wanted.items())
    if isinstance(wanted, str) and wanted.startswith("~"):
        text = got if isinstance(got, str) else json.dumps(got)
        return got is not None and re.search(wanted[1:], text) is not None
    return bool(wanted == got)
