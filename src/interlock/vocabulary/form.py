"""The forms that servers may ask a person to fill in.

Owns: one type for each kind of field of the specification's restricted schemas (2025-11-25 and 2026-07-28).
Never: reads a schema or checks an answer; `questions.forms` does.

Every field has a `name` (the member of the answer), and a `title` and `description` for people; None
where the server gave none. A `default` is what a surface may fill in beforehand: it is never sent by itself.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

TextFormat = Literal["email", "uri", "date", "date-time"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextField:
    """A text. Lengths count Unicode characters, bounds included."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool = False
    min_length: int | None = None
    max_length: int | None = None
    format: TextFormat | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberField:
    """A number, or an integer; bounds included."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool = False
    integer: bool = False
    minimum: float | None = None
    maximum: float | None = None
    default: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BooleanField:
    """Yes or no."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool = False
    default: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One thing that can be chosen: `value` is sent, `title` is for people (None: the value is)."""

    value: str
    title: str | None = None

    @property
    def label(self) -> str:
        return self.value if self.title is None else self.title


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectField:
    """One of several texts. `legacy_titles`: the titles came as `enumNames`."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool = False
    choices: tuple[Choice, ...]
    legacy_titles: bool = False
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiSelectField:
    """Any number of several texts, between `min_items` and `max_items`."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool = False
    choices: tuple[Choice, ...]
    min_items: int | None = None
    max_items: int | None = None
    default: tuple[str, ...] | None = None


Field: TypeAlias = TextField | NumberField | BooleanField | SelectField | MultiSelectField


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Fields in the server's order. `undeclared`: members that are required, but of which no field tells."""

    fields: tuple[Field, ...] = ()
    undeclared: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether saying yes is all that it asks for (QST-3)."""
        return not self.fields and not self.undeclared
