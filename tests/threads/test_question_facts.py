"""Questions as stored facts: which are open, and what becomes of them when a killed host's Thread is resumed."""

from pathlib import Path

import pytest

from interlock.history.fold import fold
from interlock.history.journal import Journal
from interlock.stores import open_store
from interlock.threads.recovery import close_what_was_left_open
from interlock.vocabulary.event import (
    Event,
    QuestionAnswered,
    QuestionAsked,
    QuestionDeclined,
    QuestionWithdrawn,
    StoredEvent,
    ThreadStarted,
)
from interlock.vocabulary.form import Form, NumberField
from interlock.vocabulary.question import Question
from tests.manifest import requirement
from tests.threads.fakes import Ticks

pytestmark = pytest.mark.anyio


def question(number: int) -> Question:
    form = Form(fields=(NumberField(name="n", minimum=0.5),))
    return Question(id=f"q{number}", server="e", message="?", subject=form, meta={"m": number})


def stored(*events: Event) -> list[StoredEvent]:
    return [
        StoredEvent(thread_id="a", sequence=number, at=number, event=event)
        for number, event in enumerate((ThreadStarted(), *events), start=1)
    ]


@requirement("QST-9")
@pytest.mark.parametrize(
    "end",
    [
        QuestionAnswered(question_id="q1", server="e", action="accept", by="user"),
        QuestionWithdrawn(question_id="q1", server="e", reason="over"),
        QuestionDeclined(question_id="q1", server="e", by="nobody", reason="gone"),
    ],
)
def test_a_question_is_open_from_its_asking_to_its_one_end(end: Event) -> None:
    asked = (QuestionAsked(question=question(1)), QuestionAsked(question=question(2)))

    assert fold("a", stored(*asked)).open_questions == (question(1), question(2))
    assert fold("a", stored(*asked, end)).open_questions == (question(2),)


def test_what_was_settled_without_asking_anybody_was_never_open() -> None:
    settled = QuestionDeclined(question_id="q1", server="e", by="policy", reason="never", question=question(1))

    assert fold("a", stored(settled)).open_questions == ()


@requirement("QST-5", "QST-9")
async def test_questions_that_a_killed_host_held_are_withdrawn_once(tmp_path: Path) -> None:
    async with open_store(tmp_path / "events.db") as store:
        async with Journal.open(store, "thread", Ticks()) as journal:
            await journal.record_all((ThreadStarted(), QuestionAsked(question=question(1))))  # then it was killed
        for _ in range(2):
            async with Journal.open(store, "thread", Ticks()) as journal:
                await close_what_was_left_open(journal, output_limit=100)
                assert journal.state.open_questions == ()
        withdrawn = [event.event async for event in store.read("thread") if isinstance(event.event, QuestionWithdrawn)]

    assert withdrawn == [QuestionWithdrawn(question_id="q1", server="e", reason="the host ended")]
