"""The restricted schemas of `elicitation/create`, read into our own types and written back.

Owns: which schemas a form may be made of (specification 2025-11-25 and 2026-07-28: client/elicitation).
Never: shows anything, checks an answer (`checks` does), or guesses what a schema outside the specification means.

Members that the specification does not name are ignored, as its own types do; a member that it names
and that has another shape refuses the whole form, and so does a field that no answer could satisfy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar, assert_never

from interlock.questions.checks import is_number, value_problem
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.form import (
    BooleanField,
    Choice,
    Field,
    Form,
    MultiSelectField,
    NumberField,
    SelectField,
    TextField,
    TextFormat,
)
from interlock.vocabulary.json import JsonObject, JsonValue, excerpt

MAXIMUM_FIELDS: Final = 200
MAXIMUM_CHOICES: Final = 2000
"""Nobody fills in more; a server that asks for more is refused instead of shown (everything is bounded)."""

FORMATS: Final[tuple[TextFormat, ...]] = ("email", "uri", "date", "date-time")

AField = TypeVar("AField", TextField, NumberField, BooleanField, SelectField, MultiSelectField)


def read_form(schema: JsonValue) -> Form:
    """The form of a `requestedSchema`.

    Raises:
        InvalidRequest: it is outside the specification; the sentence names the field (QST-6).
    """
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise InvalidRequest("requestedSchema must be a schema of type 'object'")
    properties, required = schema.get("properties"), _names(schema.get("required"))
    if not isinstance(properties, Mapping):
        raise InvalidRequest("requestedSchema must have 'properties', an object")
    if len(properties) + len(required) > MAXIMUM_FIELDS:
        raise InvalidRequest(f"requestedSchema has more than {MAXIMUM_FIELDS} fields")
    return Form(
        fields=tuple(_field(_Members(name, entry, name in required)) for name, entry in properties.items()),
        undeclared=tuple(name for name in required if name not in properties),
    )


def schema_of(form: Form) -> JsonObject:
    """A `requestedSchema` that says what `form` says, for those who speak the protocol with us."""
    required = [field.name for field in form.fields if field.required] + list(form.undeclared)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {field.name: _schema_of_field(field) for field in form.fields},
    }
    return schema | ({"required": required} if required else {})


# ---- reading


@dataclass(frozen=True, slots=True)
class _Members:
    """One property of the schema. A null member counts as absent, as it does for the specification's own types."""

    name: str
    schema: JsonValue
    required: bool

    def get(self, key: str) -> JsonValue:
        return self.schema.get(key)

    def has(self, key: str) -> bool:
        return self.get(key) is not None

    def text(self, key: str) -> str | None:
        value = self.get(key)
        if value is not None and not isinstance(value, str):
            raise self.refusal(f"its '{key}' must be a text")
        return value

    def flag(self, key: str) -> bool | None:
        value = self.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.refusal(f"its '{key}' must be true or false")
        return value

    def count(self, key: str) -> int | None:
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.refusal(f"its '{key}' must be a whole number from 0 up")
        return value

    def number(self, key: str) -> float | None:
        value = self.get(key)
        if value is None:
            return None
        if not is_number(value):
            raise self.refusal(f"its '{key}' must be a number")
        number: float = value
        return number

    def labels(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.text("title"),
            "description": self.text("description"),
            "required": self.required,
        }

    def refusal(self, why: str) -> InvalidRequest:
        return InvalidRequest(f"field {self.name[:100]!r} of requestedSchema cannot be shown: {why}", field=self.name)


def _field(members: _Members) -> Field:
    if not isinstance(members.schema, Mapping):
        raise members.refusal("it must be an object")
    match members.get("type"):
        case "string" if members.has("oneOf") or members.has("enum"):
            return _select(members)
        case "string":
            return _text(members)
        case "number" | "integer":
            return _number(members)
        case "boolean":
            return BooleanField(**members.labels(), default=members.flag("default"))
        case "array":
            return _multi_select(members)
        case other:
            raise members.refusal(
                f"its type is {excerpt(other, 50)}, and a form has texts, numbers, booleans and lists"
            )


def _text(members: _Members) -> TextField:
    wanted = members.text("format")
    form = next((known for known in FORMATS if known == wanted), None)
    if wanted is not None and form is None:
        raise members.refusal(f"its format must be one of {', '.join(FORMATS)}")
    field = TextField(
        **members.labels(),
        min_length=members.count("minLength"),
        max_length=members.count("maxLength"),
        format=form,
        default=members.text("default"),
    )
    _refuse_if_contradictory(members, field.min_length, field.max_length, "lengths")
    return _with_fitting_default(field)


def _number(members: _Members) -> NumberField:
    field = NumberField(
        **members.labels(),
        integer=members.get("type") == "integer",
        minimum=members.number("minimum"),
        maximum=members.number("maximum"),
        default=members.number("default"),
    )
    _refuse_if_contradictory(members, field.minimum, field.maximum, "bounds")
    return _with_fitting_default(field)


def _select(members: _Members) -> SelectField:
    legacy = not members.has("oneOf") and members.has("enumNames")
    choices = (
        _titled(members, members.get("oneOf")) if members.has("oneOf") else _untitled(members, members.get("enum"))
    )
    if legacy:
        choices = _with_names(members, choices)
    return _with_fitting_default(
        SelectField(**members.labels(), choices=choices, legacy_titles=legacy, default=members.text("default"))
    )


def _multi_select(members: _Members) -> MultiSelectField:
    items, default = members.get("items"), members.get("default")
    if not isinstance(items, Mapping):
        raise members.refusal("its 'items' must say what can be chosen")
    if "anyOf" in items:
        choices = _titled(members, items["anyOf"])
    elif items.get("type") == "string" and "enum" in items:
        choices = _untitled(members, items["enum"])
    else:
        raise members.refusal("a list must offer texts to choose from, in 'enum' or 'anyOf'")
    field = MultiSelectField(
        **members.labels(),
        choices=choices,
        min_items=members.count("minItems"),
        max_items=members.count("maxItems"),
        default=None if default is None else _texts(members, default, "default"),
    )
    most = len(choices) if field.max_items is None else min(field.max_items, len(choices))
    _refuse_if_contradictory(members, field.min_items, most, "numbers of items")
    return _with_fitting_default(field)


def _titled(members: _Members, options: JsonValue) -> tuple[Choice, ...]:
    if not isinstance(options, list) or not all(_is_option(option) for option in options):
        raise members.refusal("each option must have a 'const' and a 'title', both texts")
    return _bounded(members, tuple(Choice(value=option["const"], title=option["title"]) for option in options))


def _is_option(option: JsonValue) -> bool:
    return isinstance(option, Mapping) and all(isinstance(option.get(key), str) for key in ("const", "title"))


def _untitled(members: _Members, values: JsonValue) -> tuple[Choice, ...]:
    return _bounded(members, tuple(Choice(value=value) for value in _texts(members, values, "enum")))


def _with_names(members: _Members, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
    names = _texts(members, members.get("enumNames"), "enumNames")
    if len(names) != len(choices):  # a title beside the wrong value would make people agree to something else
        raise members.refusal(f"it has {len(names)} names for {len(choices)} values")
    return tuple(replace(choice, title=name) for choice, name in zip(choices, names, strict=True))


def _bounded(members: _Members, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
    if not 0 < len(choices) <= MAXIMUM_CHOICES:
        raise members.refusal(f"it must offer between 1 and {MAXIMUM_CHOICES} choices")
    return choices


def _texts(members: _Members, values: JsonValue, key: str) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise members.refusal(f"its '{key}' must be a list of texts")
    return tuple(values)


def _names(required: JsonValue) -> tuple[str, ...]:
    if required is None:
        return ()
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise InvalidRequest("the 'required' of requestedSchema must be a list of names")
    return tuple(dict.fromkeys(required))


def _refuse_if_contradictory(members: _Members, least: float | None, most: float | None, what: str) -> None:
    if least is not None and most is not None and least > most:
        raise members.refusal(f"its {what} contradict each other, so no answer can be right")


def _with_fitting_default(field: AField) -> AField:
    """A default that the field itself would refuse is no help to anybody, and no reason not to ask."""
    default = list(field.default) if isinstance(field.default, tuple) else field.default
    if default is None or value_problem(field, default) is None:
        return field
    return replace(field, default=None)


# ---- writing


def _schema_of_field(field: Field) -> JsonObject:
    facts = {"title": field.title, "description": field.description, **_facts_of(field)}
    return {name: value for name, value in facts.items() if value is not None}


def _facts_of(field: Field) -> dict[str, Any]:
    match field:
        case TextField():
            return {
                "type": "string",
                "minLength": field.min_length,
                "maxLength": field.max_length,
                "format": field.format,
                "default": field.default,
            }
        case NumberField():
            kind = "integer" if field.integer else "number"
            return {"type": kind, "minimum": field.minimum, "maximum": field.maximum, "default": field.default}
        case BooleanField():
            return {"type": "boolean", "default": field.default}
        case SelectField():
            return {"type": "string", **_options(field.choices, "oneOf", field.legacy_titles), "default": field.default}
        case MultiSelectField():
            options = _options(field.choices, "anyOf", legacy_titles=False)
            return {
                "type": "array",
                "items": options if "anyOf" in options else {"type": "string", **options},
                "minItems": field.min_items,
                "maxItems": field.max_items,
                "default": None if field.default is None else list(field.default),
            }
        case _:
            assert_never(field)


def _options(choices: tuple[Choice, ...], titled: str, legacy_titles: bool) -> dict[str, Any]:
    if legacy_titles:
        return {"enum": [choice.value for choice in choices], "enumNames": [choice.label for choice in choices]}
    if all(choice.title is None for choice in choices):
        return {"enum": [choice.value for choice in choices]}
    return {titled: [{"const": choice.value, "title": choice.label} for choice in choices]}
