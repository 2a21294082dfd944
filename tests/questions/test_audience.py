"""A listener's line: nothing open is lost, nothing settled piles up."""

import pytest

from interlock.questions.audience import STALE, Listener
from interlock.vocabulary.form import Form
from interlock.vocabulary.question import Question
from tests.manifest import requirement

pytestmark = [pytest.mark.anyio, requirement("QST-4")]

MANY = 20 * STALE


def question(number: int) -> Question:
    return Question(id=str(number), server="zoo", message="?", subject=Form())


async def test_what_is_settled_unseen_does_not_pile_up() -> None:
    listener = Listener("thread", lambda question_id: question_id == "0")
    for number in range(MANY):
        listener.put(question(number))
        assert listener.waiting <= STALE
    assert (await anext(listener)).id == "0"


async def test_a_long_line_of_open_questions_costs_no_walk_for_each_new_one() -> None:
    looks = 0

    def is_open(question_id: str) -> bool:
        nonlocal looks
        looks += 1
        return True

    listener = Listener("thread", is_open)
    for number in range(MANY):
        listener.put(question(number))
    assert looks <= 3 * MANY
    listener.end()
    assert [asked.id async for asked in listener] == [str(number) for number in range(MANY)]
