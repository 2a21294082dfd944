"""The one that waits: from a question to its answer.

Owns: the open questions of one Thread and their ends: each is settled once, by whoever came first.
Never: waits for ever, lets a failure count as consent (QST-10), or tells a server anything but its own answer.

    policy → reviewer → is anybody listening → stored as asked → told → waits → claimed → stored → returned
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, TypeAlias, assert_never

import anyio

from interlock.connections.cancelled import stop_if_cancelled
from interlock.connections.standstill import Spans
from interlock.questions import application
from interlock.questions.audience import Listener, Listeners, Until
from interlock.questions.elicitation import Asked, read_elicitation, refuse_unfit, result_of
from interlock.questions.pending import Pending, not_open
from interlock.questions.policy import AcceptEmpty, AskPeople, AskReviewer, DeclineNow, road
from interlock.questions.rounds import Rounds, known_answer
from interlock.vocabulary.errors import InvalidRequest, StorageFailed
from interlock.vocabulary.event import (
    Event,
    InputRequested,
    InputSent,
    QuestionAnswered,
    QuestionAsked,
    QuestionDeclined,
    QuestionWithdrawn,
    TurnOptions,
)
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.question import Accept, Answer, Answerer, Approval, Cancel, Decline, Elicitation, Question
from interlock.vocabulary.thread import HeldCall

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
    """`asked`: its question is stored as open. Once `over` is set, `delivered` tells whether the claimed answer was
    stored and goes to who asked; `failure` is why it could not be stored."""

    asked: bool = True
    outcome: Outcome | None = None
    delivered: bool = False
    failure: StorageFailed | None = None
    woken: anyio.Event = field(default_factory=anyio.Event)
    over: anyio.Event = field(default_factory=anyio.Event)

    def settle(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.woken.set()


@dataclass(frozen=True, slots=True)
class _Reopened:
    """A question of an earlier host that can be answered again, for as long as `holding` is open."""

    holding: ExitStack
    waiter: _Waiter = field(default_factory=_Waiter)

    def hold(self, pending: Pending[_Waiter], question: Question) -> None:
        self.holding.enter_context(pending.holding(question, self.waiter))


class Asking:
    """The questions of one Thread. `policy` gives the policy of the moment; a question keeps the one it met.

    `keeps`: as for Rounds. `turn_options` gives what the next host has to know of a turn.
    """

    def __init__(
        self,
        recorder: Recorder,
        *,
        new_id: Callable[[], str],
        policy: Callable[[], Policy],
        reviewer: Reviewer | None = None,
        patience: float = PATIENCE,
        reviewer_patience: float = REVIEWER_PATIENCE,
        keeps: Callable[[str], bool] = lambda turn_id: False,
        turn_options: Callable[[str], TurnOptions] = lambda turn_id: TurnOptions(),
    ) -> None:
        self._recorder = recorder
        self._new_id = new_id
        self._policy = policy
        self._reviewer = reviewer
        self._patience = patience
        self._reviewer_patience = reviewer_patience
        self._turn_options = turn_options
        self._rounds = Rounds(keeps)
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

        Cancelling withdraws them (QST-5), unless the next host of the Thread can go on with them (QST-9).

        Raises:
            InvalidRequest: one is malformed, to be answered as a protocol error; then none of them was asked.
            StorageFailed: a fact could not be stored.
        """
        asked = [(elicitation, read_elicitation(elicitation)) for elicitation in elicitations]
        questions = tuple(_question(self._new_id(), elicitation, read) for elicitation, read in asked)
        first = elicitations[0]
        if first.held is None or first.call_id is None or first.turn_id is None:
            return await _side_by_side(self._elicited, questions)
        with self._rounds.waiting(first.call_id, first.turn_id):
            requested = InputRequested(
                turn_id=first.turn_id,
                call_id=first.call_id,
                request=first.held,
                questions=questions,
                turn=self._turn_options(first.turn_id),
            )
            await self._record(requested)
            results = await _side_by_side(
                self._elicited, questions, failed=partial(self._rounds.give_up, first.call_id)
            )
            await self.input_sent(first.turn_id, first.call_id)
        return results

    async def take_up(
        self, held: HeldCall, asked: Collection[str], *, waiting: Callable[[], None]
    ) -> tuple[JsonObject, ...]:
        """The results for the server that asked an earlier host, in order; before they go out, `input_sent` is called.

        `asked` are the ids of questions that were put to people; `waiting` is called once they can be answered here.
        Nobody has to listen yet. Otherwise as `elicit`, under the policy of now.
        """
        requested, policy = held.requested, self._policy()
        with self._rounds.waiting(requested.call_id, requested.turn_id), ExitStack() as stack:
            reopened: dict[str, _Reopened] = {}
            for question in requested.questions:
                to_people = isinstance(road(question.subject, policy, reviewer=False, listening=True), AskPeople)
                if to_people and question.id in asked and known_answer(question, held) is None:
                    reopened[question.id] = _Reopened(stack.enter_context(ExitStack()))
                    reopened[question.id].hold(self._pending, question)
                    self._listeners.tell(question)
            waiting()

            async def result(question: Question) -> JsonObject:
                known = known_answer(question, held)
                if known is None:
                    again = reopened.get(question.id)
                    known = (await self._settle_again(question, again, policy, shown=question.id in asked)).answer
                return _result(question, known)

            failed = partial(self._rounds.give_up, requested.call_id)
            return await _side_by_side(result, requested.questions, failed=failed)

    async def input_sent(self, turn_id: str, call_id: str) -> None:
        """The answers that were given go out now: from here on nobody is asked for them again."""
        await stop_if_cancelled()
        await self._record(InputSent(turn_id=turn_id, call_id=call_id))
        await stop_if_cancelled()

    async def _elicited(self, question: Question) -> JsonObject:
        return _result(question, (await self._settle(question, self._policy())).answer)

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
        """Withdraw everything; servers get cancel, and whoever asks from now on too. What the next host can go on with
        stays open, and is left once its call is cancelled."""
        self._closed = True
        self._settle_all(lambda question: not self._rounds.keep(question), Withdrawn("its thread was closed"))
        self._listeners.thread_ended()

    def _settle_all(self, concerns: Callable[[Question], bool], outcome: Outcome) -> None:
        for question in self._pending.questions:
            if concerns(question):
                self._pending.claim(question.server, question.id).settle(outcome)

    # ---- the road

    async def _settle(
        self, question: Question, policy: Policy, *, durable: bool = False, shown: bool = False
    ) -> Settled:
        """`durable`: it waits for somebody to listen. `shown`: people have seen it; a reviewer had passed it on."""
        reviewer = None if shown else self._reviewer
        while not self._closed:
            await stop_if_cancelled()  # nobody is asked, and no reviewer run, for a call that is over
            listening = durable or len(self._listeners) > 0
            match road(question.subject, policy, reviewer=reviewer is not None, listening=listening):
                case AcceptEmpty():
                    return await self._answered(question, Accept({}), "policy", policy, shown=shown)
                case DeclineNow() as no:
                    by: Answerer = "nobody" if no.cause == "nobody_listens" else "policy"
                    return await self._declined(question, by, no.sentence, shown=shown)
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

    async def _settle_again(
        self, question: Question, again: "_Reopened | None", policy: Policy, *, shown: bool
    ) -> Settled:
        """Settle what an earlier host had asked, or was about to ask."""
        if again is None:
            return await self._settle(question, policy, durable=True, shown=shown)
        async with self._seen_through(question, again.waiter, policy) as outcome:
            with again.holding:
                outcome.append(await self._wait(again.waiter))
        return _settled(outcome[0])

    async def _ask_people(self, question: Question, policy: Policy) -> Settled:
        if len(self._pending) >= MAXIMUM_OPEN:
            raise InvalidRequest(f"more than {MAXIMUM_OPEN} questions are open; answer some first")
        waiter = _Waiter(asked=False)
        async with self._seen_through(question, waiter, policy) as outcome:
            with self._pending.holding(question, waiter):
                await self._record(QuestionAsked(question=question))
                waiter.asked = True
                self._listeners.tell(question)
                outcome.append(await self._wait(waiter))
        return _settled(outcome[0])

    @asynccontextmanager
    async def _seen_through(self, question: Question, waiter: _Waiter, policy: Policy) -> AsyncIterator[list[Outcome]]:
        """Whatever becomes of the block, a question that was asked gets its end; the block notes the outcome."""
        outcomes: list[Outcome] = []
        try:
            yield outcomes
        finally:
            outcome = outcomes[0] if outcomes else ABANDONED
            try:
                if waiter.asked and not (outcome is ABANDONED and self._rounds.keep(question)):
                    await self._record(_end(question, outcome, policy))
                    waiter.delivered = isinstance(outcome, Answered)
            except StorageFailed as error:
                waiter.failure = error
                raise
            finally:
                waiter.woken.set()
                waiter.over.set()

    async def _wait(self, waiter: _Waiter) -> Outcome:
        with anyio.move_on_after(self._patience):
            await waiter.woken.wait()
        return waiter.outcome or EXPIRED

    # ---- facts

    async def _answered(
        self, question: Question, answer: Answer, by: Answerer, policy: Policy, *, shown: bool = False
    ) -> Settled:
        await self._record(_answered(question, answer, by, policy, shown=shown))
        return Settled(answer, by)

    async def _declined(self, question: Question, by: Answerer, reason: str, *, shown: bool = False) -> Settled:
        untold = None if shown else question
        event = QuestionDeclined(question_id=question.id, server=question.server, by=by, reason=reason, question=untold)
        await self._record(event)
        return Settled(Decline(reason), by)

    async def _record(self, event: Event) -> None:
        # A question that may be stored as open owes an end, and the end is owed also by one that was cancelled.
        with anyio.CancelScope(shield=True):
            await self._recorder.record(event)


def _question(question_id: str, elicitation: Elicitation, read: Asked) -> Question:
    return Question(
        id=question_id,
        server=elicitation.server,
        message=read.message,
        subject=read.subject,
        turn_id=elicitation.turn_id,
        call_id=elicitation.call_id,
        certainty=elicitation.certainty,
        meta=read.meta,
    )


def _result(question: Question, answer: Answer) -> JsonObject:
    """What the server of an elicitation gets."""
    assert not isinstance(question.subject, Approval)  # noqa: S101 -- no server asks for one
    return result_of(question.subject, answer)


async def _side_by_side(
    ask: Callable[[Question], Awaitable[JsonObject]],
    questions: Sequence[Question],
    *,
    failed: Callable[[], None] = lambda: None,
) -> tuple[JsonObject, ...]:
    """The results of `ask` in the order of the questions, all of which are open at the same time.

    When one of several fails, `failed` is called before the others are cancelled.
    """
    if len(questions) == 1:
        return (await ask(questions[0]),)
    results: dict[int, JsonObject] = {}

    async def one(place: int, question: Question) -> None:
        try:
            results[place] = await ask(question)
        except Exception:
            failed()
            raise

    with _unwrapped():
        async with anyio.create_task_group() as tasks:
            for place, question in enumerate(questions):
                tasks.start_soon(one, place, question)
    return tuple(results[place] for place in range(len(questions)))


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
