"""Answers from a file: written down beforehand, by somebody who knew what would be asked."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from interlock.configuration import documents
from interlock.surfaces.cli.answer_file import read_answers
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.form import Form
from interlock.vocabulary.question import Accept, Answer, Approval, Cancel, Decline, Question, Subject


def question(subject: Subject | None = None, server: str = "e", message: str = "Your name?") -> Question:
    return Question(id="q1", server=server, message=message, subject=subject or Form())


RM = Approval(tool="rm", public_name="mcp__e__rm", arguments={})


def write(folder: Path, document: Any) -> Path:
    file = folder / "answers.json"
    file.write_text(json.dumps(document))
    return file


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (question(), Accept({"name": "Ada"})),
        (question(server="other"), Cancel()),
        (question(message="Colour?"), Cancel()),
        (question(RM), Accept(remember="session")),
        (question(Approval(tool="ls", public_name="x", arguments={})), Decline("no")),
    ],
)
def test_the_first_entry_that_fits_answers(tmp_path: Path, asked: Question, answer: Answer) -> None:
    answers = read_answers(
        write(
            tmp_path,
            [
                {"kind": "approval", "tool": "r*", "action": "accept", "remember": "session"},
                {"kind": "approval", "action": "decline", "reason": "no"},
                {"server": "e", "message": "*name*", "action": "accept", "content": {"name": "Ada"}},
                {"action": "cancel"},
            ],
        )
    )

    assert answers.answer(asked) == answer


def test_what_no_entry_is_about_is_declined_and_a_single_entry_needs_no_list(tmp_path: Path) -> None:
    answers = read_answers(write(tmp_path, {"server": "e", "action": "accept"}))

    assert answers.answer(question()) == Accept(None)
    assert isinstance(answers.answer(question(server="other")), Decline)


@pytest.mark.parametrize(
    "document",
    [[{"action": "perhaps"}], [{"sever": "e", "action": "accept"}], [{}], 3, [{"action": "accept", "content": []}]],
)
def test_a_malformed_file_is_refused_in_words(tmp_path: Path, document: Any) -> None:
    with pytest.raises(InvalidRequest, match="cannot use the answers"):
        read_answers(write(tmp_path, document))


def test_a_file_that_is_not_there_or_no_json_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot read the answers"):
        read_answers(tmp_path / "none.json")
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(InvalidRequest, match="not JSON"):
        read_answers(tmp_path / "x.json")


def test_a_pipe_to_which_nobody_writes_holds_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "PIPE_PATIENCE", 0.01)
    os.mkfifo(tmp_path / "answers.json")
    with pytest.raises(InvalidRequest, match=r"cannot read the answers in .*nothing more came through this pipe"):
        read_answers(tmp_path / "answers.json")
