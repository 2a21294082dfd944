"""Asking: every question is settled once, by whoever came first, and nobody waits for ever."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import pytest

from interlock.questions.asking import MAXIMUM_OPEN, Asking, Reviewer
from interlock.questions.audience import Listener
from interlock.vocabulary.errors import InvalidRequest, StorageFailed
from interlock.vocabulary.event import Event, QuestionAnswered, QuestionAsked, QuestionDeclined, QuestionWithdrawn
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.question import Accept, Answer, Approval, Cancel, Decline, Elicitation, HeldRequest, Question
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
EMPTY: JsonObject = {"type": "object", "properties": {}}
NEVER = Policy(approval="never")
FULL = Policy(approval="never", full_access=True)


@dataclass
class Store:
    """Records in memory. `at` maps a kind of event to what happens while it is being stored."""

    events: list[Event] = field(default_factory=list)
    at: dict[type, Callable[[], Awaitable[None]]] = field(default_factory=dict)

    async def record(self, event: Event) -> None:
        await anyio.lowlevel.checkpoint()
        if type(event) in self.at:
            await self.at[type(event)]()
        self.events.append(event)

    @property
    def kinds(self) -> list[type]:
        return [type(event) for event in self.events]


@dataclass
class Desk:
    """An Asking with everything around it."""

    store: Store = field(default_factory=Store)
    policy: Policy = field(default_factory=Policy)
    reviewer: Reviewer | None = None
    patience: float = 60.0

    def open(self, **changes: Any) -> Asking:
        numbers = count(1)
        return Asking(
            self.store,
            new_id=lambda: f"q{next(numbers)}",
            policy=lambda: self.policy,
            reviewer=self.reviewer,
            **{"patience": self.patience, **changes},
        )


def elicitation(
    server: str = "e", schema: JsonObject = NAME, *, call_id: str | None = None, turn_id: str | None = None
) -> Elicitation:
    params = {"message": "Who?", "requestedSchema": schema}
    return Elicitation(server=server, params=params, era="handshake", call_id=call_id, turn_id=turn_id)


@dataclass
class Asker:
    """One server's request, running in a task of its own."""

    result: JsonObject | None = None
    cancelled: bool = False
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    over: anyio.Event = field(default_factory=anyio.Event)

    async def run(self, asking: Asking, asked: Elicitation) -> None:
        try:
            with self.scope:
                (self.result,) = await asking.elicit([asked])
            self.cancelled = self.scope.cancelled_caught
        finally:
            self.over.set()


@asynccontextmanager
async def listened(asking: Asking) -> AsyncIterator[tuple[Listener, anyio.abc.TaskGroup]]:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            async with asking.audience("thread") as questions:
                yield questions, tasks
            tasks.cancel_scope.cancel()


@requirement("QST-1")
async def test_an_answer_reaches_its_question_and_is_a_fact_before_it_is_sent() -> None:
    desk = Desk()
    asking = desk.open()
    async with listened(asking) as (questions, tasks):
        asker = Asker()
        tasks.start_soon(asker.run, asking, elicitation())
        question = await anext(questions)
        assert desk.store.events == [QuestionAsked(question=question)]

        await asking.answer(question.id, Accept({"name": "Ada"}))

        assert desk.store.events[1:] == [
            QuestionAnswered(question_id=question.id, server="e", action="accept", by="user")
        ]
        await asker.over.wait()
        assert asker.result == {"action": "accept", "content": {"name": "Ada"}}
        assert asking.questions == ()


async def test_content_is_stored_only_where_the_policy_says_so() -> None:
    desk = Desk(policy=Policy(store_answers=True))
    asking = desk.open()
    async with listened(asking) as (questions, tasks):
        tasks.start_soon(Asker().run, asking, elicitation())
        await asking.answer((await anext(questions)).id, Accept({"name": "Ada"}))

    answered = desk.store.events[-1]
    assert isinstance(answered, QuestionAnswered)
    assert answered.content == {"name": "Ada"}


@requirement("QST-6")
async def test_a_wrong_answer_is_told_to_the_answerer_and_the_question_stays_open() -> None:
    desk = Desk()
    asking = desk.open()
    async with listened(asking) as (questions, tasks):
        asker = Asker()
        tasks.start_soon(asker.run, asking, elicitation())
        question = await anext(questions)

        with pytest.raises(InvalidRequest, match="'name' must be a text"):
            await asking.answer(question.id, Accept({"name": 7}))
        assert asking.questions == (question,)
        assert desk.store.kinds == [QuestionAsked]

        await asking.answer(question.id, Accept({"name": "Ada"}))
        await asker.over.wait()
        assert asker.result == {"action": "accept", "content": {"name": "Ada"}}


@requirement("QST-1")
async def test_of_two_answers_one_counts_and_the_other_is_told() -> None:
    desk = Desk()
    asking = desk.open()
    outcomes: list[str] = []

    async def give(question_id: str, name: str) -> None:
        try:
            await asking.answer(question_id, Accept({"name": name}))
            outcomes.append(name)
        except InvalidRequest as error:
            outcomes.append(error.message)

    async with listened(asking) as (questions, tasks):
        asker = Asker()
        tasks.start_soon(asker.run, asking, elicitation())
        question = await anext(questions)
        async with anyio.create_task_group() as both:
            both.start_soon(give, question.id, "Ada")
            both.start_soon(give, question.id, "Bob")
        await asker.over.wait()

    assert asker.result is not None
    winner = asker.result["content"]["name"]
    assert sorted(outcomes, key=len)[0] == winner
    assert "is not open" in max(outcomes, key=len)
    assert desk.store.kinds == [QuestionAsked, QuestionAnswered]


@requirement("QST-1")
async def test_an_answer_for_another_server_changes_nothing() -> None:
    asking = Desk().open()
    async with listened(asking) as (questions, tasks):
        asker = Asker()
        tasks.start_soon(asker.run, asking, elicitation("github"))
        question = await anext(questions)

        with pytest.raises(InvalidRequest, match="server 'slack' is not open"):
            await asking.answer(question.id, Accept({"name": "Ada"}), server="slack")

        assert asking.questions == (question,)
        assert asker.result is None


# ---- withdrawal


@requirement("QST-5")
async def test_a_cancelled_question_goes_alone_and_a_late_answer_changes_nothing() -> None:
    desk = Desk()
    asking = desk.open()
    async with listened(asking) as (questions, tasks):
        goes, stays = Asker(), Asker()
        tasks.start_soon(goes.run, asking, elicitation())
        first = await anext(questions)
        tasks.start_soon(stays.run, asking, elicitation())
        second = await anext(questions)

        goes.scope.cancel()
        await goes.over.wait()

        assert goes.cancelled
        assert asking.questions == (second,)
        assert isinstance(desk.store.events[-1], QuestionWithdrawn)
        before = list(desk.store.events)
        with pytest.raises(InvalidRequest, match="no longer needed"):
            await asking.answer(first.id, Accept({"name": "late"}))
        assert desk.store.events == before

        await asking.answer(second.id, Decline())
        await stays.over.wait()
        assert stays.result == {"action": "decline"}


@requirement("QST-5")
@pytest.mark.parametrize("cancel_first", [True, False])
async def test_when_answer_and_cancel_come_at_once_both_sides_hear_the_same(cancel_first: bool) -> None:
    desk = Desk()
    asking = desk.open()
    async with listened(asking) as (questions, tasks):
        asker = Asker()
        tasks.start_soon(asker.run, asking, elicitation())
        question = await anext(questions)
        told: list[bool] = []

        async def give() -> None:
            try:
                await asking.answer(question.id, Accept({"name": "Ada"}))
                told.append(True)
            except InvalidRequest:
                told.append(False)

        if cancel_first:
            asker.scope.cancel()
        async with anyio.create_task_group() as both:
            both.start_soon(give)
            if not cancel_first:
                await anyio.lowlevel.checkpoint()  # the answer is claimed, its server not yet woken
                asker.scope.cancel()
        await asker.over.wait()

    delivered = asker.result is not None
    assert told == [delivered]
    assert desk.store.kinds == [QuestionAsked, QuestionAnswered if delivered else QuestionWithdrawn]


@requirement("QST-5")
@pytest.mark.parametrize("moment", range(12))
async def test_cancelled_at_any_moment_nothing_stays_open_and_the_facts_are_whole(moment: int) -> None:
    desk = Desk()
    asking = desk.open()
    async with listened(asking) as (questions, tasks):
        asker = Asker()
        tasks.start_soon(asker.run, asking, elicitation())

        async def answer_soon() -> None:
            question = await anext(questions)
            try:
                await asking.answer(question.id, Accept({"name": "Ada"}))
            except InvalidRequest:
                assert asker.result is None

        tasks.start_soon(answer_soon)
        for _ in range(moment):
            await anyio.lowlevel.checkpoint()
        asker.scope.cancel()
        await asker.over.wait()

        assert asking.questions == ()
        delivered = asker.result is not None
        end = QuestionAnswered if delivered else QuestionWithdrawn
        assert desk.store.kinds in ([], [QuestionAsked, end])
        assert not (desk.store.kinds == [] and delivered)


@requirement("QST-5", "QST-11")
async def test_a_cancelled_turn_or_call_takes_its_own_questions_and_no_others() -> None:
    asking = Desk().open()
    async with listened(asking) as (questions, tasks):
        askers = {name: Asker() for name in ("call", "turn", "other turn", "direct")}
        asked = {
            "call": elicitation(call_id="c1", turn_id="t1"),
            "turn": elicitation(call_id="c2", turn_id="t1"),
            "other turn": elicitation(call_id="c3", turn_id="t2"),
            "direct": elicitation(),
        }
        for name, asker in askers.items():
            tasks.start_soon(asker.run, asking, asked[name])
            await anext(questions)

        asking.withdraw_call("c1")
        await askers["call"].over.wait()
        assert [question.call_id for question in asking.questions] == ["c2", "c3", None]

        asking.withdraw_turn("t1")
        await askers["turn"].over.wait()
        assert [question.call_id for question in asking.questions] == ["c3", None]
        assert askers["call"].result == askers["turn"].result == {"action": "cancel"}


async def test_a_question_that_nobody_answers_is_withdrawn_in_the_end() -> None:
    desk = Desk()
    asking = desk.open(patience=0.01)
    async with listened(asking) as (_, tasks):
        asker = Asker()
        tasks.start_soon(asker.run, asking, elicitation())
        await asker.over.wait()

    assert asker.result == {"action": "cancel"}
    assert desk.store.kinds == [QuestionAsked, QuestionWithdrawn]


@requirement("QST-4")
async def test_closing_withdraws_everything_and_later_questions_are_not_asked() -> None:
    desk = Desk()
    asking = desk.open()
    async with listened(asking) as (questions, tasks):
        asker = Asker()
        tasks.start_soon(asker.run, asking, elicitation())
        await anext(questions)

        asking.close()
        await asker.over.wait()

        assert asker.result == {"action": "cancel"}
        before = list(desk.store.events)
        assert await asking.elicit([elicitation()]) == ({"action": "cancel"},)
        assert desk.store.events == before
        with pytest.raises(StopAsyncIteration):
            await anext(questions)


# ---- who listens


@requirement("QST-4")
async def test_without_anyone_listening_a_question_is_declined_at_once() -> None:
    desk = Desk()
    asking = desk.open()

    assert await asking.elicit([elicitation()]) == ({"action": "decline"},)
    (declined,) = desk.store.events
    assert isinstance(declined, QuestionDeclined)
    assert (declined.by, declined.question is not None) == ("nobody", True)


@requirement("QST-4")
async def test_when_the_last_listener_leaves_open_questions_are_declined() -> None:
    desk = Desk()
    asking = desk.open()
    asker = Asker()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks, asking.audience() as first:
            async with asking.audience() as second:
                tasks.start_soon(asker.run, asking, elicitation())
                assert await anext(first) == await anext(second)
            await anyio.lowlevel.checkpoint()
            assert len(asking.questions) == 1
    assert asker.result == {"action": "decline"}
    assert desk.store.kinds == [QuestionAsked, QuestionDeclined]


@requirement("QST-4")
async def test_a_listener_that_leaves_while_the_question_is_being_stored_declines_it_too() -> None:
    desk = Desk()
    asking = desk.open()
    reached, go = anyio.Event(), anyio.Event()

    async def hold() -> None:
        reached.set()
        await go.wait()

    desk.store.at[QuestionAsked] = hold
    asker = Asker()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            async with asking.audience():
                tasks.start_soon(asker.run, asking, elicitation())
                await reached.wait()
            go.set()
    assert asker.result == {"action": "decline"}
    assert desk.store.kinds == [QuestionAsked, QuestionDeclined]


async def test_a_late_listener_is_shown_what_is_open_and_not_what_is_settled() -> None:
    asking = Desk().open()
    async with listened(asking) as (questions, tasks):
        for _ in range(3):
            tasks.start_soon(Asker().run, asking, elicitation())
        open_now = [await anext(questions) for _ in range(3)]
        async with asking.audience() as late:
            await asking.answer(open_now[0].id, Cancel())
            await asking.answer(open_now[1].id, Cancel())
            assert await anext(late) == open_now[2]


async def test_a_listener_for_a_turn_hears_its_end_and_one_for_the_thread_goes_on() -> None:
    asking = Desk().open()
    with anyio.fail_after(60):
        async with asking.audience() as for_turn, asking.audience("thread") as for_thread:
            asking.turn_ended()
            assert [question async for question in for_turn] == []
            asking.close()
            assert [question async for question in for_thread] == []


async def test_a_prompt_learns_that_its_question_is_settled() -> None:
    asking = Desk().open()
    async with listened(asking) as (questions, tasks):
        tasks.start_soon(Asker().run, asking, elicitation(turn_id="t1"))
        question = await anext(questions)
        async with anyio.create_task_group() as screen:
            screen.start_soon(asking.closed, question.id)
            await anyio.lowlevel.checkpoint()
            asking.withdraw_turn("t1")
        await asking.closed(question.id)
        await asking.closed("never asked")


# ---- policy


@requirement("QST-2", "QST-3")
@pytest.mark.parametrize(
    ("policy", "schema", "action"),
    [
        (NEVER, NAME, "decline"),
        (NEVER, EMPTY, "decline"),
        (FULL, NAME, "decline"),
        (FULL, EMPTY, "accept"),
        (Policy(mcp_elicitations=False), NAME, "decline"),
    ],
)
async def test_policy_comes_before_any_screen_and_before_the_reviewer(
    policy: Policy, schema: JsonObject, action: str
) -> None:
    seen: list[Question] = []
    desk = Desk(policy=policy, reviewer=seen.append)
    asking = desk.open()
    async with listened(asking) as (questions, _):
        (result,) = await asking.elicit([elicitation(schema=schema)])

    assert result["action"] == action
    assert seen == []
    assert "waiting=0" in repr(questions)
    assert desk.store.kinds == [QuestionAnswered if action == "accept" else QuestionDeclined]


async def test_a_question_stands_when_the_policy_changes_and_the_next_one_sees_it() -> None:
    desk = Desk()
    asking = desk.open()
    async with listened(asking) as (questions, tasks):
        asker = Asker()
        tasks.start_soon(asker.run, asking, elicitation())
        question = await anext(questions)

        desk.policy = NEVER

        assert await asking.elicit([elicitation()]) == ({"action": "decline"},)
        await asking.answer(question.id, Accept({"name": "Ada"}))
        await asker.over.wait()
        assert asker.result == {"action": "accept", "content": {"name": "Ada"}}


@requirement("QST-6")
async def test_a_malformed_question_is_refused_before_anybody_sees_or_stores_it() -> None:
    desk = Desk(policy=FULL)
    asking = desk.open()
    async with listened(asking):
        with pytest.raises(InvalidRequest):
            await asking.elicit([elicitation(schema={"type": "object"})])

    assert desk.store.events == []


# ---- reviewers


async def _hangs(question: Question) -> Answer:
    await anyio.sleep_forever()
    raise AssertionError


def _raises(question: Question) -> Answer:
    raise RuntimeError("out of order")


async def _cancelled_itself(question: Question) -> Answer:
    task = asyncio.ensure_future(anyio.sleep_forever())
    task.cancel()
    await task
    return Accept({"n": 1})


async def _times_out(question: Question) -> Answer:
    raise TimeoutError


def _wrong_form(question: Question) -> Answer:
    return Accept({"colour": "red"})


def _no_answer_at_all(question: Question) -> Any:
    return True


def _remembers(question: Question) -> Answer:
    return Accept({"name": "Ada"}, remember="always")


@requirement("QST-10")
@pytest.mark.parametrize(
    "reviewer", [_hangs, _raises, _times_out, _cancelled_itself, _wrong_form, _no_answer_at_all, _remembers]
)
async def test_the_failure_of_a_reviewer_is_never_consent(reviewer: Reviewer) -> None:
    desk = Desk(reviewer=reviewer)
    asking = desk.open(reviewer_patience=0.01)
    async with listened(asking) as (questions, _):
        assert await asking.elicit([elicitation()]) == ({"action": "decline"},)
        assert "waiting=0" in repr(questions)

    (declined,) = desk.store.events
    assert isinstance(declined, QuestionDeclined)
    assert declined.by == "reviewer"
    assert declined.reason


@requirement("QST-10")
async def test_a_reviewer_answers_before_people_and_without_them() -> None:
    async def reviewer(question: Question) -> Answer:
        return Accept({"name": f"{question.server}'s friend"})

    desk = Desk(reviewer=reviewer)
    (result,) = await desk.open().elicit([elicitation()])

    assert result == {"action": "accept", "content": {"name": "e's friend"}}
    (answered,) = desk.store.events
    assert isinstance(answered, QuestionAnswered)
    assert (answered.by, answered.question is not None, answered.content) == ("reviewer", True, None)


@requirement("QST-10")
async def test_a_reviewer_may_pass_a_question_on_to_people() -> None:
    asking = Desk(reviewer=lambda question: None).open()
    async with listened(asking) as (questions, tasks):
        asker = Asker()
        tasks.start_soon(asker.run, asking, elicitation())
        await asking.answer((await anext(questions)).id, Accept({"name": "Ada"}))
        await asker.over.wait()
        assert asker.result == {"action": "accept", "content": {"name": "Ada"}}


@requirement("QST-4")
async def test_what_a_reviewer_passes_on_is_declined_when_everybody_left_meanwhile() -> None:
    looking, go = anyio.Event(), anyio.Event()

    async def reviewer(question: Question) -> None:
        looking.set()
        await go.wait()

    asking = Desk(reviewer=reviewer).open()
    asker = Asker()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            async with asking.audience():
                tasks.start_soon(asker.run, asking, elicitation())
                await looking.wait()
            go.set()
    assert asker.result == {"action": "decline"}


# ---- several at once (2026-07-28)


@requirement("QST-8")
async def test_several_questions_of_one_server_are_open_together_and_answered_in_their_order() -> None:
    asking = Desk().open()
    results: list[JsonObject] = []

    async def ask() -> None:
        results.extend(await asking.elicit([elicitation(), elicitation(schema=EMPTY)]))

    async with listened(asking) as (questions, tasks):
        tasks.start_soon(ask)
        asked = [await anext(questions), await anext(questions)]
        assert len(asking.questions) == 2
        for question in reversed(asked):
            named = question.subject == asked[0].subject
            await asking.answer(question.id, Accept({"name": "Ada"}) if named else Decline())
        await anyio.wait_all_tasks_blocked()

    assert [result["action"] for result in results] == ["accept", "decline"]


@requirement("QST-6", "QST-8")
async def test_with_one_malformed_question_none_is_asked() -> None:
    desk = Desk()
    asking = desk.open()
    async with listened(asking) as (questions, _):
        with pytest.raises(InvalidRequest):
            await asking.elicit([elicitation(), elicitation(schema={})])
        assert "waiting=0" in repr(questions)
    assert desk.store.events == []


async def test_of_several_the_first_failure_is_what_the_caller_sees() -> None:
    desk = Desk()
    desk.store.at[QuestionAsked] = _broken
    asking = desk.open()
    async with listened(asking):
        with pytest.raises(StorageFailed):
            await asking.elicit([elicitation(), elicitation()])
        assert asking.questions == ()


async def _broken() -> None:
    raise StorageFailed("the disk is full")


# ---- approvals


def approval(**changes: Any) -> Approval:
    facts: dict[str, Any] = {"tool": "rm", "public_name": "mcp__disk__rm", "arguments": {"path": "/tmp/x"}}
    return Approval(**{**facts, **changes})


@requirement("APR-2")
async def test_an_approval_goes_the_same_road() -> None:
    desk = Desk()
    asking = desk.open()
    answers: list[Answer] = []

    async def ask() -> None:
        subject = approval(persist=("session",))
        settled = await asking.approve("disk", subject, message="Run rm?", policy=Policy(), turn_id="t1", call_id="c1")
        answers.append(settled.answer)

    async with listened(asking) as (questions, tasks):
        tasks.start_soon(ask)
        question = await anext(questions)
        assert (question.kind, question.server, question.call_id, question.certainty) == (
            "approval",
            "disk",
            "c1",
            "known",
        )
        await asking.answer(question.id, Accept(remember="session"))
        await anyio.wait_all_tasks_blocked()

    assert answers == [Accept(remember="session")]
    answered = desk.store.events[-1]
    assert isinstance(answered, QuestionAnswered)
    assert answered.remember == "session"


# ---- many, and broken stores


@requirement("QST-1")
async def test_a_thousand_questions_of_twenty_servers_each_get_their_own_answer() -> None:
    asking = Desk().open()
    results: dict[str, JsonObject] = {}

    async def ask(server: str, number: int) -> None:
        params = {"message": f"{server}/{number}", "requestedSchema": NAME}
        asked = Elicitation(server=server, params=params, era="handshake")
        (results[f"{server}/{number}"],) = await asking.elicit([asked])

    async with listened(asking) as (questions, tasks):
        for number in range(50):
            for server in range(20):
                tasks.start_soon(ask, f"s{server}", number)
        asked = [await anext(questions) for _ in range(1000)]
        assert len(asking.questions) == 1000
        random.Random(7).shuffle(asked)
        async with anyio.create_task_group() as answers:
            for question in asked:
                answers.start_soon(asking.answer, question.id, Accept({"name": question.message}))
        await anyio.wait_all_tasks_blocked()

    assert len(results) == 1000
    assert all(result["content"]["name"] == name for name, result in results.items())


async def test_open_questions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAXIMUM_OPEN >= 1000
    monkeypatch.setattr("interlock.questions.asking.MAXIMUM_OPEN", 2)
    desk = Desk()
    asking = desk.open()
    async with listened(asking) as (questions, tasks):
        for _ in range(2):
            tasks.start_soon(Asker().run, asking, elicitation())
            await anext(questions)
        with pytest.raises(InvalidRequest, match="more than 2 questions"):
            await asking.elicit([elicitation()])
        assert len(asking.questions) == 2


@requirement("QST-9")
async def test_a_round_that_fails_leaves_none_of_its_questions_to_the_next_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("interlock.questions.asking.MAXIMUM_OPEN", 2)
    desk = Desk()
    asking = desk.open(keeps=lambda turn_id: True)
    held = HeldRequest(server="e", whereabouts="", method="tools/call", params={}, keys=("a", "b", "c"))
    asked = [replace(elicitation(call_id="c1", turn_id="t1"), era="stateless", held=held) for _ in held.keys]
    async with listened(asking):
        with pytest.raises(InvalidRequest, match="more than 2 questions"):
            await asking.elicit(asked)
        assert asking.questions == ()
    assert desk.store.kinds.count(QuestionAsked) == desk.store.kinds.count(QuestionWithdrawn) == 2


async def test_a_question_that_cannot_be_stored_is_not_asked() -> None:
    desk = Desk()
    desk.store.at[QuestionAsked] = _broken
    asking = desk.open()
    async with listened(asking) as (questions, _):
        with pytest.raises(StorageFailed):
            await asking.elicit([elicitation()])
        assert asking.questions == ()
        assert "waiting=0" in repr(questions)


async def test_an_answer_that_cannot_be_stored_is_not_sent_and_its_giver_is_told() -> None:
    desk = Desk()
    desk.store.at[QuestionAnswered] = _broken
    asking = desk.open()
    failures: list[Exception] = []

    async def ask() -> None:
        try:
            await asking.elicit([elicitation()])
        except StorageFailed as error:
            failures.append(error)

    async with listened(asking) as (questions, tasks):
        tasks.start_soon(ask)
        question = await anext(questions)
        with pytest.raises(StorageFailed, match="disk is full"):
            await asking.answer(question.id, Accept({"name": "Ada"}))

    assert len(failures) == 1


async def test_who_listens_to_a_closed_thread_hears_the_end_at_once() -> None:
    asking = Desk().open()
    asking.close()
    with anyio.fail_after(60):
        async with asking.audience("thread") as questions:
            assert [question async for question in questions] == []


async def test_of_questions_asked_together_the_first_failure_is_told() -> None:
    class Full:
        async def record(self, event: Event) -> None:
            raise StorageFailed("the disk is full")

    numbers = iter("12")
    asking = Asking(Full(), new_id=lambda: next(numbers), policy=Policy)
    with pytest.raises(StorageFailed, match="disk is full"):
        await asking.elicit([elicitation(), elicitation()])
