"""Checks: an accepted form fits its schema, and a wrong answer names the field."""

from typing import Any

import pytest

from interlock.questions.checks import LONGEST_TEXT, answer_problems, value_problem
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
from tests.manifest import requirement

AB = (Choice(value="a", title="A"), Choice(value="b"))
TEXT = TextField(name="f", min_length=2, max_length=3)
INTEGER = NumberField(name="f", integer=True, minimum=1, maximum=3)
SELECT = SelectField(name="f", choices=AB)
MULTI = MultiSelectField(name="f", choices=AB, min_items=1, max_items=1)


@requirement("QST-6")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        (TEXT, "ab"),
        (TEXT, "😀漢é"),
        (TextField(name="f", format="email"), "ada@example.com"),
        (TextField(name="f", format="uri"), "https://example.com/a?b#c"),
        (TextField(name="f", format="uri"), "urn:isbn:0"),
        (TextField(name="f", format="date"), "2026-02-28"),
        (TextField(name="f", format="date-time"), "2026-07-28T09:30:00Z"),
        (TextField(name="f", format="date-time"), "2026-07-28t09:30:00.123+02:00"),
        (INTEGER, 1),
        (INTEGER, 3.0),
        (NumberField(name="f"), -0.5),
        (NumberField(name="f"), 10**400),
        (BooleanField(name="f"), False),
        (SELECT, "a"),
        (MULTI, ["b"]),
        (MultiSelectField(name="f", choices=AB), []),
    ],
)
def test_a_value_that_fits_is_taken(field: Field, value: Any) -> None:
    assert value_problem(field, value) is None


@requirement("QST-6")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        (TEXT, "a"),
        (TEXT, "abcd"),
        (TEXT, 7),
        (TEXT, None),
        (TextField(name="f"), "x" * (LONGEST_TEXT + 1)),
        (TextField(name="f", format="email"), "ada"),
        (TextField(name="f", format="email"), "a b@c"),
        (TextField(name="f", format="uri"), "/path"),
        (TextField(name="f", format="uri"), "https://a b"),
        (TextField(name="f", format="date"), "2026-02-30"),
        (TextField(name="f", format="date"), "20260228"),
        (TextField(name="f", format="date-time"), "2026-07-28"),
        (TextField(name="f", format="date-time"), "2026-07-28T25:00:00Z"),
        (INTEGER, 0),
        (INTEGER, 4),
        (INTEGER, 1.5),
        (INTEGER, True),
        (INTEGER, "1"),
        (NumberField(name="f"), float("nan")),
        (NumberField(name="f"), float("inf")),
        (BooleanField(name="f"), 1),
        (BooleanField(name="f"), "true"),
        (SELECT, "A"),
        (SELECT, ["a"]),
        (MULTI, "a"),
        (MULTI, []),
        (MULTI, ["a", "b"]),
        (MULTI, ["c"]),
        (MULTI, [{}]),
        (MultiSelectField(name="f", choices=AB), ["a", "a"]),
    ],
)
def test_a_value_that_does_not_fit_is_refused(field: Field, value: Any) -> None:
    assert value_problem(field, value) is not None


@requirement("QST-6")
def test_every_wrong_member_is_named() -> None:
    form = Form(
        fields=(
            TextField(name="name", required=True),
            NumberField(name="age", integer=True),
            BooleanField(name="sure"),
        ),
        undeclared=("ghost",),
    )

    problems = answer_problems(form, {"age": "old", "sure": True, "extra": 1})

    assert [problem.field for problem in problems] == ["name", "age", "ghost", "extra"]


def test_a_required_member_without_a_field_takes_any_plain_value() -> None:
    form = Form(undeclared=("ghost",))

    assert answer_problems(form, {"ghost": "boo"}) == ()
    assert answer_problems(form, {"ghost": {"nested": True}}) != ()


def test_what_is_not_required_may_be_left_out() -> None:
    assert answer_problems(Form(fields=(TEXT,)), {}) == ()
