"""server-everything asks: forms with every kind of field, addresses, approvals."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from interlock import Accept, Cancel, Decline, Host, ServerConfig, Thread
from interlock.threads.step import CallResult
from interlock.vocabulary.form import Form, MultiSelectField, SelectField
from interlock.vocabulary.question import Answer, Approval, Link, Question
from tests.manifest import requirement
from tests.real.servers import everything_over_http, everything_server, needs_everything
from tests.real.test_library import host

pytestmark = [pytest.mark.anyio, needs_everything]

FORM_TOOL = "mcp__everything__trigger-elicitation-request"
URL_TOOL = "mcp__everything__trigger-url-elicitation"


def filled_in(form: Form) -> dict[str, Any]:
    """What a person would send who takes every default, the last choice of each list, and types the rest."""
    content: dict[str, Any] = {}
    for field in form.fields:
        match field:
            case SelectField():
                content[field.name] = field.choices[-1].value
            case MultiSelectField():
                content[field.name] = [choice.value for choice in field.choices[:2]]
            case _ if field.default is not None:
                content[field.name] = field.default
    typed = {"name": "Ada", "check": True, "email": "ada@example.com", "homepage": "https://example.com/"}
    return {**content, **typed, "birthdate": "1815-12-10"}


async def ask(thread: Thread, tool: str, arguments: dict[str, Any], answer: Callable[[Question], Answer]) -> CallResult:
    results: list[CallResult] = []
    with anyio.fail_after(60):
        async with thread.audience("thread") as questions, thread.step() as step, anyio.create_task_group() as tasks:

            async def call() -> None:
                results.append(await step.call(f"call-{len(thread.items)}", tool, arguments))
                tasks.cancel_scope.cancel()

            tasks.start_soon(call)
            async for question in questions:
                await thread.answer(question.id, answer(question))
    return results[0]


def raw_result(result: CallResult) -> Any:
    return json.loads(result.text.split("Raw result: ")[1])


@requirement("QST-1", "QST-6", "QST-8")
async def test_every_kind_of_field_reaches_a_person_and_its_answer_the_server(tmp_path: Path) -> None:
    async with host(tmp_path, everything_server()) as opened:
        thread = await opened.start_thread()
        seen: list[Question] = []

        def answer(question: Question) -> Answer:
            seen.append(question)
            assert isinstance(question.subject, Form)
            return Accept(filled_in(question.subject))

        result = await ask(thread, FORM_TOOL, {}, answer)

    (question,) = seen
    assert isinstance(question.subject, Form)
    assert (question.certainty, question.subject.fields[0].required) == ("only_call", True)
    assert {type(field).__name__ for field in question.subject.fields} == {
        "TextField",
        "BooleanField",
        "NumberField",
        "SelectField",
        "MultiSelectField",
    }
    assert raw_result(result) == {"action": "accept", "content": filled_in(question.subject)}


@requirement("QST-8")
@pytest.mark.parametrize(("answer", "action"), [(Decline(), "decline"), (Cancel(), "cancel")])
async def test_no_and_cancel_reach_it_too(tmp_path: Path, answer: Answer, action: str) -> None:
    async with host(tmp_path, everything_server()) as opened:
        thread = await opened.start_thread()
        result = await ask(thread, FORM_TOOL, {}, lambda question: answer)

    assert raw_result(result) == {"action": action}


@requirement("QST-7", "APR-2")
@pytest.mark.parametrize("error_path", [False, True])
async def test_an_address_is_asked_about_after_its_call_was_approved(tmp_path: Path, error_path: bool) -> None:
    async with host(tmp_path, everything_server()) as opened:
        thread = await opened.start_thread()
        seen: list[Question] = []

        def answer(question: Question) -> Answer:
            seen.append(question)
            return Accept()

        arguments = {"url": "https://example.com/login", "errorPath": error_path}
        result = await ask(thread, URL_TOOL, arguments, answer)

    kinds = [type(question.subject) for question in seen]
    hosts = [question.subject.host for question in seen if isinstance(question.subject, Link)]
    assert kinds == [Approval, Link] + [Link] * error_path
    assert hosts == (["modelcontextprotocol.io"] if error_path else []) + ["example.com"]
    assert raw_result(result) == {"action": "accept"}


@requirement("QST-11")
async def test_over_http_the_question_names_its_call(tmp_path: Path) -> None:
    async with everything_over_http() as config, host(tmp_path, config) as opened:
        thread = await opened.start_thread()
        seen: list[Question] = []

        def answer(question: Question) -> Answer:
            seen.append(question)
            return Decline()

        await ask(thread, FORM_TOOL, {}, answer)

    assert [(question.call_id, question.certainty) for question in seen] == [("call-0", "known")]


@requirement("QST-4", "CON-12")
async def test_a_host_that_offers_no_questions_is_not_offered_the_tools_that_ask(tmp_path: Path) -> None:
    server: ServerConfig = everything_server()
    async with Host({"everything": server}, store=tmp_path / "s.db", grace=30, elicitation=False) as opened:
        thread = await opened.start_thread()
        async with thread.step() as step:
            assert FORM_TOOL not in {spec.name for spec in step.tools}
