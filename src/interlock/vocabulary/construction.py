"""How values come into being of which every call makes several.

Owns: an `__init__` for frozen dataclasses that takes a third of the time of the usual one.
Never: changes what such a value is: a frozen dataclass with slots, compared, copied and replaced like any other.
"""

from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar

T = TypeVar("T")

_change_class = object.__dict__["__class__"].__set__


def quickly_made(cls: type[T]) -> type[T]:
    """`cls`, a frozen dataclass with slots whose fields are all given by keyword, with an `__init__` of our own.

    The usual one sets every field through `object.__setattr__`, because the class refuses assignments: a call's item
    has sixteen. Ours makes of the new object, as long as nobody else knows it, one of an open class with the same
    slots, assigns the fields, and closes it. With an `id`, an `error` (default None) and a `raw` (made anew) it reads:

        def __init__(self, *, id, error=default_error, raw=unset):
            change_class(self, opened)
            self.id = id
            self.error = error
            self.raw = make_raw() if raw is unset else raw
            self.__class__ = closed

    Raises:
        TypeError: the class has a field that is no plain keyword argument, or is derived from another.
    """
    declared = fields(cls)  # type: ignore[arg-type] # T is a dataclass
    if cls.__bases__ != (object,) or hasattr(cls, "__post_init__") or not all(map(_is_plain, declared)):
        raise TypeError(f"{cls.__name__} cannot be made quickly: it needs plain keyword fields and no base class")
    names: dict[str, Any] = {f"default_{field.name}": field.default for field in declared}
    names |= {f"make_{field.name}": field.default_factory for field in declared}
    names |= {"change_class": _change_class, "closed": cls, "unset": object()}
    names["opened"] = type(cls.__name__, (), {"__slots__": tuple(field.name for field in declared)})
    parameters = ", ".join(_parameter(field) for field in declared)
    assignments = "".join(f"    self.{field.name} = {_argument(field)}\n" for field in declared)
    head = f"def __init__(self, *, {parameters}):\n    change_class(self, opened)\n"
    exec(f"{head}{assignments}    self.__class__ = closed", names)  # noqa: S102 -- names of our own dataclasses
    made = names["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    made.__annotations__ = cls.__init__.__annotations__
    cls.__init__ = made  # type: ignore[method-assign] # the same parameters
    return cls


def _is_plain(field: Field[Any]) -> bool:
    return field.init and field.kw_only is True


def _parameter(field: Field[Any]) -> str:
    if field.default_factory is not MISSING:
        return f"{field.name}=unset"
    return field.name if field.default is MISSING else f"{field.name}=default_{field.name}"


def _argument(field: Field[Any]) -> str:
    if field.default_factory is MISSING:
        return field.name
    return f"make_{field.name}() if {field.name} is unset else {field.name}"
