"""The order of decisions (BEHAVIOUR section 6), as a table."""

import pytest

from interlock.questions.policy import NEVER, NOBODY, SWITCHED_OFF, AcceptEmpty, AskPeople, AskReviewer, Road, road
from interlock.vocabulary.form import Form, TextField
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.question import Approval, Link, Subject
from tests.manifest import requirement

EMPTY = Form()
GHOST = Form(undeclared=("ghost",))
FIELDS = Form(fields=(TextField(name="name"),))
LINK = Link(url="https://example.com/", host="example.com")
APPROVAL = Approval(tool="rm", public_name="mcp__disk__rm", arguments={})

ASKS = Policy()
NEVER_ASKS = Policy(approval="never")
FULL = Policy(approval="never", full_access=True)
OFF = Policy(mcp_elicitations=False)
FULL_BUT_ASKS = Policy(full_access=True)


@requirement("QST-2", "QST-3", "QST-4", "QST-10")
@pytest.mark.parametrize(
    ("subject", "policy", "reviewer", "listening", "expected"),
    [
        # 2. full access and never: the empty form alone is accepted, and before everything else
        (EMPTY, FULL, False, False, AcceptEmpty()),
        (EMPTY, FULL, True, True, AcceptEmpty()),
        (GHOST, FULL, True, True, NEVER),
        (FIELDS, FULL, True, True, NEVER),
        (LINK, FULL, True, True, NEVER),
        (APPROVAL, FULL, True, True, NEVER),
        (EMPTY, FULL_BUT_ASKS, False, True, AskPeople()),
        # 3. never, or switched off
        (EMPTY, NEVER_ASKS, True, True, NEVER),
        (FIELDS, NEVER_ASKS, True, True, NEVER),
        (LINK, NEVER_ASKS, True, True, NEVER),
        (APPROVAL, NEVER_ASKS, True, True, NEVER),
        (EMPTY, OFF, True, True, SWITCHED_OFF),
        (FIELDS, OFF, True, True, SWITCHED_OFF),
        (LINK, OFF, True, True, SWITCHED_OFF),
        (APPROVAL, OFF, True, True, AskReviewer()),
        (APPROVAL, OFF, False, True, AskPeople()),
        # 4. a reviewer is asked even when nobody listens
        (FIELDS, ASKS, True, True, AskReviewer()),
        (FIELDS, ASKS, True, False, AskReviewer()),
        (LINK, ASKS, True, False, AskReviewer()),
        # 5. nobody is listening
        (FIELDS, ASKS, False, False, NOBODY),
        (EMPTY, ASKS, False, False, NOBODY),
        (LINK, ASKS, False, False, NOBODY),
        (APPROVAL, ASKS, False, False, NOBODY),
        # 6. people
        (FIELDS, ASKS, False, True, AskPeople()),
        (EMPTY, ASKS, False, True, AskPeople()),
        (LINK, ASKS, False, True, AskPeople()),
        (APPROVAL, ASKS, False, True, AskPeople()),
    ],
)
def test_each_question_goes_its_way(
    subject: Subject, policy: Policy, reviewer: bool, listening: bool, expected: Road
) -> None:
    assert road(subject, policy, reviewer=reviewer, listening=listening) == expected


@requirement("QST-3")
@pytest.mark.parametrize("subject", [GHOST, FIELDS, LINK, APPROVAL])
@pytest.mark.parametrize("approval", ["never", "on-request"])
@pytest.mark.parametrize("full_access", [False, True])
@pytest.mark.parametrize("elicitations", [False, True])
@pytest.mark.parametrize("reviewer", [False, True])
@pytest.mark.parametrize("listening", [False, True])
def test_nothing_but_an_empty_form_is_ever_accepted_by_itself(
    subject: Subject, approval: str, full_access: bool, elicitations: bool, reviewer: bool, listening: bool
) -> None:
    policy = Policy(
        approval="never" if approval == "never" else "on-request",
        full_access=full_access,
        mcp_elicitations=elicitations,
    )

    assert road(subject, policy, reviewer=reviewer, listening=listening) != AcceptEmpty()
