"""`[[approval_rules]]` becomes the rules of a Policy (APR-4).

Owns: how a rule is written in a file, and what becomes of one that cannot be read.
Never: decides a call (`questions.rules` does).

A rule that allows and cannot be read allows nothing. One that asks or denies keeps what can be read of its server and
tool, and holds for all their calls: a limit that cannot be read counts as its strictest value.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from interlock.configuration.findings import Findings
from interlock.configuration.tables import Table, read_table, unknown_keys
from interlock.vocabulary.policy import ApprovalRule, ArgumentTest, Between, Hint, Like, OneOf, Present, Within

TESTS = ("like", "within", "one_of", "present", "minimum", "maximum")


class RuleTable(Table):
    """One `[[approval_rules]]`. A plain value in `arguments` is a pattern, if it is a text, else must be equal."""

    action: Literal["allow", "ask", "deny"]
    server: str = "*"
    tool: str = "*"
    annotations: dict[Hint, bool] = Field(default_factory=dict)
    arguments: dict[str, Any] = Field(default_factory=dict)
    reason: str = ""


class Unreadable(ValueError):
    """A test of an argument that says nothing; the message says why."""


def read_rules(value: Any, file: Path, findings: Findings) -> tuple[ApprovalRule, ...]:
    """The rules in the order of the file; what is wrong with them goes to `findings`."""
    if not isinstance(value, list):
        findings.warn(None, "must be an array of tables ([[approval_rules]]); it is ignored")
        return ()
    return tuple(_read_all(value, file, findings))


def _read_all(tables: list[Any], file: Path, findings: Findings) -> Iterator[ApprovalRule]:
    for number, table in enumerate(tables, start=1):
        source = f"{file} [[approval_rules]] {number}"
        if not isinstance(table, Mapping):
            findings.warn(str(number), "must be a table; it is ignored")
            continue
        rule = _read(table, source, findings, number)
        if rule is not None:
            yield rule


def _read(table: Mapping[str, Any], source: str, findings: Findings, number: int) -> ApprovalRule | None:
    checked, wrong = read_table(RuleTable, table)
    # A condition with a misspelt name would be a condition less: the rule would hold for more than was meant.
    problems = [*wrong, *unknown_keys(RuleTable, table, frozenset())]
    if checked is not None and not problems:
        try:
            return _rule(checked, source)
        except Unreadable as error:
            problems.append(("arguments", str(error)))
    strict = _strictest(table, source)
    consequence = "it allows nothing" if strict is None else f"it holds without its other conditions ({strict.action})"
    for key, sentence in problems:
        findings.warn(f"{number}.{key}", f"{sentence}; {consequence}")
    return strict


def _rule(table: RuleTable, source: str) -> ApprovalRule:
    return ApprovalRule(
        action=table.action,
        server=table.server,
        tool=table.tool,
        hints=table.annotations,
        arguments={path: _test(path, test) for path, test in table.arguments.items()},
        reason=table.reason,
        source=source,
    )


def _strictest(table: Mapping[str, Any], source: str) -> ApprovalRule | None:
    action = table.get("action")
    if action == "allow":
        return None
    server, tool = table.get("server", "*"), table.get("tool", "*")
    return ApprovalRule(
        action="ask" if action == "ask" else "deny",
        server=server if isinstance(server, str) else "*",
        tool=tool if isinstance(tool, str) else "*",
        reason="the rule cannot be read as it is written",
        source=source,
    )


def _test(path: str, test: Any) -> ArgumentTest:
    if isinstance(test, str):
        return Like(pattern=test)
    if not isinstance(test, Mapping):
        return OneOf(values=(test,))
    match dict(test):
        case {"like": str(pattern), **rest} if not rest:
            return Like(pattern=pattern)
        case {"within": str(folder), **rest} if not rest:
            return _within(path, folder)
        case {"one_of": list(values), **rest} if not rest:
            return OneOf(values=tuple(values))
        case {"present": bool(expected), **rest} if not rest:
            return Present(expected=expected)
        case bounds if bounds and set(bounds) <= {"minimum", "maximum"} and all(map(_is_number, bounds.values())):
            return Between(minimum=bounds.get("minimum"), maximum=bounds.get("maximum"))
        case _:
            raise Unreadable(f"the test of {path!r} must be one of {', '.join(TESTS)} with a fitting value")


def _within(path: str, folder: str) -> Within:
    whole = Path(folder).expanduser()
    if not whole.is_absolute():
        raise Unreadable(f"the folder of {path!r} must be absolute, or begin with ~")
    return Within(folder=str(whole))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
