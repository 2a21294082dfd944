"""What a Step sees, and how that is stored: what did not change is neither made nor stored again."""

from dataclasses import replace

from interlock.history.shown import ShownTools
from interlock.threads.binding import Binder
from interlock.vocabulary.event import StepCaptured
from interlock.vocabulary.snapshot import Binding, Snapshot
from tests.manifest import requirement
from tests.threads.fakes import FakeConnection, config, snapshot, tool


def view(*names: str, revision: int = 1) -> Snapshot:
    made = snapshot((config("a"), FakeConnection("a"), [tool(name) for name in names]))
    return replace(made, catalog=replace(made.catalog, revision=revision))


def bound(binder: Binder, step_id: str, seen: Snapshot) -> tuple[Binding, StepCaptured]:
    binding = binder.bind("t", "u", step_id, seen, ())
    return binding, binder.captured(binding)


def stored(binder: Binder, step_id: str, seen: Snapshot) -> StepCaptured:
    binding, captured = bound(binder, step_id, seen)
    binder.stored(captured, binding)
    return captured


@requirement("CAT-7")
def test_an_unchanged_catalogue_gives_the_same_tools_and_stores_their_names_once() -> None:
    binder, seen = Binder(), view("x", "y")
    first, captured = bound(binder, "s1", seen)
    binder.stored(captured, first)
    second, again = bound(binder, "s2", replace(seen, generation=7))
    assert second.tools is first.tools
    assert (captured.same_tools_as, [name for name in captured.tools if name.startswith("mcp__a")]) == (
        None,
        ["mcp__a__x", "mcp__a__y"],
    )
    assert (again.same_tools_as, again.tools, again.generation) == ("s1", (), 7)


@requirement("CAT-6")
def test_a_change_is_stored_whole_and_a_change_of_anything_but_names_is_not() -> None:
    binder = Binder()
    events = [
        stored(binder, "s1", view("x")),
        stored(binder, "s2", view("x", "y")),
        stored(binder, "s3", view("y", "x", revision=3)),
        stored(binder, "s4", view("x")),
        stored(binder, "s5", Snapshot(generation=9)),
    ]
    assert [event.same_tools_as for event in events] == [None, None, "s2", None, None]
    tools = ShownTools()
    remote = [[name for name in tools.take(event) or () if name.startswith("mcp__a")] for event in events]
    assert remote == [["mcp__a__x"], ["mcp__a__x", "mcp__a__y"], ["mcp__a__x", "mcp__a__y"], ["mcp__a__x"], []]


def test_a_step_refers_only_to_what_is_known_to_be_stored() -> None:
    binder, seen, other = Binder(), view("x"), view("y")
    _, early = bound(binder, "s1", seen)
    assert early.same_tools_as is None
    kept, captured = bound(binder, "s2", seen)
    assert captured.same_tools_as is None  # nobody said that s1 was stored
    binder.stored(captured, kept)
    beside, refers = bound(binder, "s3", seen)  # while it is being stored, another Step is
    stored(binder, "s4", other)
    binder.stored(refers, beside)
    assert [stored(binder, step, other).same_tools_as for step in ("s5", "s6")] == ["s4", "s4"]
    assert stored(binder, "s7", seen).tools == captured.tools


def test_names_that_stand_in_an_event_that_was_not_read_are_not_known() -> None:
    refers = StepCaptured(turn_id="u", step_id="s2", generation=1, revision=1, same_tools_as="s1")
    assert ShownTools().take(refers) is None
