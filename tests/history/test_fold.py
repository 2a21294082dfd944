"""The fold: a Thread is what its events make it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.history.consistency import contradiction
from interlock.history.fold import Fold, ThreadState, TurnState, fold
from interlock.vocabulary.conversation import CallEntry, OutputEntry, TextPart, Usage, UserEntry
from interlock.vocabulary.event import (
    EntriesRecorded,
    Event,
    MessageCompleted,
    ThreadNamed,
    ThreadStarted,
    TurnEnded,
    TurnStarted,
)
from interlock.vocabulary.item import AgentMessageItem, UserMessageItem
from tests.history.thread_events import call_ended, call_started, one_call, stored, user_said, whole_thread
from tests.manifest import requirement
from tests.stores.events import events


def folded(past: list[Event]) -> Fold:
    folding = Fold("a")
    for event in stored(past):
        folding.apply(event)
    return folding


@requirement("HIS-1", "HIS-5")
def test_a_thread_is_made_of_its_events() -> None:
    state = fold("a", stored(whole_thread()))
    hello, output = (TextPart(text="hello"),), (TextPart(text="interrupted"),)
    assert state.turns[0] == TurnState(
        turn_id="u1",
        status="completed",
        input=hello,
        model="m1",
        items=(
            UserMessageItem(id="u1-user", content=hello),
            call_ended("c1").item,
            AgentMessageItem(id="u1-agent", text="done"),
        ),
        usage=Usage(input_tokens=10, output_tokens=1),
        last_message="done",
        started_at=20,
        ended_at=110,
    )
    assert state.entries[:3] == (
        UserEntry(content=hello),
        CallEntry(call_id="c1", name="mcp__git__log", arguments="{}"),
        OutputEntry(call_id="c1", content=output, success=False),
    )
    assert (state.name, state.model, state.created_at, state.updated_at) == ("first", "m1", 10, 190)
    assert (state.open_turn, state.last_sequence, state.exists) == ("u2", 19, True)
    assert state.usage == Usage(input_tokens=20, output_tokens=2)
    assert state.used_call_ids == {"c1", "c2"}


def test_a_thread_without_events_does_not_exist() -> None:
    assert fold("a", []) == ThreadState(thread_id="a")
    assert not fold("a", []).exists


@requirement("LIF-1")
def test_what_a_killed_host_left_open_is_found() -> None:
    state = fold("a", stored([ThreadStarted(), *user_said("hello"), *one_call("c1"), *one_call("c2")[:2]]))
    assert state.open_calls == (call_started("c2"),)
    assert state.unanswered == (CallEntry(call_id="c2", name="mcp__git__log", arguments="{}"),)
    assert state.open_turn == "u1"
    assert state.turns[0].status == "in_progress"
    assert state.turns[0].items[-1] == call_started("c2").item


def test_calls_that_run_at_once_stand_in_the_order_in_which_they_began() -> None:
    past = [*user_said("go")[:1], call_started("c1"), call_started("c2"), call_ended("c2"), call_ended("c1")]
    items = fold("a", stored(past)).turns[0].items
    assert [(item.id, getattr(item, "status", None)) for item in items] == [("c1", "failed"), ("c2", "failed")]


@requirement("HIS-5")
def test_a_view_that_was_handed_out_does_not_change() -> None:
    folding = folded(whole_thread()[:5])
    before = folding.state
    copy = fold("a", stored(whole_thread()[:5]))
    for event in stored(whole_thread())[5:]:
        folding.apply(event)
    assert before == copy
    assert folding.state == fold("a", stored(whole_thread()))


def test_a_finished_turn_is_not_made_again_for_every_view() -> None:
    folding = folded(whole_thread())
    first = folding.state
    folding.apply(stored([*whole_thread(), ThreadNamed(name="x")])[-1])
    assert folding.state is not first
    assert folding.state.turns[0] is first.turns[0]


@requirement("HIS-1")
@given(st.lists(events, max_size=30))
def test_any_history_folds_and_always_to_the_same_state(past: list[Event]) -> None:
    state = fold("a", stored(past))
    assert state == fold("a", stored(past))
    assert state.last_sequence == len(past)


def test_a_long_history_costs_the_same_for_every_event() -> None:
    def seconds(count: int) -> float:
        past = stored([ThreadStarted(), *user_said("go"), *(e for n in range(count // 5) for e in one_call(f"c{n}"))])
        began = time.process_time()
        fold("a", past)
        return time.process_time() - began

    short, long = min(seconds(2_000) for _ in range(3)), seconds(40_000)
    assert long < short * 20 * 5  # quadratic would be 400 times


@requirement("LIF-1", "LIF-8", "TRN-1")
@pytest.mark.parametrize(
    ("coming", "reason"),
    [
        ([ThreadStarted()], "it has started already"),
        ([TurnStarted(turn_id="u3")], "turn 'u2' is still running"),
        ([TurnEnded(turn_id="u1", status="completed")], "turn 'u1' is not running"),
        ([TurnEnded(turn_id="u2", status="failed")] * 2, "turn 'u2' is not running"),
        ([TurnEnded(turn_id="u2", status="failed"), TurnStarted(turn_id="u1")], "turn id 'u1' has been used before"),
        ([call_started("c1")], "call id 'c1' has been used before"),
        ([call_started("c9"), call_started("c9")], "call id 'c9' has been used before"),
        ([call_ended("c1")], "call 'c1' is not running"),
        ([call_ended("c9")], "call 'c9' is not running"),
        ([call_started("c9"), call_ended("c9"), call_ended("c9")], "call 'c9' is not running"),
    ],
)
def test_what_contradicts_the_history_is_known_before_it_is_stored(coming: list[Event], reason: str) -> None:
    assert (contradiction(folded(whole_thread()), coming) or "").startswith(reason)


def test_nothing_comes_before_the_start_of_a_thread() -> None:
    assert contradiction(Fold("a"), [ThreadNamed(name="x")]) == "it has not started; record its start first"
    assert contradiction(Fold("a"), whole_thread()) is None


def test_what_follows_from_the_history_is_let_through() -> None:
    ends: list[Event] = [TurnEnded(turn_id="u2", status="completed"), *user_said("more", "u3"), *one_call("c3", "u3")]
    assert contradiction(folded(whole_thread()), ends) is None


def test_a_late_message_of_an_ended_turn_still_belongs_to_it() -> None:
    late: list[Event] = [
        EntriesRecorded(turn_id="u1", entries=()),
        MessageCompleted(turn_id="u1", item=AgentMessageItem(id="late", text="late")),
    ]
    state = fold("a", stored([*whole_thread(), *late]))
    assert [item.id for item in state.turns[0].items][-1] == "late"
