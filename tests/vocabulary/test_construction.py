"""Values that are made quickly are what they would be otherwise."""

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from interlock.vocabulary.construction import quickly_made


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: int
    y: int = 2
    label: str | None = None


def test_a_value_has_the_fields_it_was_given_and_the_defaults_of_the_others() -> None:
    assert (Point(x=1).x, Point(x=1).y, Point(x=1).label) == (1, 2, None)
    assert repr(Point(x=1, label="a")) == "Point(x=1, y=2, label='a')"
    assert type(Point(x=1)) is Point
    assert "__setattr__" not in Point.__init__.__code__.co_names  # what makes the usual one slow


def test_a_value_is_compared_hashed_copied_and_replaced_like_any_other() -> None:
    point = Point(x=1, label="a")
    assert point == Point(x=1, label="a") != Point(x=2, label="a")
    assert len({point, Point(x=1, label="a"), Point(x=1)}) == 2
    assert copy.copy(point) == copy.deepcopy(point) == point
    assert pickle.loads(pickle.dumps(point)) == point  # noqa: S301 -- our own bytes
    assert replace(point, y=5) == Point(x=1, y=5, label="a")


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    things: list[int] = field(default_factory=list)


def test_a_default_that_is_made_is_made_anew_for_every_value() -> None:
    one, other = Shelf(), Shelf()
    one.things.append(1)
    assert (one.things, other.things, Shelf(things=[2]).things) == ([1], [], [2])


def test_a_value_stays_frozen() -> None:
    point = Point(x=1)
    with pytest.raises(FrozenInstanceError):
        point.x = 3  # type: ignore[misc] # the point of it
    with pytest.raises(FrozenInstanceError):
        del point.x
    assert not hasattr(point, "__dict__")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [({}, "missing 1 required keyword-only argument: 'x'"), ({"x": 1, "z": 2}, "unexpected keyword argument 'z'")],
)
def test_wrong_arguments_are_refused_in_the_usual_words(arguments: dict[str, int], problem: str) -> None:
    with pytest.raises(TypeError, match=rf"Point.__init__\(\) (got an )?{problem}"):
        Point(**arguments)  # type: ignore[arg-type] # the point of it


def test_a_class_that_cannot_be_made_quickly_is_refused_when_it_is_declared() -> None:
    @dataclass(frozen=True, slots=True)
    class Positional:
        one: int

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Derived(Point):
        z: int = 0

    for unfit in (Positional, Derived):
        with pytest.raises(TypeError, match="cannot be made quickly"):
            quickly_made(unfit)
