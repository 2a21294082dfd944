"""What clients hear when notices overtake the events that stand before them."""

import pytest

from interlock.surfaces.rpc.translator import Translator
from interlock.vocabulary.conversation import Usage
from interlock.vocabulary.event import CallEnded, Event, StepCaptured, TurnStarted
from interlock.vocabulary.notice import DeltaNotice, ProgressNotice
from interlock.vocabulary.tool import Progress
from tests.history.thread_events import model_said, one_call, stored, user_said
from tests.manifest import requirement


def captured(step_id: str) -> Event:
    return StepCaptured(turn_id="u1", step_id=step_id, generation=1, revision=1)


PAST: list[Event] = [*user_said("go"), captured("s1"), *one_call("c1"), captured("s2"), *model_said("done")]


@requirement("RPC-1")
@pytest.mark.parametrize("before", range(len(PAST)))
def test_a_message_begins_after_all_that_went_before_it_however_early_its_text_comes(before: int) -> None:
    """A follower of events may lag, as when it still reads what is stored; notices come at once."""
    translator = Translator("a", usage=Usage(), open_turn=None, open_questions=())
    delta = DeltaNotice(turn_id="u1", step_id="s2", item_id="u1-agent", text="do")
    heard: list[tuple[str, str]] = []
    for place, event in enumerate(stored(PAST)):
        news = [*translator.notice(delta, 1)] if place == before else []
        news += translator.event(event)
        heard += [(method, params["item"]["type"]) for method, params in news if "item" in params]
    assert heard == [
        (f"item/{moment}", kind)
        for kind in ("userMessage", "mcpToolCall", "agentMessage")
        for moment in ("started", "completed")
    ]


@requirement("RPC-1", "LIF-6")
@pytest.mark.parametrize("before", range(len(PAST)))
def test_progress_is_told_between_the_start_and_the_end_of_its_call_or_not_at_all(before: int) -> None:
    translator = Translator("a", usage=Usage(), open_turn=None, open_questions=())
    progress = ProgressNotice(turn_id="u1", call_id="c1", progress=Progress(progress=1))
    heard: list[str] = []
    for place, event in enumerate(stored(PAST)):
        news = [*translator.notice(progress, 1)] if place == before else []
        news += translator.event(event)
        heard += [m for m, p in news if p.get("itemId", p.get("item", {}).get("id")) == "c1"]
    ended = next(i for i, event in enumerate(PAST) if isinstance(event, CallEnded))
    begun = next(i for i, event in enumerate(PAST) if isinstance(event, TurnStarted))
    told = ["item/mcpToolCall/progress"] if begun < before <= ended else []
    assert heard == ["item/started", *told, "item/completed"]
