"""Whether an answer fits its form.

Owns: the rule for every kind of field, with a sentence for whoever answers (QST-6).
Never: changes an answer, fills in a default, or tells a server.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime
from math import isfinite
from typing import Final, assert_never

from interlock.vocabulary.form import BooleanField, Field, Form, MultiSelectField, NumberField, SelectField, TextField
from interlock.vocabulary.json import JsonObject, JsonValue

LONGEST_TEXT: Final = 1024 * 1024
"""Characters of one text of an answer."""

EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\s]+")
DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
DATE_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")
"""RFC 3339, section 5.6: what JSON Schema means by date and date-time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldProblem:
    """What is wrong with one member of an answer; `field` is its name."""

    field: str
    message: str


def answer_problems(form: Form, content: JsonObject) -> tuple[FieldProblem, ...]:
    """Everything that is wrong with `content` as an answer to `form`, in the form's order; empty: it fits."""
    known = {field.name for field in form.fields} | set(form.undeclared)
    problems = [
        FieldProblem(field=field.name, message=message)
        for field in form.fields
        if (message := _member_problem(field, content)) is not None
    ]
    problems += [
        FieldProblem(field=name, message="is required, though the server does not say what it is")
        for name in form.undeclared
        if not _is_primitive(content.get(name))
    ]
    problems += [FieldProblem(field=name, message="is no field of this form") for name in content if name not in known]
    return tuple(problems)


def value_problem(field: Field, value: JsonValue) -> str | None:
    """What is wrong with `value` for `field`, as the end of a sentence that begins with the field; None: it fits."""
    match field:
        case TextField():
            return _text_problem(field, value)
        case NumberField():
            return _number_problem(field, value)
        case BooleanField():
            return None if isinstance(value, bool) else "must be true or false"
        case SelectField():
            chosen = isinstance(value, str) and any(value == choice.value for choice in field.choices)
            return None if chosen else f"must be one of {_listed([choice.value for choice in field.choices])}"
        case MultiSelectField():
            return _selection_problem(field, value)
        case _:
            assert_never(field)


def is_number(value: JsonValue) -> bool:
    """Whether JSON calls it a number; True and infinities are none."""
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _member_problem(field: Field, content: JsonObject) -> str | None:
    if field.name not in content:
        return "is required" if field.required else None
    return value_problem(field, content[field.name])


def _text_problem(field: TextField, value: JsonValue) -> str | None:
    if not isinstance(value, str):
        return "must be a text"
    if field.min_length is not None and len(value) < field.min_length:
        return f"must have at least {_counted(field.min_length, 'character')}"
    longest = LONGEST_TEXT if field.max_length is None else min(field.max_length, LONGEST_TEXT)
    if len(value) > longest:
        return f"must have at most {_counted(longest, 'character')}"
    return _format_problem(field, value)


def _format_problem(field: TextField, value: str) -> str | None:
    match field.format:
        case None:
            return None
        case "email":
            return None if EMAIL.fullmatch(value) else "must be an e-mail address, such as ada@example.com"
        case "uri":
            return None if URI.fullmatch(value) else "must be a URI, such as https://example.com/"
        case "date":
            return None if DATE.fullmatch(value) and _exists(value) else "must be a date, such as 2026-07-28"
        case "date-time":
            right = DATE_TIME.fullmatch(value) and _exists(value)
            return None if right else "must be a date and time, such as 2026-07-28T09:30:00Z"
        case _:
            assert_never(field.format)


def _exists(value: str) -> bool:
    """Whether the calendar has such a day, and the day such a time."""
    try:
        date.fromisoformat(value[:10])
        datetime.fromisoformat(value.upper())
    except ValueError:
        return False
    return True


def _number_problem(field: NumberField, value: JsonValue) -> str | None:
    if not is_number(value):
        return "must be a whole number" if field.integer else "must be a number"
    if field.integer and value != int(value):
        return "must be a whole number"
    if field.minimum is not None and value < field.minimum:
        return f"must be at least {field.minimum}"
    if field.maximum is not None and value > field.maximum:
        return f"must be at most {field.maximum}"
    return None


def _selection_problem(field: MultiSelectField, value: JsonValue) -> str | None:
    values = dict.fromkeys(choice.value for choice in field.choices)  # a set that keeps their order
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one in values for one in value):
        return f"must be a list of {_listed(list(values))}"
    if len(set(value)) != len(value):
        return "must not name anything twice"
    if field.min_items is not None and len(value) < field.min_items:
        return f"must name at least {_counted(field.min_items, 'choice')}"
    if field.max_items is not None and len(value) > field.max_items:
        return f"must name at most {_counted(field.max_items, 'choice')}"
    return None


def _is_primitive(value: JsonValue) -> bool:
    return isinstance(value, str | bool) or is_number(value)


def _listed(values: list[str]) -> str:
    shown = ", ".join(repr(value[:50]) for value in values[:10])
    return shown if len(values) <= 10 else f"{shown} and {len(values) - 10} more"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
