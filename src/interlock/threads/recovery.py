"""What a killed host left open in a Thread.

Owns: the ends of calls, questions and a turn that nobody runs any more (LIF-1, QST-9).
Never: touches what has ended, or guesses what an interrupted call did.
"""

from dataclasses import replace

from interlock.history.fold import ThreadState
from interlock.history.journal import Journal
from interlock.threads import output
from interlock.vocabulary.conversation import CallEntry, OutputEntry, TextPart
from interlock.vocabulary.event import CallEnded, CallStarted, EntriesRecorded, Event, QuestionWithdrawn, TurnEnded
from interlock.vocabulary.item import ItemError, McpToolCallItem
from interlock.vocabulary.question import Question

SENTENCE = "the host ended while the call ran; whether it took effect is unknown"


async def close_what_was_left_open(journal: Journal, *, output_limit: int) -> None:
    """Record the missing ends, all or none. Called by whoever holds the Thread's claim, before anything runs."""
    facts = journal.facts
    if not (facts.open_questions or facts.open_calls or facts.unanswered or facts.open_turn is not None):
        return  # as it should be; looking at all turns of a long Thread takes its time
    events = missing_ends(journal.state, output_limit=output_limit)
    if events:
        await journal.record_all(events)


def missing_ends(state: ThreadState, *, output_limit: int) -> tuple[Event, ...]:
    """Ends of questions and calls, outputs for unanswered calls (no model takes a history without), the turn's end."""
    events: list[Event] = [_withdrawn(question) for question in state.open_questions]
    events += [_interrupted(started) for started in state.open_calls]
    turn_id = state.open_turn or (state.turns[-1].turn_id if state.turns else "")
    if state.unanswered:
        ended = {item.id: item for turn in state.turns for item in turn.items if isinstance(item, McpToolCallItem)}
        outputs = tuple(_output(call, ended.get(call.call_id), output_limit) for call in state.unanswered)
        events.append(EntriesRecorded(turn_id=turn_id, entries=outputs))
    if state.open_turn is not None:
        events.append(TurnEnded(turn_id=turn_id, status="interrupted", error="the host ended while the turn ran"))
    return tuple(events)


def _withdrawn(question: Question) -> QuestionWithdrawn:
    """Its call is gone with the process that held it; whoever still wants to know asks again."""
    return QuestionWithdrawn(question_id=question.id, server=question.server, reason="the host ended")


def _interrupted(started: CallStarted) -> CallEnded:
    error = ItemError(code="interrupted", message=SENTENCE, effect="unknown")
    item = replace(started.item, status="failed", error=error)
    return CallEnded(turn_id=started.turn_id, step_id=started.step_id, item=item, effect="unknown")


def _output(call: CallEntry, item: McpToolCallItem | None, limit: int) -> OutputEntry:
    """What the model is told: the result when the call had ended, else that it was interrupted."""
    if item is not None and item.result is not None:
        content = output.answer(item.result, limit).content
        return OutputEntry(call_id=call.call_id, content=content, success=item.status == "completed")
    text = item.error.message if item is not None and item.error is not None else SENTENCE
    return OutputEntry(call_id=call.call_id, content=(TextPart(text=text),), success=False)
