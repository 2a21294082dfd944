"""Frozen dataclasses as JSON objects, member by member.

Owns: how a declared shape is written and read: every member named, absent instead of null where a
field may be absent, a tag where a union has to be told apart.
Never: guesses: a member that is missing, of the wrong type or not declared refuses the whole.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, Protocol, TypeVar

from interlock.vocabulary.json import JsonObject, JsonValue

T = TypeVar("T")


class Shape(Protocol):
    """How one value is written as JSON and read back. `read` raises ValueError in words."""

    def write(self, value: Any) -> JsonValue: ...

    def read(self, json: JsonValue) -> Any: ...


@dataclass(frozen=True, slots=True)
class Plain:
    """A JSON value that stays as it is; `types` are what it may be (None: anything).

    Writing is as strict as reading: what could not be read back would make its Thread unreadable for ever.
    """

    name: str
    types: tuple[type, ...] | None = None

    def write(self, value: Any) -> JsonValue:
        if self.types is not None and type(value) not in self.types and not self._is_like(value):
            raise ValueError(f"{_shown(value)} is not {self.name}")
        return value

    def read(self, json: JsonValue) -> Any:
        if self.types is not None and type(json) not in self.types:
            raise ValueError(f"{_shown(json)} is not {self.name}")
        return json

    def _is_like(self, value: Any) -> bool:
        """Whether JSON makes one of `types` of it: of any mapping an object, of a word of an enumeration a text."""
        types = self.types or ()
        return (dict in types and isinstance(value, Mapping)) or (str in types and isinstance(value, str))


JSON_TYPES = (str, int, float, bool, type(None), dict, list)
TEXT = Plain("a text", (str,))
OPTIONAL_TEXT = Plain("a text or null", (str, type(None)))
INTEGER = Plain("an integer", (int,))
BOOLEAN = Plain("true or false", (bool,))
ANY = Plain("any JSON")
OBJECT = Plain("an object", (dict,))


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    def write(self, value: Any) -> JsonValue:
        return self.read(value)

    def read(self, json: JsonValue) -> Any:
        if json not in self.words:
            raise ValueError(f"{_shown(json)} is none of {', '.join(self.words)}")
        return json


class Many:
    """A tuple of values of one shape, written as an array."""

    __slots__ = ("_as_it_is", "shape")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._as_it_is = _as_it_is(shape)

    def write(self, value: Any) -> JsonValue:
        if set(map(type, value)) <= self._as_it_is:  # the names of ten thousand tools, say
            return list(value)
        return [self.shape.write(item) for item in value]

    def read(self, json: JsonValue) -> Any:
        if not isinstance(json, list):
            raise ValueError(f"{_shown(json)} is not an array")
        return tuple([self.shape.read(item) for item in json])


class Record(Generic[T]):
    """A dataclass as a JSON object. `members` names every field with its shape; a field forgotten is a TypeError.

    A field whose default is None is left out when it is None (LIF-2); all others are always written,
    so that a stored event does not change its meaning when a default does.
    """

    __slots__ = ("_readers", "_type", "write")

    def __init__(self, type_: type[T], members: Mapping[str, Shape]) -> None:
        declared = {field.name: field.default is None for field in fields(type_)}  # type: ignore[arg-type] # T is a dataclass
        if set(declared) != set(members):
            raise TypeError(f"the stored shape of {type_.__name__} must name exactly its fields")
        self._type = type_
        self.write: Callable[[T], dict[str, Any]] = _writer(declared, members)
        self._readers = tuple((name, members[name].read, optional) for name, optional in declared.items())

    def read(self, json: JsonValue) -> T:
        if type(json) is not dict:
            raise ValueError(f"{_shown(json)} is not an object")
        arguments = {}
        for name, read, optional in self._readers:
            if name in json:
                try:
                    arguments[name] = read(json[name])
                except ValueError as error:
                    raise ValueError(f"member '{name}': {error}") from error
            elif not optional:
                raise ValueError(f"member '{name}' is missing")
        if len(arguments) != len(json):
            raise ValueError(f"member '{_undeclared(json, arguments)}' is unknown")
        return self._type(**arguments)


def _writer(declared: Mapping[str, bool], members: Mapping[str, Shape]) -> Callable[[Any], dict[str, Any]]:
    """The function that writes a record with these members; the value tells whether a member may be absent.

    Compiled, as dataclasses compile their `__init__`: storing a call writes some fifty members, and a loop over
    declarations takes three times as long. For `name` (a text) and `error` (optional) it reads:

        def write(value):
            written = {}
            member = value.name
            written["name"] = member if type(member) in as_it_is_name else write_name(member)
            if value.error is not None:
                written["error"] = write_error(value.error)
            return written
    """
    lines = ["def write(value):", "    written = {}"]
    names: dict[str, Any] = {}
    for name, optional in declared.items():
        shape = members[name]
        names[f"write_{name}"], names[f"as_it_is_{name}"] = shape.write, _as_it_is(shape)
        if isinstance(shape, Plain) and not optional:
            lines.append(f"    member = value.{name}")
            lines.append(f"    written[{name!r}] = member if type(member) in as_it_is_{name} else write_{name}(member)")
        else:
            absent = f"if value.{name} is not None: " if optional else ""  # most of those that may be absent are
            lines.append(f"    {absent}written[{name!r}] = write_{name}(value.{name})")
    exec("\n".join([*lines, "    return written"]), names)  # noqa: S102 -- names of our own dataclasses
    written: Callable[[Any], dict[str, Any]] = names["write"]
    return written


def _as_it_is(shape: Shape) -> frozenset[type]:
    """The types of values that `shape` writes as they are."""
    return frozenset(shape.types or JSON_TYPES) if isinstance(shape, Plain) else frozenset()


class Union:
    """One of several records, told apart by a member `type` that holds the record's tag."""

    __slots__ = ("_by_tag", "_tags")

    def __init__(self, records: Mapping[type, tuple[str, Record[Any]]]) -> None:
        self._tags = dict(records)
        self._by_tag = dict(records.values())

    def record(self, type_: type) -> tuple[str, Record[Any]]:
        """The tag and the shape of one of them, for another union."""
        return self._tags[type_]

    def write(self, value: Any) -> JsonValue:
        tag, record = self._tags[type(value)]
        return {"type": tag, **record.write(value)}

    def read(self, json: JsonValue) -> Any:
        if type(json) is not dict:
            raise ValueError(f"{_shown(json)} is not an object")
        tag = json.get("type")
        record = self._by_tag.get(tag) if isinstance(tag, str) else None
        if record is None:
            raise ValueError(f"type {_shown(tag)} is none of {', '.join(self._by_tag)}")
        return record.read({name: member for name, member in json.items() if name != "type"})


def _undeclared(json: JsonObject, known: Mapping[str, Any]) -> str:
    return next(name for name in json if name not in known)


def _shown(json: JsonValue) -> str:
    return repr(json)[:40]
