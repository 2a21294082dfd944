"""`interlock threads …`: conversations as they are stored.

Owns: finding a thread by the beginning of its id, printing what its events say.
Never: opens a thread for writing, or makes a store that is not there.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import Any, Protocol

from interlock.history.fold import fold
from interlock.history.shown import ShownTools
from interlock.questions.rounds import unknown_questions
from interlock.stores import open_store
from interlock.surfaces.cli.event_json import event_json
from interlock.surfaces.cli.opening import is_made, kept_in
from interlock.surfaces.cli.output import Table, counted, one_line, print_json, print_table, print_text, say, time_text
from interlock.threads.recovery import going_on
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    StepCaptured,
    StoredEvent,
    ThreadRecord,
)
from interlock.vocabulary.item import AgentMessageItem, McpToolCallItem
from interlock.vocabulary.ports import EventStore
from interlock.vocabulary.question import Question
from interlock.vocabulary.thread import ThreadState, TurnState

SEARCHED = 1000
"""Threads of one page, when an id is looked for by its beginning."""

WAITS, ANSWERED = "waits for an answer", "was answered, and has still to be told"
"""What is said of a turn whose calls wait for people, and of one whose answers were not sent any more."""


async def show_one(thread: str, as_json: bool, closing: AsyncExitStack) -> None:
    store = await _store(closing)
    if store is None:
        raise InvalidRequest(f"there is no thread {thread!r}; nothing is stored yet")
    record = await find_thread(store.threads, thread)
    events = [event async for event in store.read(record.thread_id)]
    if as_json:
        print_json({"thread": _record(record), "events": [event_json(event) for event in events]})
        return
    say(f"thread {record.thread_id}, {counted(record.turns, 'turn')}, updated {time_text(record.updated_at)}")
    _print_catalogue(events)
    _print_calls(events)
    state = fold(record.thread_id, events)
    waiting, questions = going_on(state), unanswered(state)
    _print_end(state.turns[-1] if state.turns else None, waits=bool(waiting), asked=bool(questions))
    print_open(questions)


async def _store(closing: AsyncExitStack) -> EventStore | None:
    """The store; None when nothing was ever stored there."""
    place = kept_in()
    return await closing.enter_async_context(open_store(place)) if is_made(place) else None


class Lists(Protocol):
    """Lists stored threads, as a store or a host does."""

    async def __call__(
        self, *, limit: int = 50, before: int | None = None, before_id: str | None = None
    ) -> tuple[ThreadRecord, ...]: ...


async def find_thread(threads: Lists, beginning: str) -> ThreadRecord:
    """The thread whose id begins so, among all that are stored. InvalidRequest: there is none, or several."""
    matches: list[ThreadRecord] = []
    page = await threads(limit=SEARCHED) if beginning else ()
    while page and len(matches) < 2:
        matches += [record for record in page if record.thread_id.startswith(beginning)]
        exact = next((record for record in matches if record.thread_id == beginning), None)
        if exact is not None:
            return exact
        page = await threads(limit=SEARCHED, before=page[-1].updated_at, before_id=page[-1].thread_id)
    if len(matches) > 1:
        raise InvalidRequest(f"{beginning!r} begins {len(matches)} ids; write more of it")
    if not matches:
        raise InvalidRequest(f"there is no thread {beginning!r}; `interlock threads list` shows them")
    return matches[0]


def _print_catalogue(events: Sequence[StoredEvent]) -> None:
    """What the model saw, each time that it changed."""
    tools, shown = ShownTools(), None
    for stored in events:
        step = stored.event
        if isinstance(step, StepCaptured) and (names := tools.take(step)) is not None and names != shown:
            shown = names
            pending = f"; still starting: {', '.join(step.pending)}" if step.pending else ""
            print_text(f"the model saw {counted(len(shown), 'tool')} (revision {step.revision}){one_line(pending)}:")
            for name in shown:
                print_text(f"  {name}")


def _print_calls(events: Sequence[StoredEvent]) -> None:
    calls: dict[str, tuple[int, McpToolCallItem]] = {}
    for stored in events:
        match stored.event:
            case CallStarted(item=item):
                calls[item.id] = (stored.at, item)
            case CallEnded(item=item):
                calls[item.id] = (calls.get(item.id, (stored.at, item))[0], item)
            case _:
                pass
    rows = [
        (item.id, item.server, item.tool, time_text(at), _duration(item), _outcome(item)) for at, item in calls.values()
    ]
    headings = ("call", "server", "tool", "began", "took", "outcome")
    print_table(Table(headings, rows, "no tool was called", names=headings[:3]))


def _outcome(item: McpToolCallItem) -> str:
    status = item.status.replace("_", " ")
    if item.error is not None:
        return f"{status}: {item.error.message}"
    if item.result is not None and item.result.is_error:
        return f"{status}: the tool answered with an error"
    return status


def unanswered(state: ThreadState) -> tuple[Question, ...]:
    """The open questions, and those whose answers are not stored and may not have been sent: they are asked again."""
    lost = [question for held in going_on(state) for question in unknown_questions(held)]
    questions = {question.id: question for question in (*state.open_questions, *lost)}
    return tuple(questions.values())


def print_open(questions: Sequence[Question]) -> None:
    """The questions that have no answer yet, a line each."""
    for question in questions:
        print_text(one_line(f"still open: {question.server} asks: {question.message}"))


def _print_end(turn: TurnState | None, *, waits: bool, asked: bool) -> None:
    """The last message, and why there is no more where the turn did not end as it should.

    `waits`: a call of it waits for people, or for its answers to be sent; `asked`: something is still to be answered.
    """
    agents = [item.text for item in turn.items if isinstance(item, AgentMessageItem)] if turn is not None else []
    message = turn.last_message if turn is not None else None
    print_text(message or (agents[-1] if agents else "(no message)"))
    if turn is not None and turn.status == "failed":
        say(f"the last turn failed: {turn.error or 'no reason was given'}")
    elif turn is not None and turn.status == "interrupted":
        say("the last turn was interrupted")
    elif turn is not None and turn.status == "in_progress":
        match waits, asked:
            case True, True:
                what, then = WAITS, "`interlock exec --thread` answers it"
            case True, False:
                what, then = ANSWERED, "`interlock exec --thread` goes on with it"
            case _:
                what, then = "has not ended", "`interlock threads resume` ends it"
        say(f"the last turn {what}; if its host is gone, {then}")


def _record(record: ThreadRecord) -> dict[str, Any]:
    return asdict(record)


def _duration(item: McpToolCallItem) -> str:
    return "-" if item.duration is None else f"{item.duration} ms"
