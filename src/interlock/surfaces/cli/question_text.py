"""Questions as lines of text, and typed lines as answers.

Owns: the words around a question, how each kind of field is asked for and typed.
Never: reads a key or decides; what a server wrote is made harmless before it is shown.
"""

import json
from typing import Any, Final, assert_never

from interlock.questions.checks import value_problem
from interlock.surfaces.cli.output import harmless, one_line
from interlock.vocabulary.form import (
    BooleanField,
    Choice,
    Field,
    Form,
    MultiSelectField,
    NumberField,
    SelectField,
    TextField,
)
from interlock.vocabulary.question import Approval, Link, Question

ARGUMENT_LINES: Final = 40
"""Lines of a call's arguments that are shown; the rest is counted."""
MESSAGE_LINES: Final = 40

ABSENT: Final = object()
"""What an optional field is that was left blank."""

YES: Final = frozenset({"y", "yes", "true", "1"})
NO: Final = frozenset({"n", "no", "false", "0"})


def lines_of(question: Question) -> list[str]:
    """Who asks, for which call, and what; a line begins with nothing of the server's own."""
    lines = [_headline(question), *_quoted(question.message, MESSAGE_LINES)]
    match question.subject:
        case Form():
            pass
        case Link():
            lines += _link_lines(question.subject)
        case Approval():
            lines += _approval_lines(question.subject)
        case _:
            assert_never(question.subject)
    return lines


def _headline(question: Question) -> str:
    if isinstance(question.subject, Approval):
        return f"A call of server {one_line(question.server)!r} needs your approval."
    match question.certainty:
        case "known":
            about = f"for call {question.call_id}"
        case "only_call":
            about = f"probably for call {question.call_id}, the only one running there"
        case "unknown":
            about = "it does not say for which call"
        case _:
            assert_never(question.certainty)
    return f"Server {one_line(question.server)} asks you ({one_line(about)}):"


def _link_lines(link: Link) -> list[str]:
    warnings = [f"  careful: {one_line(warning)}" for warning in link.warnings]
    return [
        f"  It wants you to open an address of {one_line(link.host)}:",
        f"  {one_line(link.url)}",
        *warnings,
        "  Interlock does not open it; do that yourself, in your browser, if you agree.",
    ]


def _approval_lines(approval: Approval) -> list[str]:
    arguments = json.dumps(dict(approval.arguments), indent=2, ensure_ascii=False).splitlines()
    lines = [f"  tool       {one_line(approval.tool)}" + (f" ({one_line(approval.title)})" if approval.title else "")]
    if approval.connector_name:
        lines.append(f"  connector  {one_line(approval.connector_name)}")
    lines.append(f"  asked for  {one_line(approval.reason)}")
    lines.append("  arguments")
    lines += [f"    {one_line_kept(line)}" for line in arguments[:ARGUMENT_LINES]]
    if len(arguments) > ARGUMENT_LINES:
        lines.append(f"    … {len(arguments) - ARGUMENT_LINES} more lines")
    return lines


def _quoted(text: str, limit: int) -> list[str]:
    lines = harmless(text).splitlines() or [""]
    shown = [f"  | {line}" for line in lines[:limit]]
    return shown if len(lines) <= limit else [*shown, f"  | … {len(lines) - limit} more lines"]


def one_line_kept(text: str) -> str:
    """Harmless, with its indentation."""
    return harmless(text).replace("\n", " ")


# ---- fields


def field_lines(field: Field) -> list[str]:
    """What stands above the line in which the field is typed."""
    words = one_line(field.title or field.name) + (" (required)" if field.required else "")
    lines = [words]
    if field.description:
        lines.append(f"  {one_line(field.description)}")
    lines += [f"  {number}. {one_line(choice.label)}" for number, choice in enumerate(_choices(field), start=1)]
    return [*lines, f"  {hint(field)}"]


def hint(field: Field) -> str:
    """How to type it."""
    blank = "" if field.required else "; blank leaves it out"
    match field:
        case TextField():
            form = f"a text ({field.format})" if field.format else "a text"
        case NumberField():
            form = "a whole number" if field.integer else "a number"
        case BooleanField():
            form = "yes or no"
        case SelectField():
            form = "one number or name from the list"
        case MultiSelectField():
            form = "numbers or names from the list, with commas between"
        case _:
            assert_never(field)
    return form + blank


def default_text(field: Field) -> str:
    """What the line holds before anything is typed."""
    return "" if field.default is None else typed(field.default)


def read_value(field: Field, text: str) -> Any:
    """The value that was typed, or ABSENT.

    Raises:
        ValueError: it does not fit; the message says what would, beginning with "must" or "is".
    """
    blank = not text if isinstance(field, TextField) else not text.strip()
    if blank and not field.required:
        return ABSENT
    value = _read(field, text)
    nothing = blank and not isinstance(field, MultiSelectField)  # of several, none can be a choice
    problem = "is required" if nothing else value_problem(field, value)
    if problem is not None:
        raise ValueError(problem)
    return value


def _read(field: Field, text: str) -> Any:
    match field:
        case TextField():
            return text
        case NumberField():
            return _number(text, integer=field.integer)
        case BooleanField():
            word = text.strip().lower()
            return True if word in YES else False if word in NO else text
        case SelectField():
            return _chosen(field.choices, text)
        case MultiSelectField():
            return [_chosen(field.choices, part) for part in text.split(",") if part.strip()]
        case _:
            assert_never(field)


def _number(text: str, *, integer: bool) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return text if integer else float(text)
    except ValueError:
        return text


def _chosen(choices: tuple[Choice, ...], text: str) -> str:
    """A value or a title as it is written wins over a number of the list."""
    word = text.strip()
    for choice in choices:
        if word in (choice.value, choice.title):
            return choice.value
    if word.isdecimal() and 0 < int(word) <= len(choices):
        return choices[int(word) - 1].value
    return word


def _choices(field: Field) -> tuple[Choice, ...]:
    return field.choices if isinstance(field, SelectField | MultiSelectField) else ()


def typed(value: Any) -> str:
    """A value as it would be typed."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list | tuple) else str(value)


def words_of(field: Field) -> tuple[str, ...]:
    """What completes a typed line."""
    if isinstance(field, BooleanField):
        return ("yes", "no")
    return tuple(choice.value for choice in _choices(field))
