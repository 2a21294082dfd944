"""Marks: a storm is one change, and a server that feeds its own refresh is heard less and less often."""

from interlock.connections.changes import MAXIMUM_MARKS, Changes, Marks
from interlock.connections.notices import Change
from tests.manifest import requirement

TOOLS = Change(server="zoo", kind="tools")


@requirement("CON-14")
def test_a_storm_of_notices_is_one_mark() -> None:
    marks = Marks()
    for _ in range(400):
        marks.mark(TOOLS, 1.0)
    assert marks.due_at(1.0) == 1.0
    assert marks.take(1.0) == Changes(tools=frozenset({"zoo"}))
    assert marks.take(1.0) == Changes()
    assert marks.due_at(1.0) == float("inf")


@requirement("CON-14")
def test_a_refresh_that_feeds_itself_slows_down() -> None:
    marks, now, taken = Marks(), 0.0, []
    while now < 60:
        marks.mark(TOOLS, now)
        now = marks.due_at(now)
        if marks.take(now).tools:
            taken.append(now)
    assert taken == [0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 61.5]


def test_a_server_that_was_quiet_is_heard_at_once_again() -> None:
    marks = Marks()
    for now in (0.0, 0.5, 1.5, 1000.0):
        marks.mark(TOOLS, now)
        assert marks.take(now).tools
    marks.mark(TOOLS, 1000.1)
    assert marks.due_at(1000.1) == 1000.5


def test_a_status_is_never_held_back() -> None:
    marks = Marks()
    for now in (0.0, 0.1):
        marks.mark(Change(server="zoo", kind="status"), now)
        assert marks.take(now).status == {"zoo"}


def test_what_could_not_be_acted_upon_is_due_again() -> None:
    marks = Marks()
    changes = Changes(
        generation=True,
        status=frozenset({"a"}),
        tools=frozenset({"b"}),
        resources=frozenset({"c"}),
        prompts=frozenset({"d"}),
        updated=frozenset({("e", "zoo://e")}),
    )
    marks.put_back(changes, 5.0)
    assert marks.take(5.0) == changes


def test_marks_are_bounded_and_forgotten_with_their_server() -> None:
    marks = Marks()
    for number in range(MAXIMUM_MARKS + 10):
        marks.mark(Change(server="zoo", kind="updated", uri=str(number)), 0.0)
    assert len(marks.take(0.0).updated) == MAXIMUM_MARKS
    marks.mark(TOOLS, 0.0)
    marks.forget(frozenset({"zoo"}))
    assert marks.take(99.0) == Changes()
