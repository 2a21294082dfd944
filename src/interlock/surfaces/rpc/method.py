"""What a method is.

Owns: the row of the method table, the base of parameter models, what a method's function gets.
Never: is a method.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from interlock.surfaces.rpc.client import Client

if TYPE_CHECKING:
    from interlock.surfaces.rpc.application import Application

Count = Annotated[int, Field(ge=0, le=2**32 - 1)]
SortDirection: TypeAlias = Literal["asc", "desc"]


class Params(BaseModel):
    """Parameters of a method. Members that we have no use for are ignored: clients of other versions send them."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="ignore", strict=True, frozen=True, hide_input_in_errors=True
    )


class NoParams(Params):
    """A method without parameters; null and {} are the same."""


@dataclass(frozen=True, slots=True)
class Context:
    """Who asks whom: a method needs nothing else."""

    application: "Application"
    client: Client


@dataclass(frozen=True, slots=True)
class After:
    """A result, and what is done once it is on its way to the client."""

    result: Any
    then: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One row of the table.

    `run` is a small function over the library's public API; a plain function is run at once, a coroutine function
    in a task of its own. `in_thread_order`: requests of one connection about the same thread run one after another, in
    the order in which they came. `answers_first`: what it makes the server tell is told after its answer.
    """

    name: str
    params: type[Params]
    result: Any
    run: Callable[[Context, Any], Any]
    says: str
    in_thread_order: bool = False
    answers_first: bool = False
    waits: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "waits", inspect.iscoroutinefunction(self.run))
