"""URI templates (RFC 6570), all four levels.

Owns: the names of a template's variables and its expansion (RES-11).
Never: reads what it expanded; the URI is for its server to judge.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote

from interlock.vocabulary.errors import InvalidRequest

Scalar: TypeAlias = str | int | float | bool
Variable: TypeAlias = Scalar | Sequence[Scalar] | Mapping[str, Scalar] | None
"""None, an empty sequence and an empty mapping are undefined: they expand to nothing."""

_RESERVED = ":/?#[]@!$&'()*+,;="
_ESCAPE = re.compile(r"(%[0-9A-Fa-f]{2})")
_BRACES = re.compile(r"\{([^{}]*)\}")
# Servers in the wild put hyphens into names, which the RFC does not allow; they cannot be misread.
_NAME = r"(?:[A-Za-z0-9_.-]|%[0-9A-Fa-f]{2})+"
_VARIABLE = re.compile(rf"({_NAME})(?::([1-9][0-9]{{0,3}})|(\*))?")


@dataclass(frozen=True, slots=True)
class _Operator:
    """One row of the table in RFC 6570, appendix A."""

    first: str = ""
    separator: str = ","
    named: bool = False
    if_empty: str = ""
    reserved: bool = False


_OPERATORS = {
    "": _Operator(),
    "+": _Operator(reserved=True),
    "#": _Operator(first="#", reserved=True),
    ".": _Operator(first=".", separator="."),
    "/": _Operator(first="/", separator="/"),
    ";": _Operator(first=";", separator=";", named=True),
    "?": _Operator(first="?", separator="&", named=True, if_empty="="),
    "&": _Operator(first="&", separator="&", named=True, if_empty="="),
}


@dataclass(frozen=True, slots=True)
class _Variable:
    name: str
    prefix: int | None
    explode: bool


@dataclass(frozen=True, slots=True)
class _Expression:
    operator: _Operator
    variables: tuple[_Variable, ...]


def variable_names(template: str) -> tuple[str, ...]:
    """The variables of `template` in order, each once.

    Raises:
        InvalidRequest: `template` is not one.
    """
    parts = [part for part in _parsed(template) if isinstance(part, _Expression)]
    return tuple(dict.fromkeys(variable.name for part in parts for variable in part.variables))


def expand(template: str, variables: Mapping[str, Variable]) -> str:
    """`template` with its variables filled in; undefined ones expand to nothing.

    Raises:
        InvalidRequest: `template` is not one, has no variable of a name given, or has a prefix
            where a list or mapping was given.
    """
    unknown = sorted(set(variables) - set(variable_names(template)))
    if unknown:
        known = ", ".join(map(repr, variable_names(template))) or "none"
        raise InvalidRequest(f"cannot expand {template!r}: it has no variable {unknown[0]!r}; it has {known}")
    return "".join(
        _quoted(part, reserved=True) if isinstance(part, str) else _expanded(part, variables)
        for part in _parsed(template)
    )


def _parsed(template: str) -> Iterator[str | _Expression]:
    """Literals and expressions in turn."""
    for index, piece in enumerate(_BRACES.split(template)):
        if index % 2:
            yield _expression(piece, template)
        elif "{" in piece or "}" in piece:
            raise _malformed(template, "a brace has no partner")
        else:
            yield piece


def _expression(text: str, template: str) -> _Expression:
    symbol = text[:1] if text[:1] in _OPERATORS else ""
    found = [_VARIABLE.fullmatch(each) for each in text[len(symbol) :].split(",")]
    variables = tuple(
        _Variable(name=match[1], prefix=int(match[2]) if match[2] else None, explode=match[3] is not None)
        for match in found
        if match is not None
    )
    if len(variables) != len(found):
        raise _malformed(template, f"{{{text}}} is no expression")
    return _Expression(operator=_OPERATORS[symbol], variables=variables)


def _expanded(expression: _Expression, variables: Mapping[str, Variable]) -> str:
    operator = expression.operator
    made = [_value(operator, variable, variables.get(variable.name)) for variable in expression.variables]
    defined = [text for text in made if text is not None]
    return operator.first + operator.separator.join(defined) if defined else ""


def _value(operator: _Operator, variable: _Variable, value: Variable) -> str | None:
    """What one variable expands to; None when it is undefined."""
    if value is None:
        return None
    if isinstance(value, str | int | float):
        text = _text(value)[: variable.prefix]
        return _pair(operator, variable.name, _quoted(text, reserved=operator.reserved))
    if variable.prefix is not None:
        raise InvalidRequest(f"cannot take a prefix of variable {variable.name!r}: it is a list or mapping")
    if not value:
        return None
    return _exploded(operator, variable.name, value) if variable.explode else _flat(operator, variable.name, value)


def _flat(operator: _Operator, name: str, value: Sequence[Scalar] | Mapping[str, Scalar]) -> str:
    members = value if not isinstance(value, Mapping) else [part for item in value.items() for part in item]
    return _pair(operator, name, ",".join(_quoted(_text(member), reserved=operator.reserved) for member in members))


def _exploded(operator: _Operator, name: str, value: Sequence[Scalar] | Mapping[str, Scalar]) -> str:
    def encoded(member: Scalar) -> str:
        return _quoted(_text(member), reserved=operator.reserved)

    if not isinstance(value, Mapping):
        return operator.separator.join(_pair(operator, name, encoded(member)) for member in value)
    if operator.named:
        return operator.separator.join(_pair(operator, encoded(key), encoded(member)) for key, member in value.items())
    return operator.separator.join(f"{encoded(key)}={encoded(member)}" for key, member in value.items())


def _pair(operator: _Operator, name: str, encoded: str) -> str:
    if not operator.named:
        return encoded
    return f"{name}={encoded}" if encoded else name + operator.if_empty


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(text: str, *, reserved: bool) -> str:
    """`text` percent-encoded; with `reserved`, delimiters and escapes that stand there already are kept."""
    if not reserved:
        return quote(text, safe="")
    pieces = _ESCAPE.split(text)
    return "".join(piece if index % 2 else quote(piece, safe=_RESERVED) for index, piece in enumerate(pieces))


def _malformed(template: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"cannot use {template!r} as a URI template: {reason}; see RFC 6570")
