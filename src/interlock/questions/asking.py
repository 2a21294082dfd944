"""The one that waits: from a question to its answer.

Owns: the open questions of one Thread and their ends: each is settled once, by whoever came first.
Never: waits for ever, lets a failure count as consent (QST-10), or tells a server anything but its own answer.

    policy → reviewer → is anybody listening → stored as asked → told → waits → claimed → stored → returned
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, TypeAlias, assert_never

import anyio

from interlock.connections.standstill import Spans
from interlock.questions import application
from interlock.questions.audience import Listener, Listeners, Until
from interlock.questions.elicitation import Asked, read_elicitation, refuse_unfit, result_of
from interlock.questions.pending import Pending, not_open
from interlock.questions.policy import AcceptEmpty, AskPeople, AskReviewer, DeclineNow, road
from interlock.vocabulary.errors import InvalidRequest, StorageFailed
from interlock.vocabulary.event import Event, QuestionAnswered, QuestionAsked, QuestionDeclined, QuestionWithdrawn
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.question import Accept, Answer, Answerer, Approval, Cancel, Decline, Elicitation, Question

PATIENCE: Final = 24 * 60 * 60.0
"""Seconds that a question waits for a person."""
REVIEWER_PATIENCE: Final = 30.0
MAXIMUM_OPEN: Final = 4096
"""Open questions of one Thread; a server that wants more is told so."""

Reviewer: TypeAlias = Callable[[Question], "Awaitable[Answer | None] | Answer | None"]
"""A function of the application: an answer, or None to pass the question on to people (QST-10)."""


class Recorder(Protocol):
    """What is needed of the Journal: stored when it returns."""

    async def record(self, event: Event) -> object: ...


@dataclass(frozen=True, slots=True)
class Answered:
    answer: Answer


@dataclass(frozen=True, slots=True)
class Withdrawn:
    reason: str


@dataclass(frozen=True, slots=True)
class Unheard:
    """The last listener left."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The end of a question: the answer, and whose it is. A withdrawn one is cancelled by nobody."""

    answer: Answer
    by: Answerer


Outcome: TypeAlias = Answered | Withdrawn | Unheard

ABANDONED: Final = Withdrawn("whoever asked no longer waits for the answer")
EXPIRED: Final = Withdrawn("nobody answered in time")
LEFT: Final = "the last one who could be asked has left"


@dataclass(slots=True)
class _Waiter:
    """Once `over` is set, `delivered` tells whether the claimed answer was stored and goes to who asked; `failure`
    is why it could not be stored."""

    outcome: Outcome | None = None
    delivered: bool = False
    failure: StorageFailed | None = None
    woken: anyio.Event = field(default_factory=anyio.Event)
    over: anyio.Event = field(default_factory=anyio.Event)

    def settle(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.woken.set()


class Asking:
    """The questions of one Thread. `policy` gives the policy of the moment; a question keeps the one it met."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        new_id: Callable[[], str],
        policy: Callable[[], Policy],
        reviewer: Reviewer | None = None,
        patience: float = PATIENCE,
        reviewer_patience: float = REVIEWER_PATIENCE,
    ) -> None:
        self._recorder = recorder
        self._new_id = new_id
        self._policy = policy
        self._reviewer = reviewer
        self._patience = patience
        self._reviewer_patience = reviewer_patience
        self._pending: Pending[_Waiter] = Pending()
        self._listeners = Listeners(lambda question_id: self._pending.find(question_id) is not None)
        self.standstill = Spans()
        """When deadlines of the Thread's calls stand still, because people are asked elsewhere (CON-11)."""
        self._closed = False

    def __repr__(self) -> str:
        return f"<Asking open={len(self._pending)} listeners={len(self._listeners)} closed={self._closed}>"

    # ---- those who ask

    async def elicit(self, elicitations: Sequence[Elicitation]) -> tuple[JsonObject, ...]:
        """The results for the server that asks, in order; its questions are open side by side.

        Cancelling withdraws them (QST-5).

        Raises:
            InvalidRequest: one is malformed, to be answered as a protocol error; then none of them was asked.
            StorageFailed: a fact could not be stored.
        """
        asked = [(elicitation, read_elicitation(elicitation)) for elicitation in elicitations]
        if len(asked) == 1:
            return (await self._elicit_one(*asked[0]),)
        results: dict[int, JsonObject] = {}

        async def one(place: int, elicitation: Elicitation, read: Asked) -> None:
            results[place] = await self._elicit_one(elicitation, read)

        with _unwrapped():
            async with anyio.create_task_group() as tasks:
                for place, (elicitation, read) in enumerate(asked):
                    tasks.start_soon(one, place, elicitation, read)
        return tuple(results[place] for place in range(len(asked)))

    async def _elicit_one(self, elicitation: Elicitation, read: Asked) -> JsonObject:
        question = Question(
            id=self._new_id(),
            server=elicitation.server,
            message=read.message,
            subject=read.subject,
            turn_id=elicitation.turn_id,
            call_id=elicitation.call_id,
            certainty=elicitation.certainty,
            meta=read.meta,
        )
        settled = await self._settle(question, self._policy())
        return result_of(read.subject, settled.answer)

    async def approve(
        self, server: str, approval: Approval, *, message: str, policy: Policy, turn_id: str, call_id: str
    ) -> Settled:
        """What becomes of a call before it is sent; `policy` is that of its Step."""
        question = Question(
            id=self._new_id(),
            server=server,
            message=message,
            subject=approval,
            turn_id=turn_id,
            call_id=call_id,
            certainty="known",
        )
        return await self._settle(question, policy)

    # ---- those who are asked

    @property
    def questions(self) -> tuple[Question, ...]:
        """The open ones, oldest first."""
        return self._pending.questions

    @asynccontextmanager
    async def audience(self, until: Until = "turn") -> AsyncIterator[Listener]:
        """Listen while the block runs. When the last one leaves, open questions are declined (QST-4)."""
        try:
            with self._listeners.listening(until, self._pending.questions) as listener:
                if self._closed:
                    listener.end()
                yield listener
        finally:
            if not self._listeners:
                self._settle_all(lambda question: True, Unheard())

    async def answer(self, question_id: str, answer: Answer, *, server: str | None = None) -> None:
        """Answer an open question; when this returns, the answer is stored and on its way. `server`: who is meant.

        Raises:
            InvalidRequest: nobody waits for it (any more), or it does not fit; then the question stays open.
            StorageFailed: it could not be stored, and was not sent.
        """
        known = self._pending.find(question_id)
        if known is None:
            raise not_open(server or "any", question_id)
        server = server or known.server
        refuse_unfit(self._pending.look(server, question_id).question, answer)
        waiter = self._pending.claim(server, question_id)
        waiter.settle(Answered(answer))
        await waiter.over.wait()
        if waiter.failure is not None:
            raise waiter.failure
        if not waiter.delivered:
            raise not_open(server, question_id)

    async def closed(self, question_id: str) -> None:
        """Return once the question is not open any more; a prompt on a screen can go then."""
        known = self._pending.find(question_id)
        if known is not None:
            await self._pending.look(known.server, question_id).waiter.woken.wait()

    # ---- ends

    def withdraw_call(self, call_id: str, reason: str = "its call was cancelled") -> None:
        """Withdraw the questions of one call, as far as they are known to be its own (QST-11)."""
        self._settle_all(lambda question: question.call_id == call_id, Withdrawn(reason))

    def withdraw_turn(self, turn_id: str, reason: str = "its turn was interrupted") -> None:
        self._settle_all(lambda question: question.turn_id == turn_id, Withdrawn(reason))

    def turn_ended(self) -> None:
        """Listeners that came for one turn have heard all of it."""
        self._listeners.turn_ended()

    def close(self) -> None:
        """Withdraw everything; servers get cancel, and whoever asks from now on too."""
        self._closed = True
        self._settle_all(lambda question: True, Withdrawn("its thread was closed"))
        self._listeners.thread_ended()

    def _settle_all(self, concerns: Callable[[Question], bool], outcome: Outcome) -> None:
        for question in self._pending.questions:
            if concerns(question):
                self._pending.claim(question.server, question.id).settle(outcome)

    # ---- the road

    async def _settle(self, question: Question, policy: Policy) -> Settled:
        reviewer = self._reviewer
        while not self._closed:
            match road(question.subject, policy, reviewer=reviewer is not None, listening=len(self._listeners) > 0):
                case AcceptEmpty():
                    return await self._answered(question, Accept({}), "policy", policy)
                case DeclineNow() as no:
                    by: Answerer = "nobody" if no.cause == "nobody_listens" else "policy"
                    return await self._declined(question, by, no.sentence)
                case AskReviewer():
                    answer = await self._review(question, reviewer, policy)
                    if answer is not None:
                        return answer
                    reviewer = None
                case AskPeople():
                    return await self._ask_people(question, policy)
        return Settled(Cancel(), "nobody")

    async def _review(self, question: Question, reviewer: Reviewer | None, policy: Policy) -> Settled | None:
        """The reviewer's answer, or None when it passes the question on."""
        if reviewer is None:
            return None
        try:
            answer = await application.run(partial(reviewer, question), patience=self._reviewer_patience)
            if answer is None:
                return None
            if not isinstance(answer, Accept | Decline | Cancel):
                raise TypeError(f"it returned a {type(answer).__name__}")
            refuse_unfit(question, answer)
        except TimeoutError:
            return await self._declined(question, "reviewer", "the reviewer did not answer in time")
        except InvalidRequest as error:
            return await self._declined(question, "reviewer", f"the reviewer's answer was refused: {error.message}")
        except Exception as error:
            return await self._declined(question, "reviewer", f"the reviewer failed ({type(error).__name__})")
        return await self._answered(question, answer, "reviewer", policy)

    async def _ask_people(self, question: Question, policy: Policy) -> Settled:
        if len(self._pending) >= MAXIMUM_OPEN:
            raise InvalidRequest(f"more than {MAXIMUM_OPEN} questions are open; answer some first")
        outcome: Outcome = ABANDONED
        waiter, asked = _Waiter(), False
        try:
            with self._pending.holding(question, waiter):
                await self._record(QuestionAsked(question=question))
                asked = True
                outcome = await self._wait(question, waiter)
        finally:
            try:
                if asked:
                    await self._record(_end(question, outcome, policy))
                    waiter.delivered = isinstance(outcome, Answered)
            except StorageFailed as error:
                waiter.failure = error
                raise
            finally:
                waiter.woken.set()
                waiter.over.set()
        return _settled(outcome)

    async def _wait(self, question: Question, waiter: _Waiter) -> Outcome:
        self._listeners.tell(question)
        with anyio.move_on_after(self._patience):
            await waiter.woken.wait()
        return waiter.outcome or EXPIRED

    # ---- facts

    async def _answered(self, question: Question, answer: Answer, by: Answerer, policy: Policy) -> Settled:
        await self._record(_answered(question, answer, by, policy, shown=False))
        return Settled(answer, by)

    async def _declined(self, question: Question, by: Answerer, reason: str) -> Settled:
        event = QuestionDeclined(
            question_id=question.id, server=question.server, by=by, reason=reason, question=question
        )
        await self._record(event)
        return Settled(Decline(reason), by)

    async def _record(self, event: Event) -> None:
        # A question that may be stored as open owes an end, and the end is owed also by one that was cancelled.
        with anyio.CancelScope(shield=True):
            await self._recorder.record(event)


def _end(question: Question, outcome: Outcome, policy: Policy) -> Event:
    match outcome:
        case Answered():
            return _answered(question, outcome.answer, "user", policy, shown=True)
        case Withdrawn():
            return QuestionWithdrawn(question_id=question.id, server=question.server, reason=outcome.reason)
        case Unheard():
            return QuestionDeclined(question_id=question.id, server=question.server, by="nobody", reason=LEFT)
        case _:
            assert_never(outcome)


def _settled(outcome: Outcome) -> Settled:
    match outcome:
        case Answered():
            return Settled(outcome.answer, "user")
        case Withdrawn():
            return Settled(Cancel(), "nobody")
        case Unheard():
            return Settled(Decline(LEFT), "nobody")
        case _:
            assert_never(outcome)


def _answered(question: Question, answer: Answer, by: Answerer, policy: Policy, *, shown: bool) -> QuestionAnswered:
    content = answer.content if isinstance(answer, Accept) and policy.store_answers else None
    return QuestionAnswered(
        question_id=question.id,
        server=question.server,
        action=answer.action,
        by=by,
        content=content,
        remember=answer.remember if isinstance(answer, Accept) else "once",
        question=None if shown else question,
    )


@contextmanager
def _unwrapped() -> Iterator[None]:
    """A task group wraps what its tasks raise; here it is one caller's request, who shall see the first error."""
    try:
        yield
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
