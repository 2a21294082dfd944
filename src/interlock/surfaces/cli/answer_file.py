"""Answers that were written down before anybody asked: `--answer FILE`, for scripts.

Owns: the shape of the file, and which of its answers a question gets.
Never: answers what no entry is about; that is declined.

    [{"server": "e", "message": "*name*", "action": "accept", "content": {"name": "Ada"}},
     {"kind": "approval", "tool": "read_*", "action": "accept", "remember": "session"},
     {"action": "decline"}]

The first entry that fits answers, every time. `server`, `message` and `tool` are shell patterns; `kind` is
elicitation-form, elicitation-url or approval; `message` of a decline is `reason`.
"""

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from interlock.configuration.documents import read_bytes
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.question import (
    Accept,
    Answer,
    Approval,
    Cancel,
    Decline,
    Question,
    QuestionKind,
    Remember,
)


class Entry(BaseModel):
    """One answer with what it is about."""

    model_config = ConfigDict(strict=True, extra="forbid")

    server: str = "*"
    message: str = "*"
    tool: str | None = None
    kind: QuestionKind | None = None
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None
    remember: Remember = "once"
    reason: str | None = None

    def fits(self, question: Question) -> bool:
        if self.kind not in (None, question.kind):
            return False
        if self.tool is not None and not _is_about(question, self.tool):
            return False
        return fnmatchcase(question.server, self.server) and fnmatchcase(question.message, self.message)

    @property
    def answer(self) -> Answer:
        match self.action:
            case "accept":
                return Accept(self.content, remember=self.remember)
            case "decline":
                return Decline(self.reason)
            case "cancel":
                return Cancel()


@dataclass(frozen=True, slots=True)
class AnswerFile:
    entries: tuple[Entry, ...]

    def answer(self, question: Question) -> Answer:
        """The written answer, or a decline."""
        return next((entry.answer for entry in self.entries if entry.fits(question)), Decline("no answer was written"))


def read_answers(file: Path) -> AnswerFile:
    """The answers of a file.

    Raises:
        InvalidRequest: it cannot be read, or an entry is malformed; the sentence names it.
    """
    try:
        document = json.loads(read_bytes(file, "the answers in"))
        entries = TypeAdapter(list[Entry]).validate_python(document if isinstance(document, list) else [document])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidRequest(
            f"cannot use the answers in {file}: {place}: {first['msg'].lower()}; correct the file"
        ) from error
    except ValueError as error:
        raise InvalidRequest(
            f"cannot read the answers in {file}: it is not JSON ({error}); correct the file"
        ) from error
    return AnswerFile(tuple(entries))


def _is_about(question: Question, pattern: str) -> bool:
    return isinstance(question.subject, Approval) and fnmatchcase(question.subject.tool, pattern)
