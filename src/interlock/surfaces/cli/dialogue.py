"""A question, asked line by line.

Owns: the order in which a person is asked: what it is, each field, a last look before it is sent.
Never: draws or reads keys (a Terminal does), accepts by itself, or opens an address.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol, assert_never

from interlock.surfaces.cli import question_text
from interlock.surfaces.cli.output import one_line
from interlock.vocabulary.form import Field, Form, TextField
from interlock.vocabulary.question import Accept, Answer, Approval, Cancel, Decline, Link, Question, Remember


class NotAnswered(Exception):
    """The person dismissed the question (Ctrl-C)."""


class Refused(Exception):
    """The person said no (Ctrl-D)."""


class Check(Protocol):
    def __call__(self, text: str) -> str | None:
        """What is wrong with a typed line; None: nothing."""
        ...


class Terminal(Protocol):
    """Where a person sits."""

    def show(self, lines: Sequence[str]) -> None: ...

    async def line(self, label: str, *, default: str, check: Check, words: Sequence[str]) -> str:
        """One line that passes `check`. `words` complete it. Raises NotAnswered or Refused."""
        ...


HOW_TO_LEAVE: Final = "  (Ctrl-D declines, Ctrl-C dismisses the question)"

APPROVE: Final[dict[str, Remember]] = {"yes": "once", "session": "session", "always": "always"}
APPROVE_WORDS: Final[dict[Remember, str]] = {
    "once": "yes      this once",
    "session": "session  and further calls of this tool in this session",
    "always": "always   and it is written into your configuration",
}


async def ask(terminal: Terminal, question: Question) -> Answer:
    """What the person at `terminal` answers."""
    terminal.show(question_text.lines_of(question))
    try:
        match question.subject:
            case Form():
                return await _ask_form(terminal, question.subject)
            case Link():
                return await _ask_link(terminal)
            case Approval():
                return await _ask_approval(terminal, question.subject)
            case _:
                assert_never(question.subject)
    except Refused:
        return Decline()
    except NotAnswered:
        return Cancel()


async def _ask_form(terminal: Terminal, form: Form) -> Answer:
    if form.empty:
        word = await _word(terminal, "accept, decline or cancel?", ("accept", "decline", "cancel"))
        return _plain(word, {})
    terminal.show([HOW_TO_LEAVE])
    fields = form.fields + tuple(_unknown(name) for name in form.undeclared)
    content: dict[str, Any] = {}
    while True:
        content = await _fill_in(terminal, fields, content)
        terminal.show(["  You are about to send:", *_summary(fields, content)])
        word = await _word(terminal, "send, edit, decline or cancel?", ("send", "edit", "decline", "cancel"))
        if word != "edit":
            return _plain(word, content)


def _unknown(name: str) -> Field:
    return TextField(name=name, required=True, description="the server requires this and does not say what it is")


async def _fill_in(terminal: Terminal, fields: tuple[Field, ...], before: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for field in fields:
        terminal.show(question_text.field_lines(field))
        default = question_text.typed(before[field.name]) if field.name in before else question_text.default_text(field)
        text = await terminal.line("> ", default=default, check=_checker(field), words=question_text.words_of(field))
        value = question_text.read_value(field, text)
        if value is not question_text.ABSENT:
            content[field.name] = value
    return content


def _checker(field: Field) -> Check:
    def check(text: str) -> str | None:
        try:
            question_text.read_value(field, text)
        except ValueError as error:
            return f"{one_line(field.title or field.name)} {error}"
        return None

    return check


def _summary(fields: tuple[Field, ...], content: dict[str, Any]) -> list[str]:
    given = [
        f"    {one_line(field.title or field.name)}: {one_line(question_text.typed(content[field.name]))}"
        for field in fields
        if field.name in content
    ]
    return given or ["    nothing"]


async def _ask_link(terminal: Terminal) -> Answer:
    return _plain(await _word(terminal, "agree, decline or cancel?", ("agree", "decline", "cancel")), None)


async def _ask_approval(terminal: Terminal, approval: Approval) -> Answer:
    offered: list[Remember] = ["once", *(kind for kind in approval.persist if kind != "once")]
    words = [word for word, kind in APPROVE.items() if kind in offered]
    terminal.show([*(f"    {APPROVE_WORDS[kind]}" for kind in offered), "    no       (you may add a reason)"])
    text = await terminal.line("> ", default="", check=_approval_check(words), words=[*words, "no"])
    word, _, reason = text.strip().partition(" ")
    if word in APPROVE:
        return Accept(remember=APPROVE[word])
    return Decline(reason.strip() or None)


def _approval_check(words: list[str]) -> Check:
    def check(text: str) -> str | None:
        word, _, rest = text.strip().partition(" ")
        if word == "no" or (word in words and not rest):
            return None
        return f"type {', '.join(words)} or no"

    return check


async def _word(terminal: Terminal, label: str, words: tuple[str, ...]) -> str:
    def check(text: str) -> str | None:
        return None if text.strip() in words else f"type {' or '.join(words)}"

    return (await terminal.line(f"{label} ", default="", check=check, words=words)).strip()


def _plain(word: str, content: dict[str, Any] | None) -> Answer:
    match word:
        case "decline":
            return Decline()
        case "cancel":
            return Cancel()
        case _:
            return Accept(content)
