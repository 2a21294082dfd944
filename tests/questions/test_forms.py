"""Forms: what the specification allows is read, the rest is refused before anybody sees it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.questions.forms import MAXIMUM_CHOICES, MAXIMUM_FIELDS, read_form, schema_of
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.form import (
    BooleanField,
    Choice,
    Form,
    MultiSelectField,
    NumberField,
    SelectField,
    TextField,
)
from tests.manifest import requirement


def schema(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties} | ({} if required is None else {"required": required})


FIELDS = [
    ({"type": "string"}, TextField(name="f")),
    (
        {"type": "string", "title": "T", "description": "D", "minLength": 1, "maxLength": 9, "default": "x"},
        TextField(name="f", title="T", description="D", min_length=1, max_length=9, default="x"),
    ),
    *[({"type": "string", "format": name}, TextField(name="f", format=name)) for name in ("email", "uri", "date")],
    ({"type": "string", "format": "date-time"}, TextField(name="f", format="date-time")),
    (
        {"type": "number", "minimum": 0.5, "maximum": 2, "default": 1},
        NumberField(name="f", minimum=0.5, maximum=2, default=1),
    ),
    (
        {"type": "integer", "minimum": 7, "maximum": 7},
        NumberField(name="f", integer=True, minimum=7, maximum=7),
    ),
    ({"type": "string", "minLength": 4, "maxLength": 4}, TextField(name="f", min_length=4, max_length=4)),
    (
        {"type": "integer", "minimum": 0, "maximum": 150},
        NumberField(name="f", integer=True, minimum=0, maximum=150),
    ),
    ({"type": "boolean", "default": False}, BooleanField(name="f", default=False)),
    (
        {"type": "string", "enum": ["a", "b"], "default": "b"},
        SelectField(name="f", choices=(Choice(value="a"), Choice(value="b")), default="b"),
    ),
    (
        {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
        SelectField(name="f", choices=(Choice(value="r", title="Red"), Choice(value="g", title="Green"))),
    ),
    (
        {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
        SelectField(
            name="f",
            choices=(Choice(value="r", title="Red"), Choice(value="g", title="Green")),
            legacy_titles=True,
        ),
    ),
    (
        {
            "type": "array",
            "items": {"type": "string", "enum": ["a", "b", "c"]},
            "minItems": 1,
            "maxItems": 2,
            "default": ["a"],
        },
        MultiSelectField(
            name="f",
            choices=tuple(Choice(value=value) for value in "abc"),
            min_items=1,
            max_items=2,
            default=("a",),
        ),
    ),
    (
        {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
        MultiSelectField(name="f", choices=(Choice(value="a", title="A"),)),
    ),
]


@requirement("QST-6")
@pytest.mark.parametrize(("written", "field"), FIELDS)
def test_every_form_of_a_field_is_read_and_written_back(written: dict[str, Any], field: Any) -> None:
    form = read_form(schema(f=written))

    assert form == Form(fields=(field,))
    assert schema_of(form) == schema(f=written)


def test_fields_keep_their_order_and_know_whether_they_are_required() -> None:
    form = read_form(schema(["b"], z={"type": "boolean"}, a={"type": "string"}, b={"type": "number"}))

    assert [(field.name, field.required) for field in form.fields] == [("z", False), ("a", False), ("b", True)]


@requirement("QST-3")
@pytest.mark.parametrize(
    ("written", "empty"),
    [
        (schema(), True),
        (schema([]), True),
        (schema(["ghost"]), False),
        (schema(a={"type": "string"}), False),
    ],
)
def test_a_form_is_empty_only_without_fields_and_without_anything_required(
    written: dict[str, Any], empty: bool
) -> None:
    assert read_form(written).empty is empty


@requirement("QST-6")
@pytest.mark.parametrize(
    "written",
    [
        None,
        [],
        {"type": "object"},
        {"properties": {}},
        {"type": "string", "properties": {}},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {}, "required": "all"},
        {"type": "object", "properties": {}, "required": [1]},
        schema(f=True),
        schema(f={}),
        schema(f={"type": ["string", "null"]}),
        schema(f={"type": "null"}),
        schema(f={"anyOf": [{"type": "string"}, {"type": "null"}]}),
        schema(f={"type": "object", "properties": {"x": {"type": "string"}}}),
        schema(f={"type": "array"}),
        schema(f={"type": "array", "items": {"type": "string"}}),
        schema(f={"type": "array", "items": {"type": "object"}}),
        schema(f={"type": "array", "items": {"type": "integer", "enum": [1]}}),
        schema(f={"type": "string", "format": "zoo"}),
        schema(f={"type": "string", "format": 7}),
        schema(f={"type": "string", "minLength": -1}),
        schema(f={"type": "string", "minLength": True}),
        schema(f={"type": "string", "maxLength": "9"}),
        schema(f={"type": "string", "title": 7}),
        schema(f={"type": "string", "default": 7}),
        schema(f={"type": "string", "enum": []}),
        schema(f={"type": "string", "enum": [1, 2]}),
        schema(f={"type": "string", "enum": ["a", "b"], "enumNames": ["A"]}),
        schema(f={"type": "string", "oneOf": [{"const": "a"}]}),
        schema(f={"type": "string", "oneOf": ["a"]}),
        schema(f={"type": "number", "minimum": "1"}),
        schema(f={"type": "number", "maximum": float("inf")}),
        schema(f={"type": "boolean", "default": "true"}),
        schema(f={"type": "array", "items": {"type": "string", "enum": ["a"]}, "default": "a"}),
    ],
)
def test_a_schema_outside_the_specification_is_refused(written: Any) -> None:
    with pytest.raises(InvalidRequest):
        read_form(written)


@requirement("QST-6")
@pytest.mark.parametrize(
    "written",
    [
        {"type": "integer", "minimum": 10, "maximum": 1},
        {"type": "string", "minLength": 9, "maxLength": 1},
        {"type": "array", "items": {"type": "string", "enum": ["a"]}, "minItems": 2},
        {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 2, "maxItems": 1},
    ],
)
def test_nobody_is_asked_for_what_no_answer_can_satisfy(written: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="field 'f'") as refused:
        read_form(schema(f=written))

    assert refused.value.facts["field"] == "f"


def test_members_that_the_specification_does_not_name_are_ignored() -> None:
    written = schema(f={"type": "string", "examples": ["a"], "pattern": "^a"}) | {"additionalProperties": False}

    assert read_form({**written, "$defs": {}, "x-foo": 1}) == Form(fields=(TextField(name="f"),))


def test_null_members_count_as_absent() -> None:
    assert read_form(schema(f={"type": "string", "title": None, "format": None, "enum": None})) == Form(
        fields=(TextField(name="f"),)
    )


@pytest.mark.parametrize(
    "written",
    [
        {"type": "integer", "minimum": 1, "default": 0},
        {"type": "integer", "default": 1.5},
        {"type": "string", "enum": ["a"], "default": "b"},
        {"type": "string", "format": "email", "default": "nobody"},
        {"type": "array", "items": {"type": "string", "enum": ["a"]}, "default": ["b"]},
    ],
)
def test_a_default_that_does_not_fit_its_own_field_is_not_offered(written: dict[str, Any]) -> None:
    assert read_form(schema(f=written)).fields[0].default is None


def test_a_form_is_bounded() -> None:
    with pytest.raises(InvalidRequest, match=str(MAXIMUM_FIELDS)):
        read_form(schema(None, **{f"f{number}": {"type": "boolean"} for number in range(MAXIMUM_FIELDS + 1)}))
    with pytest.raises(InvalidRequest, match=str(MAXIMUM_CHOICES)):
        read_form(schema(f={"type": "string", "enum": [str(number) for number in range(MAXIMUM_CHOICES + 1)]}))


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["string", "array", "object", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "required",
                    "enum",
                    "oneOf",
                    "anyOf",
                    "items",
                    "const",
                    "title",
                    "default",
                    "minimum",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(anything)
def test_whatever_a_server_sends_is_read_or_refused_in_words(written: Any) -> None:
    try:
        form = read_form(written)
    except InvalidRequest:
        return
    assert read_form(schema_of(form)) == form
