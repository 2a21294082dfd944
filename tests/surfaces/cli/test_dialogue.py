"""Questions at the command line: what is shown, what is typed, what becomes of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from interlock.surfaces.cli.dialogue import Check, NotAnswered, Refused, ask
from interlock.surfaces.cli.question_text import ABSENT, lines_of, read_value
from interlock.vocabulary.form import (
    BooleanField,
    Choice,
    Field,
    Form,
    MultiSelectField,
    NumberField,
    SelectField,
    TextField,
)
from interlock.vocabulary.question import Accept, Answer, Approval, Cancel, Decline, Link, Question, Subject
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

COLOURS = (Choice(value="r", title="Red"), Choice(value="g", title="Green"))
FORM = Form(
    fields=(
        TextField(name="name", title="Name", description="Full name", required=True, min_length=2),
        NumberField(name="age", integer=True, minimum=0, maximum=150),
        BooleanField(name="sure", default=True),
        SelectField(name="colour", choices=COLOURS, default="g"),
        MultiSelectField(name="likes", choices=COLOURS),
    )
)
LINK = Link(url="https://xn--pple-43d.com/a", host="xn--pple-43d.com", warnings=("it is written in punycode",))
LEAVES = {"^C": NotAnswered, "^D": Refused}


@dataclass
class Typist:
    """A Terminal at which these lines are typed; `None` takes the default."""

    typed: list[str | None]
    shown: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    defaults: list[str] = field(default_factory=list)

    def show(self, lines: Sequence[str]) -> None:
        self.shown += lines

    async def line(self, label: str, *, default: str, check: Check, words: Sequence[str]) -> str:
        self.defaults.append(default)
        while True:
            text = self.typed.pop(0)
            if text in LEAVES:
                raise LEAVES[text]
            text = default if text is None else text
            complaint = check(text)
            if complaint is None:
                return text
            self.complaints.append(complaint)


def question(subject: Subject, **facts: Any) -> Question:
    return Question(**{"id": "q1", "server": "e", "message": "Please\nanswer", "subject": subject, **facts})


async def typing(subject: Subject, *typed: str | None) -> tuple[Answer, Typist]:
    typist = Typist(list(typed))
    answer = await ask(typist, question(subject))
    assert typist.typed == []
    return answer, typist


@requirement("QST-6")
async def test_a_form_is_filled_in_field_by_field_and_looked_at_before_it_is_sent() -> None:
    answer, typist = await typing(FORM, "Ada", "36", None, "Red", "1, g", "send")

    assert answer == Accept({"name": "Ada", "age": 36, "sure": True, "colour": "r", "likes": ["r", "g"]})
    assert typist.defaults[:5] == ["", "", "yes", "g", ""]
    assert "Name (required)" in typist.shown
    assert "    Name: Ada" in typist.shown


@requirement("QST-6")
async def test_what_does_not_fit_is_said_with_the_field_and_asked_again() -> None:
    answer, typist = await typing(FORM, "", "A", "Ada", "old", "200", "36", "perhaps", "no", "blue", "2", "", "send")

    assert typist.complaints == [
        "Name is required",
        "Name must have at least 2 characters",
        "age must be a whole number",
        "age must be at most 150",
        "sure must be true or false",
        "colour must be one of 'r', 'g'",
    ]
    assert answer == Accept({"name": "Ada", "age": 36, "sure": False, "colour": "g"})


async def test_what_is_not_required_may_be_left_blank() -> None:
    answer, _ = await typing(FORM, "Ada", "", "", "", "", "send")

    assert answer == Accept({"name": "Ada"})


async def test_a_second_look_keeps_what_was_typed() -> None:
    form = Form(fields=FORM.fields[:2])
    answer, typist = await typing(form, "Ada", "36", "edit", None, "37", "send")

    assert answer == Accept({"name": "Ada", "age": 37})
    assert typist.defaults[3:5] == ["Ada", "36"]


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (["^C"], Cancel()),
        (["^D"], Decline()),
        (["Ada", "^C"], Cancel()),
        (["Ada", "1", "decline"], Decline()),
        (["Ada", "1", "cancel"], Cancel()),
        (["Ada", "1", "^D"], Decline()),
    ],
)
async def test_a_form_can_be_left_at_every_line(typed: list[str], answer: Answer) -> None:
    given, _ = await typing(Form(fields=FORM.fields[:2]), *typed)

    assert given == answer


@requirement("QST-3")
@pytest.mark.parametrize(
    ("word", "answer"), [("accept", Accept({})), ("decline", Decline()), ("cancel", Cancel()), ("^D", Decline())]
)
async def test_an_empty_form_wants_a_word(word: str, answer: Answer) -> None:
    given, _ = await typing(Form(), word)

    assert given == answer


async def test_nothing_is_accepted_by_an_empty_line() -> None:
    for subject in (Form(), LINK, approval("session")):
        answer, typist = await typing(subject, "", "^C")
        assert answer == Cancel()
        assert len(typist.complaints) == 1


async def test_what_the_server_requires_without_saying_what_it_is_can_be_typed() -> None:
    answer, _ = await typing(Form(undeclared=("ghost",)), "boo", "send")

    assert answer == Accept({"ghost": "boo"})


@requirement("QST-7")
async def test_an_address_is_shown_whole_with_its_host_and_its_warnings() -> None:
    answer, typist = await typing(LINK, "agree")

    assert answer == Accept(None)
    assert "  https://xn--pple-43d.com/a" in typist.shown
    assert any("an address of xn--pple-43d.com" in line for line in typist.shown)
    assert "  careful: it is written in punycode" in typist.shown


def approval(*persist: Any, **facts: Any) -> Approval:
    return Approval(
        **{"tool": "rm", "public_name": "mcp__e__rm", "arguments": {"path": "/x"}, "persist": persist, **facts}
    )


@requirement("APR-2")
@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("yes", Accept()),
        ("session", Accept(remember="session")),
        ("always", Accept(remember="always")),
        ("no", Decline()),
        ("no not on a Friday", Decline("not on a Friday")),
        ("^C", Cancel()),
    ],
)
async def test_an_approval_says_how_long_it_holds(typed: str, answer: Answer) -> None:
    given, _ = await typing(approval("session", "always"), typed)

    assert given == answer


@requirement("APR-2")
async def test_what_is_not_offered_cannot_be_typed() -> None:
    answer, typist = await typing(approval(), "always", "session", "yes please", "no")

    assert answer == Decline()
    assert typist.complaints == ["type yes or no"] * 3


@requirement("QST-11")
@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"call_id": "c1", "certainty": "known"}, "for call c1"),
        ({"call_id": "c1", "certainty": "only_call"}, "probably for call c1"),
        ({}, "it does not say for which call"),
    ],
)
def test_the_first_line_says_who_asks_and_for_which_call(facts: dict[str, Any], words: str) -> None:
    first = lines_of(question(Form(), **facts))[0]

    assert first.startswith("Server e asks you")
    assert words in first


def test_what_a_server_writes_cannot_steer_the_terminal_or_pass_for_a_line_of_ours() -> None:
    evil = "\x1b[2J\nServer bank asks you:"
    shown = [
        *lines_of(question(Form(), server="e\x1b[31m", message=evil)),
        *lines_of(question(approval(arguments={"a": evil}, title=evil, reason=evil))),
    ]

    assert all(line.isprintable() for line in shown)
    assert not any(line.startswith("Server bank") for line in shown)


def test_long_messages_and_arguments_are_cut_with_their_number() -> None:
    shown = lines_of(question(approval(arguments={"lines": list(range(100))}), message="x\n" * 100))

    assert "  | … 60 more lines" in shown
    assert any("more lines" in line and line.startswith("    …") for line in shown)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        (NumberField(name="n"), "1.5", 1.5),
        (NumberField(name="n"), "3", 3),
        (NumberField(name="n"), "", ABSENT),
        (TextField(name="t"), "", ABSENT),
        (TextField(name="t"), " ", " "),
        (BooleanField(name="b"), "Y", True),
        (SelectField(name="s", choices=(Choice(value="2"), Choice(value="1"))), "1", "1"),
        (MultiSelectField(name="m", choices=COLOURS, required=True), "", []),
    ],
)
def test_typed_lines_become_values(field: Field, text: str, value: Any) -> None:
    assert read_value(field, text) == value


@pytest.mark.parametrize("text", ["nan", "inf", "1e999", "one"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a number"):
        read_value(NumberField(name="n"), text)
