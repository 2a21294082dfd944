"""Calls that wait for people longer than their host may live (QST-9).

Owns: which calls of a running host do so, and which of a round's answers are known when the next host takes it up.
Never: asks, stores, or believes that an answer reached a server because people gave it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from interlock.vocabulary.event import QuestionAnswered, QuestionDeclined, QuestionWithdrawn
from interlock.vocabulary.form import Form
from interlock.vocabulary.question import Accept, Answer, Cancel, Decline, Question
from interlock.vocabulary.thread import HeldCall


class Rounds:
    """The rounds of one Thread that are open now. `keeps` tells whether a turn is gone on with by the next host when
    its calls are cancelled; a turn that was interrupted is not."""

    def __init__(self, keeps: Callable[[str], bool]) -> None:
        self._keeps = keeps
        self._open: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<Rounds {sorted(self._open)}>"

    @contextmanager
    def waiting(self, call_id: str, turn_id: str) -> Iterator[None]:
        """The call waits for people while the block runs."""
        self._open[call_id] = turn_id
        try:
            yield
        finally:
            self.give_up(call_id)

    def give_up(self, call_id: str) -> None:
        """The round has failed: no host can go on with it, so that all its questions end."""
        self._open.pop(call_id, None)

    def keep(self, question: Question) -> bool:
        """Whether a question that nobody waits for any more stays open for the next host."""
        turn_id = None if question.call_id is None else self._open.get(question.call_id)
        return turn_id is not None and self._keeps(turn_id)


def unknown_questions(held: HeldCall) -> tuple[Question, ...]:
    """Those that have to be answered, perhaps again, before the call can go on."""
    return tuple(question for question in held.requested.questions if known_answer(question, held) is None)


def known_answer(question: Question, held: HeldCall) -> Answer | None:
    """What is known of the answer; None: it was not given, or its content was not stored (BEHAVIOUR section 10)."""
    end = next((end for end in held.settled if end.question_id == question.id), None)
    match end:
        case QuestionAnswered(action="accept", content=content):
            fillable = isinstance(question.subject, Form) and not question.subject.empty
            return None if content is None and fillable else Accept(content)
        case QuestionAnswered(action="decline") | QuestionDeclined():
            return Decline()
        case QuestionAnswered() | QuestionWithdrawn():
            return Cancel()
        case None:
            return None


def held_questions(calls: Sequence[HeldCall]) -> frozenset[str]:
    """The ids of all questions of these calls."""
    return frozenset(question.id for held in calls for question in held.requested.questions)
