"""What a host that has stopped left open in a Thread.

Owns: the ends of calls, questions and a turn that nobody runs any more (LIF-1, QST-9); which of them wait for people
and go on instead.
Never: touches what has ended, or guesses what an interrupted call did.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from interlock.history.clip import clip_text
from interlock.history.fold import ThreadState, TurnState
from interlock.history.journal import MAXIMUM_TOGETHER, Journal
from interlock.questions.rounds import held_questions, known_answer
from interlock.threads import output
from interlock.vocabulary.conversation import CallEntry, OutputEntry, TextPart
from interlock.vocabulary.event import (
    CallEnded,
    CallStarted,
    EntriesRecorded,
    Event,
    QuestionAnswered,
    QuestionAsked,
    QuestionWithdrawn,
    TurnEnded,
)
from interlock.vocabulary.item import ItemError, McpToolCallItem
from interlock.vocabulary.question import Question
from interlock.vocabulary.thread import HeldCall

SENTENCE = "the host ended while the call ran; whether it took effect is unknown"


async def close_what_was_left_open(journal: Journal, *, output_limit: int, interrupting: bool = False) -> None:
    """Record the missing ends. Called by whoever holds the Thread's claim, before anything runs.

    A great many are stored in parts, the turn's end last; a host that is killed between two leaves the rest to the
    next. Calls that wait for people stay open, with their turn: `Thread` goes on with them. If `interrupting`, they
    end too.
    """
    facts = journal.facts
    turn_id = facts.open_turn or (journal.turn_ids[-1] if journal.turn_ids else "")
    held = () if interrupting else going_on(facts)
    events = missing_ends(facts, turn_id, journal.turn, held=held, output_limit=output_limit)
    for first in range(0, len(events), MAXIMUM_TOGETHER):
        await journal.record_all(events[first : first + MAXIMUM_TOGETHER])


def missing_ends(
    facts: ThreadState,
    turn_id: str,
    turn_of: Callable[[str], TurnState | None],
    *,
    held: Sequence[HeldCall],
    output_limit: int,
) -> tuple[Event, ...]:
    """Ends of questions and calls, outputs for unanswered calls (no model takes a history without), the turn's end.

    `turn_id` is the open one or else the last. `held` are the calls that go on; with them the turn does.
    """
    if not (facts.open_questions or facts.open_calls or facts.unanswered or facts.open_turn is not None):
        return ()  # as it should be
    going_on_ids = {call.call_id for call in held}
    events: list[Event] = [
        _withdrawn(question) for question in facts.open_questions if question.id not in held_questions(held)
    ]
    events += [QuestionAsked(question=question) for call in held for question in _lost(call)]
    ended = [_interrupted(started) for started in facts.open_calls if started.item.id not in going_on_ids]
    events += ended
    if held:
        return tuple(events)
    if facts.unanswered:
        turn = turn_of(turn_id)
        items = {item.id: item for item in turn.items if isinstance(item, McpToolCallItem)} if turn is not None else {}
        items |= {end.item.id: end.item for end in ended}
        outputs = outputs_for(facts.unanswered, items.values(), output_limit)
        events.append(EntriesRecorded(turn_id=turn_id, entries=outputs))
    if facts.open_turn is not None:
        events.append(TurnEnded(turn_id=turn_id, status="interrupted", error="the host ended while the turn ran"))
    return tuple(events)


def going_on(facts: ThreadState) -> tuple[HeldCall, ...]:
    """The calls that wait for people: those of the open turn."""
    open_calls = {started.item.id for started in facts.open_calls if started.turn_id == facts.open_turn}
    return tuple(held for held in facts.held_calls if held.call_id in open_calls)


def outputs_for(calls: Sequence[CallEntry], items: Iterable[McpToolCallItem], limit: int) -> tuple[OutputEntry, ...]:
    """What the model is told of each call: the result of its item, if that is among `items`, else why there is none."""
    by_id = {item.id: item for item in items}
    return tuple(_output(call, by_id.get(call.call_id), limit) for call in calls)


def _lost(held: HeldCall) -> tuple[Question, ...]:
    """Questions that were answered, but whose answers are not stored and have not reached the server: they are open
    again (BEHAVIOUR section 10)."""
    answered = {end.question_id for end in held.settled if isinstance(end, QuestionAnswered)}
    return tuple(
        question
        for question in held.requested.questions
        if question.id in answered and known_answer(question, held) is None
    )


def _withdrawn(question: Question) -> QuestionWithdrawn:
    """Its call is gone with the process that held it; whoever still wants to know asks again."""
    return QuestionWithdrawn(question_id=question.id, server=question.server, reason="the host ended")


def _interrupted(started: CallStarted) -> CallEnded:
    error = ItemError(code="interrupted", message=SENTENCE, effect="unknown")
    item = replace(started.item, status="failed", error=error)
    return CallEnded(turn_id=started.turn_id, step_id=started.step_id, item=item, effect="unknown")


def _output(call: CallEntry, item: McpToolCallItem | None, limit: int) -> OutputEntry:
    if item is not None and item.result is not None:
        content = output.answer(item.result, limit).content
        return OutputEntry(call_id=call.call_id, content=content, success=item.status == "completed")
    text = item.error.message if item is not None and item.error is not None else SENTENCE
    return OutputEntry(call_id=call.call_id, content=(TextPart(text=clip_text(text, limit)),), success=False)
