"""From a server's `elicitation/create` to what people see, and from their answer to the server's result.

Owns: the shapes of both on the wire, in both eras (specification: client/elicitation); what an answer must be like.
Never: waits, decides who answers, or shows the server's request id (QST-1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from interlock.questions.checks import FieldProblem, answer_problems
from interlock.questions.forms import read_form
from interlock.questions.urls import read_link
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.form import Form
from interlock.vocabulary.json import JsonObject, JsonValue, excerpt
from interlock.vocabulary.question import Accept, Answer, Approval, Cancel, Decline, Elicitation, Link, Question

LONGEST_MESSAGE = 64 * 1024
"""Characters that a server may put before a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A well-formed request."""

    message: str
    subject: Form | Link
    meta: JsonObject | None


def read_elicitation(elicitation: Elicitation) -> Asked:
    """What the server asks.

    Raises:
        InvalidRequest: it is malformed, of an unknown mode, or outside the specification; to be answered as a
            protocol error, and not shown to anybody (QST-6).
    """
    params = elicitation.params
    message, meta = params.get("message"), params.get("_meta")
    if not isinstance(message, str):
        raise InvalidRequest("elicitation/create must have a 'message', a text")
    if len(message) > LONGEST_MESSAGE:
        raise InvalidRequest(f"the message of elicitation/create must have at most {LONGEST_MESSAGE} characters")
    return Asked(
        message=message,
        subject=_subject(params, identified=elicitation.era == "handshake"),
        meta=meta if isinstance(meta, Mapping) else None,
    )


def _subject(params: JsonObject, *, identified: bool) -> Form | Link:
    """`identified`: up to 2025-11-25 a URL question must have an id of its own."""
    match params.get("mode", "form"):
        case "form":
            return read_form(params.get("requestedSchema"))
        case "url":
            return _link(params, identified)
        case other:
            raise InvalidRequest(f"elicitation/create has the mode {excerpt(other, 50)}; known are 'form' and 'url'")


def _link(params: JsonObject, identified: bool) -> Link:
    url, elicitation_id = params.get("url"), params.get("elicitationId")
    if not isinstance(url, str):
        raise InvalidRequest("elicitation/create in mode 'url' must have a 'url', a text")
    if not isinstance(elicitation_id, str):
        if identified:
            raise InvalidRequest("elicitation/create in mode 'url' must have an 'elicitationId', a text")
        elicitation_id = None
    return read_link(url, elicitation_id=elicitation_id)


def refuse_unfit(question: Question, answer: Answer) -> None:
    """Return if `answer` can be given to `question`.

    Raises:
        InvalidRequest: it cannot; `facts["problems"]` are the FieldProblems of a form.
    """
    if isinstance(answer, Accept):
        problems = _problems(question, answer)
        if problems:
            told = "; ".join(f"{problem.field!r} {problem.message}" for problem in problems[:10])
            raise InvalidRequest(
                f"the answer to question {question.id!r} of server {question.server!r} does not fit its form: {told}",
                question_id=question.id,
                problems=problems,
            )
        _refuse_memory(question, answer)


def _problems(question: Question, answer: Accept) -> tuple[FieldProblem, ...]:
    content: JsonValue = {} if answer.content is None else answer.content
    if not isinstance(content, Mapping):
        return (FieldProblem(field="content", message="must be an object"),)
    # What is no form has no fields either, so content that answers another question is refused here.
    return answer_problems(question.subject if isinstance(question.subject, Form) else Form(), content)


def _refuse_memory(question: Question, answer: Accept) -> None:
    offered = question.subject.persist if isinstance(question.subject, Approval) else ()
    if answer.remember != "once" and answer.remember not in offered:
        raise InvalidRequest(
            f"the answer to question {question.id!r} of server {question.server!r} cannot hold for "
            f"{answer.remember!r}: only {', '.join(('once', *offered))} is offered",
            question_id=question.id,
        )


def result_of(subject: Form | Link, answer: Answer) -> JsonObject:
    """What the server gets. Yes to a URL means consent, not completion, and has no content."""
    match answer:
        case Accept():
            content = {} if answer.content is None else dict(answer.content)
            result: dict[str, Any] = {"action": "accept"} | ({"content": content} if isinstance(subject, Form) else {})
        case Decline():
            result = {"action": "decline"}
        case Cancel():
            result = {"action": "cancel"}
        case _:
            assert_never(answer)
    return result if answer.meta is None else {**result, "_meta": dict(answer.meta)}
