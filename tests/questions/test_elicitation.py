"""Elicitations on the wire: what servers send, and what they get."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.questions.elicitation import LONGEST_MESSAGE, read_elicitation, refuse_unfit, result_of
from interlock.questions.forms import schema_of
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.form import BooleanField, Form, NumberField, TextField
from interlock.vocabulary.question import (
    Accept,
    Answer,
    Approval,
    Cancel,
    Decline,
    Elicitation,
    Link,
    Question,
    Remember,
    Subject,
)
from interlock.vocabulary.server import Era
from tests.manifest import requirement

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "vectors" / "elicitation_schemas.json").read_text(encoding="utf-8")
)
EMPTY = {"type": "object", "properties": {}}
LINK = Link(url="https://example.com/", host="example.com")


def elicitation(era: Era = "handshake", **params: Any) -> Elicitation:
    return Elicitation(server="e", params=params, era=era)


def question(subject: Subject) -> Question:
    return Question(id="q1", server="e", message="?", subject=subject)


def approval(*persist: Remember) -> Approval:
    return Approval(tool="rm", public_name="mcp__disk__rm", arguments={}, persist=persist)


def name_of(vector: dict[str, Any]) -> str:
    return str(vector["server_params"].get("message", "no message"))


REFUSED = [vector for vector in VECTORS if "error" in vector["server_got"] and vector["client_params"] is None]
SHOWN = [vector for vector in VECTORS if "requestedSchema" in (vector["client_params"] or {})]


@requirement("QST-6")
@pytest.mark.parametrize("vector", REFUSED, ids=name_of)
def test_what_the_recorded_program_refused_is_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        read_elicitation(elicitation(**vector["server_params"]))


@requirement("QST-6", "QST-12")
@pytest.mark.parametrize("vector", SHOWN, ids=name_of)
def test_what_the_recorded_program_showed_is_shown_alike(vector: dict[str, Any]) -> None:
    shown = vector["client_params"]

    asked = read_elicitation(elicitation(**vector["server_params"]))

    assert isinstance(asked.subject, Form)
    assert asked.message == shown["message"]
    assert schema_of(asked.subject) == shown["requestedSchema"]
    assert asked.meta == vector["server_params"].get("_meta")


def test_the_vectors_are_all_looked_at() -> None:
    """One recorded request was neither shown nor refused (a description beside the schema's type: cancelled by the
    recorded program alone), and one was a URL question without its id, recorded beside another's parameters."""
    rest = [vector for vector in VECTORS if vector not in REFUSED and vector not in SHOWN]

    assert sorted(map(name_of, rest)) == ["Please sign in", "desc"]
    for vector in rest:
        if vector["server_params"].get("mode") != "url":
            read_elicitation(elicitation(**vector["server_params"]))


@requirement("QST-7", "QST-8")
def test_a_url_question_needs_an_id_of_its_own_only_in_the_older_era() -> None:
    params: dict[str, Any] = {"mode": "url", "message": "Sign in", "url": "https://example.com/auth"}

    with pytest.raises(InvalidRequest, match="elicitationId"):
        read_elicitation(elicitation(**params))
    assert read_elicitation(elicitation("stateless", **params)).subject == Link(
        url="https://example.com/auth", host="example.com"
    )
    asked = read_elicitation(elicitation(**params, elicitationId="el-1"))
    assert asked.subject == Link(url="https://example.com/auth", host="example.com", elicitation_id="el-1")


@requirement("QST-6")
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"message": "?"},
        {"requestedSchema": EMPTY},
        {"message": 7, "requestedSchema": EMPTY},
        {"message": "?", "requestedSchema": EMPTY, "mode": "hologram"},
        {"message": "?", "requestedSchema": EMPTY, "mode": None},
        {"message": "?", "requestedSchema": EMPTY, "mode": ["form"]},
        {"message": "?", "mode": "url", "elicitationId": "1"},
        {"message": "?", "mode": "url", "elicitationId": "1", "url": "http://example.com/"},
        {"message": "x" * (LONGEST_MESSAGE + 1), "requestedSchema": EMPTY},
    ],
)
def test_a_malformed_request_or_an_unknown_mode_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        read_elicitation(elicitation(**params))


@requirement("QST-12")
@pytest.mark.parametrize(
    ("subject", "answer", "result"),
    [
        (Form(), Accept(), {"action": "accept", "content": {}}),
        (Form(), Accept({"n": 4}), {"action": "accept", "content": {"n": 4}}),
        (Form(), Accept({}, meta={"cm": 1}), {"action": "accept", "content": {}, "_meta": {"cm": 1}}),
        (LINK, Accept(), {"action": "accept"}),
        (LINK, Accept({}), {"action": "accept"}),
        (Form(), Decline("no"), {"action": "decline"}),
        (Form(), Decline(meta={"a": 1}), {"action": "decline", "_meta": {"a": 1}}),
        (LINK, Cancel(), {"action": "cancel"}),
        (LINK, Cancel(meta={}), {"action": "cancel", "_meta": {}}),
    ],
)
def test_the_server_gets_the_answer_and_nothing_else(
    subject: Form | Link, answer: Answer, result: dict[str, Any]
) -> None:
    assert result_of(subject, answer) == result


FORM = Form(
    fields=(
        TextField(name="name", required=True, min_length=1),
        NumberField(name="age", integer=True, default=3),
        BooleanField(name="ok", default=True),
    )
)


@requirement("QST-6")
def test_a_wrong_answer_is_told_to_the_answerer_with_the_field() -> None:
    with pytest.raises(InvalidRequest, match="'age' must be a whole number") as refused:
        refuse_unfit(question(FORM), Accept({"name": "Ada", "age": "old"}))

    assert [problem.field for problem in refused.value.facts["problems"]] == ["age"]


@requirement("QST-6")
def test_missing_content_is_an_empty_object_and_defaults_are_not_filled_in() -> None:
    with pytest.raises(InvalidRequest, match="'name' is required"):
        refuse_unfit(question(FORM), Accept())
    refuse_unfit(question(Form(fields=FORM.fields[1:])), Accept())


@requirement("QST-10")
@pytest.mark.parametrize("subject", [Form(), LINK, approval()])
def test_content_for_a_form_that_was_not_asked_is_refused(subject: Subject) -> None:
    with pytest.raises(InvalidRequest):
        refuse_unfit(question(subject), Accept({"name": "Ada"}))


@requirement("APR-2")
def test_an_answer_holds_only_as_long_as_was_offered() -> None:
    refuse_unfit(question(approval("session", "always")), Accept(remember="always"))
    refuse_unfit(question(approval("session")), Accept(remember="session"))
    for subject in (approval(), approval("session"), Form(), LINK):
        with pytest.raises(InvalidRequest, match="cannot hold for 'always'"):
            refuse_unfit(question(subject), Accept(remember="always"))


def test_content_that_is_no_object_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        refuse_unfit(question(Form()), Accept(["a"]))  # type: ignore[arg-type] # what an application may pass


@pytest.mark.parametrize("answer", [Decline(), Cancel()])
def test_no_and_cancel_always_fit(answer: Answer) -> None:
    refuse_unfit(question(FORM), answer)
