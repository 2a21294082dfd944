"""Values that are made when somebody asks for them.

Owns: the one wrapper by which a long past costs nothing until it is looked at.
Never: makes a value twice.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """`make` is called at the first `get`, and let go then."""

    __slots__ = ("_make", "_value")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make: Callable[[], T] | None = make
        self._value: T

    @classmethod
    def of(cls, value: T) -> "Lazy[T]":
        """A value that is there already."""
        return Lazy(lambda: value)

    def get(self) -> T:
        if self._make is not None:
            self._value, self._make = self._make(), None
        return self._value
