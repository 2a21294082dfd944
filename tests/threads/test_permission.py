"""Permission: what may go out, who is asked, and what the Thread remembers."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from interlock.questions.asking import Asking, Reviewer
from interlock.threads.permission import Approvals, Permission, Wanted
from interlock.vocabulary.errors import NotPermitted
from interlock.vocabulary.event import Event
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.policy import ApprovalRule, Policy
from interlock.vocabulary.question import Accept, Answer, Approval, Cancel, Decline, Question
from interlock.vocabulary.server import ServerConfig
from interlock.vocabulary.tool import Tool, ToolAnnotations
from tests.manifest import requirement
from tests.threads.fakes import READ_ONLY, config, entry, tool

pytestmark = pytest.mark.anyio

WRITES = ToolAnnotations()
NEVER = Policy(approval="never")


@dataclass
class Store:
    events: list[Event] = field(default_factory=list)

    async def record(self, event: Event) -> None:
        await anyio.lowlevel.checkpoint()
        self.events.append(event)


@dataclass
class Room:
    """A Permission whose audience gives these answers one after another."""

    answers: list[Answer] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)
    kept: list[tuple[str, str]] = field(default_factory=list)
    store: Store = field(default_factory=Store)
    reviewer: Reviewer | None = None

    def __post_init__(self) -> None:
        numbers = count(1)
        asking = Asking(self.store, new_id=lambda: f"q{next(numbers)}", policy=Policy, reviewer=self.reviewer)
        self.permission = Permission(asking=asking)

    def keeps(self, server: str) -> bool:
        return server == "git"

    async def keep(self, server: str, tool: str) -> None:
        self.kept.append((server, tool))

    async def permit(
        self,
        what: Tool,
        policy: Policy | None = None,
        server: ServerConfig | None = None,
        *,
        approvals: Approvals = "ask",
        call_id: str = "c1",
        connector: str | None = None,
        arguments: dict[str, Any] | None = None,
        can_keep: bool = True,
    ) -> None:
        known = entry("git", what)
        item = McpToolCallItem(
            id=call_id,
            server="git",
            tool=what.name,
            public_name=known.public_name,
            arguments=arguments or {},
            connector_id=connector,
        )
        await self.permission.permit(
            Wanted(entry=known, item=item, arguments=arguments or {}, turn_id="t1"),
            policy or Policy(),
            server or config("git"),
            approvals=approvals,
            keeper=self if can_keep else None,
        )


@asynccontextmanager
async def listened(room: Room) -> AsyncIterator[None]:
    asking = room.permission.asking
    ready = anyio.Event()

    async def answer_all() -> None:
        async with asking.audience("thread") as questions:
            ready.set()
            async for question in questions:
                room.asked.append(question)
                await asking.answer(question.id, room.answers.pop(0))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer_all)
            await ready.wait()
            yield
            tasks.cancel_scope.cancel()


async def refused(permit: Callable[[], Any]) -> str:
    with pytest.raises(NotPermitted) as error:
        await permit()
    return error.value.message


async def test_what_only_reads_is_allowed_without_asking_and_without_a_fact() -> None:
    room = Room()
    async with listened(room):
        await room.permit(tool("log", READ_ONLY))

    assert (room.asked, room.store.events) == ([], [])


@requirement("APR-2", "APR-3")
async def test_people_are_told_what_would_be_run_and_why_they_are_asked() -> None:
    room = Room(answers=[Accept()])
    async with listened(room):
        await room.permit(tool("commit", WRITES), arguments={"message": "x"})

    (question,) = room.asked
    assert (question.server, question.call_id, question.turn_id, question.certainty) == ("git", "c1", "t1", "known")
    assert question.message == "Allow server 'git' to run its tool 'commit'?"
    subject = question.subject
    assert isinstance(subject, Approval)
    assert (subject.tool, subject.public_name, subject.arguments) == ("commit", "mcp__git__commit", {"message": "x"})
    assert subject.persist == ("session", "always")
    assert subject.reason == "the tool does not say what it may change"


@requirement("APR-3")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Decline(), "the user declined it"),
        (Decline("not on a Friday"), "the user declined it: not on a Friday"),
        (Cancel(), "the user dismissed the question"),
    ],
)
async def test_a_no_of_people_is_told_in_words(answer: Answer, words: str) -> None:
    room = Room(answers=[answer])
    async with listened(room):
        message = await refused(lambda: room.permit(tool("commit", WRITES)))

    assert message == f"tool 'commit' of server 'git' was not called: {words}"


@requirement("QST-10")
async def test_a_no_of_the_reviewer_is_told_as_its_own() -> None:
    room = Room(reviewer=lambda question: Decline("too risky"))

    assert "the application's reviewer declined it: too risky" in await refused(
        lambda: room.permit(tool("commit", WRITES))
    )


@requirement("APR-1", "QST-4")
@pytest.mark.parametrize(
    ("policy", "approvals", "words"),
    [
        (Policy(), "ask", "nobody is listening"),
        (Policy(), "deny", "nobody can be asked"),
        (NEVER, "ask", "approval_policy is 'never'"),
        (NEVER, "allow", "approval_policy is 'never'"),
    ],
)
async def test_a_refusal_names_the_setting_that_would_let_the_call_through(
    policy: Policy, approvals: Approvals, words: str
) -> None:
    message = await refused(lambda: Room().permit(tool("commit", WRITES), policy, approvals=approvals))

    assert words in message
    assert "set approval_mode = 'approve' in [mcp_servers.git.tools.commit]" in message


@requirement("APR-1")
async def test_a_mode_for_one_tool_holds_for_that_tool_alone() -> None:
    server = config("git", tool_approval_modes={"commit": "approve"})
    room = Room()

    await room.permit(tool("commit", WRITES), server=server)
    await refused(lambda: room.permit(tool("push", WRITES), server=server))


async def test_an_application_may_let_everything_pass_that_would_have_to_be_asked() -> None:
    await Room().permit(tool("commit", WRITES), approvals="allow")


@requirement("APR-4")
async def test_a_rule_that_denies_is_not_talked_over_by_anybody() -> None:
    rules = Policy(approval_rules=(ApprovalRule(action="deny", tool="push", reason="never push"),))
    room = Room(answers=[Accept()])
    async with listened(room):
        message = await refused(lambda: room.permit(tool("push", READ_ONLY), rules, approvals="allow"))

    assert "approval rule 1 says deny: never push" in message
    assert room.asked == []


@requirement("APR-2")
async def test_an_approval_for_once_is_asked_again_and_one_for_the_session_is_not() -> None:
    room = Room(answers=[Accept(), Accept(remember="session")])
    async with listened(room):
        for call_id in ("c1", "c2", "c3", "c4"):
            await room.permit(tool("commit", WRITES), call_id=call_id)

    assert [question.call_id for question in room.asked] == ["c1", "c2"]
    assert room.kept == []


@requirement("APR-2")
async def test_an_approval_for_always_is_written_down_and_holds_at_once() -> None:
    room = Room(answers=[Accept(remember="always")])
    async with listened(room):
        for _ in range(2):
            await room.permit(tool("commit", WRITES))

    assert (len(room.asked), room.kept) == (1, [("git", "commit")])


@requirement("APR-2")
async def test_always_is_offered_only_where_it_can_be_written_down() -> None:
    room = Room(answers=[Accept()])
    async with listened(room):
        await room.permit(tool("commit", WRITES), can_keep=False)

    subject = room.asked[0].subject
    assert isinstance(subject, Approval)
    assert subject.persist == ("session",)


@requirement("APR-2")
async def test_an_approval_covers_neither_another_connector_nor_what_the_tool_becomes() -> None:
    room = Room(answers=[Accept(remember="session"), Decline(), Decline(), Decline()])
    changed = ToolAnnotations(destructive_hint=True)
    async with listened(room):
        await room.permit(tool("commit", WRITES), connector="c")
        await room.permit(tool("commit", WRITES), connector="c")
        await refused(lambda: room.permit(tool("commit", WRITES), connector="d"))
        await refused(lambda: room.permit(tool("commit", changed), connector="c"))
        await refused(lambda: room.permit(tool("push", WRITES), connector="c"))

    assert len(room.asked) == 4


@requirement("APR-2")
@pytest.mark.parametrize("mode", ["prompt", "writes"])
async def test_the_careful_modes_offer_no_memory(mode: Any) -> None:
    room = Room(answers=[Accept(), Accept()])
    async with listened(room):
        for _ in range(2):
            await room.permit(tool("commit", WRITES), server=config("git", default_tools_approval_mode=mode))

    assert [question.subject.persist for question in room.asked if isinstance(question.subject, Approval)] == [(), ()]
