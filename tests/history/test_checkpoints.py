"""A fold that begins with a checkpoint is the fold that saw everything."""

from dataclasses import fields, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.history.fold import Fold, fold
from interlock.stores import checkpoint as layout
from interlock.stores import codec
from interlock.vocabulary.conversation import Entry, TextPart, UserEntry
from interlock.vocabulary.event import Event, StoredEvent, ThreadCompacted, ThreadRolledBack
from interlock.vocabulary.thread import ThreadCheckpoint
from tests.history.thread_events import model_said, one_call, stored, user_said, whole_thread
from tests.manifest import requirement
from tests.stores.events import events

SUMMARY: tuple[Entry, ...] = (UserEntry(content=(TextPart(text="what was"),)),)


def of_turn(event: Event, turn_id: str) -> Event:
    """The event as one of that turn: few turns, so that random events meet."""
    named = any(field.name == "turn_id" for field in fields(event))
    return replace(event, turn_id=turn_id) if named else event  # type: ignore[arg-type] # it has that field


meeting_events = st.builds(of_turn, events, st.sampled_from(["u1", "u2", "u3"]))


def kept(folding: Fold, last: StoredEvent) -> ThreadCheckpoint:
    """The checkpoint, written into a row and read out of it."""
    ended = (last.at, codec.encode(last.event))
    row = layout.encode(folding.checkpoint({"origins": {"turns": ["u1"]}}), ended)
    read = layout.decode(last.thread_id, row, ended)
    assert read is not None
    return read


@requirement("HIS-1")
@settings(deadline=None, max_examples=150)
@given(batch=st.lists(meeting_events, min_size=1, max_size=25), data=st.data())
def test_a_checkpoint_and_the_rest_make_what_all_events_make(batch: list[Event], data: st.DataObject) -> None:
    history = stored(batch)
    cuts = sorted(data.draw(st.lists(st.integers(1, len(history)), max_size=3), label="cuts"))
    folding, done = Fold("a"), 0
    for cut in cuts:
        for event in history[done:cut]:
            folding.apply(event)
        done = cut
        folding = Fold("a", kept(folding, history[cut - 1]))
    for event in history[done:]:
        folding.apply(event)
    assert folding.state == fold("a", history)
    assert folding.facts == replace(fold("a", history), turns=(), entries=())


@requirement("HIS-3")
@given(count=st.integers(1, 2), compacted=st.booleans())
def test_a_rollback_leaves_turns_and_history_as_they_were_before(count: int, compacted: bool) -> None:
    first = [*whole_thread()[:1], *user_said("one", "u1"), *one_call("c1", "u1"), *model_said("a", "u1")]
    later = [*user_said("two", "u2"), *model_said("b", "u2")]
    compaction = [ThreadCompacted(summary="s", entries=SUMMARY)] if compacted else []
    last = [*user_said("three", "u3"), *one_call("c3", "u3"), *model_said("c", "u3")]
    before = fold("a", stored([*first, *(later if count == 1 else [])]))
    after = fold("a", stored([*first, *later, *compaction, *last, ThreadRolledBack(turns=count)]))

    assert (after.turns, after.name) == (before.turns, before.name)
    assert after.entries == (SUMMARY if compacted and count == 1 else before.entries)
    assert {"c1", "c3"} <= after.used_call_ids


@requirement("HIS-4")
def test_a_compaction_replaces_the_history_of_the_model_and_keeps_the_items() -> None:
    before = fold("a", stored([*whole_thread()[:-5]]))
    after = fold("a", stored([*whole_thread()[:-5], ThreadCompacted(summary="s", entries=SUMMARY)]))

    assert after.entries == SUMMARY
    assert after.turns == before.turns
    assert after.context_tokens == 2 < before.context_tokens


def test_a_turn_that_nobody_looks_at_is_not_decoded_nor_encoded_again() -> None:
    history = stored(whole_thread())
    folding = Fold("a")
    for event in history:
        folding.apply(event)
    loaded = kept(folding, history[-1])
    again = Fold("a", loaded).checkpoint()

    assert again.turns == loaded.turns
    assert all(hasattr(turn.state, "text") for turn in again.turns)
