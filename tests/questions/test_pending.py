"""Pending: an answer reaches the question it was given for, once, or nobody."""

from contextlib import ExitStack

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from interlock.questions.pending import Pending
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.form import Form
from interlock.vocabulary.question import Question
from tests.manifest import requirement


def question(server: str, number: int) -> Question:
    return Question(id=f"q{number}", server=server, message="?", subject=Form())


@requirement("QST-1")
def test_an_answer_for_one_server_never_reaches_another() -> None:
    pending: Pending[str] = Pending()
    with pending.holding(question("github", 1), "waiter"):
        with pytest.raises(InvalidRequest):
            pending.claim("slack", "q1")
        assert pending.claim("github", "q1") == "waiter"


@requirement("QST-1")
def test_a_question_can_be_claimed_once() -> None:
    pending: Pending[str] = Pending()
    with pending.holding(question("github", 1), "waiter"):
        pending.claim("github", "q1")
        with pytest.raises(InvalidRequest, match="not open"):
            pending.claim("github", "q1")


@requirement("QST-5")
def test_a_withdrawn_question_takes_no_other_along() -> None:
    pending: Pending[str] = Pending()
    with pending.holding(question("github", 1), "stays"):
        with pytest.raises(RuntimeError), pending.holding(question("github", 2), "goes"):
            raise RuntimeError("cancelled")
        assert pending.questions == (question("github", 1),)
        assert pending.claim("github", "q1") == "stays"


def test_an_id_that_is_open_is_not_given_again() -> None:
    pending: Pending[str] = Pending()
    with pending.holding(question("github", 1), "first"):
        with pytest.raises(ValueError, match="open already"), pending.holding(question("slack", 1), "second"):
            pass
        assert pending.claim("github", "q1") == "first"


class PendingMatchesADict(RuleBasedStateMachine):
    """Any order of asking, looking, claiming and withdrawing behaves like a plain dict."""

    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self.pending: Pending[int] = Pending()
        self.model: dict[tuple[str, str], int] = {}
        self.stacks: dict[tuple[str, str], ExitStack] = {}
        self.made = 0

    @rule(target=keys, server=st.sampled_from(["a", "b"]), waiter=st.integers())
    def ask(self, server: str, waiter: int) -> tuple[str, str]:
        self.made += 1
        stack, key = ExitStack(), (server, f"q{self.made}")
        stack.enter_context(self.pending.holding(question(server, self.made), waiter))
        self.model[key], self.stacks[key] = waiter, stack
        return key

    @rule(key=keys, asked_as=st.sampled_from(["a", "b"]))
    def claim(self, key: tuple[str, str], asked_as: str) -> None:
        key = (asked_as, key[1])
        if key in self.model:
            assert self.pending.look(*key).waiter == self.model[key]
            assert self.pending.claim(*key) == self.model.pop(key)
        else:
            with pytest.raises(InvalidRequest):
                self.pending.look(*key)
            with pytest.raises(InvalidRequest):
                self.pending.claim(*key)

    @rule(key=consumes(keys))
    def withdraw(self, key: tuple[str, str]) -> None:
        self.stacks.pop(key).close()
        self.model.pop(key, None)

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        assert [(one.server, one.id) for one in self.pending.questions] == list(self.model)
        assert all(self.pending.find(question_id) for _, question_id in self.model)
        assert len(self.pending) == len(self.model)


TestPendingMatchesADict = PendingMatchesADict.TestCase
