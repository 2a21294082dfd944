"""What becomes of a question before any screen lights up.

Owns: the order of decisions (BEHAVIOUR section 6), as one pure function.
Never: waits, asks, or fills in a form with fields (QST-3).
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from interlock.vocabulary.form import Form
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.question import Approval, Link, Subject

DeclineCause = Literal["approval_never", "elicitations_off", "nobody_listens"]


@dataclass(frozen=True, slots=True)
class AcceptEmpty:
    """Say yes with an empty object: full access, nobody may be asked, and yes is all there is to say."""


@dataclass(frozen=True, slots=True)
class DeclineNow:
    """Say no; `sentence` tells people which setting said so."""

    cause: DeclineCause
    sentence: str


@dataclass(frozen=True, slots=True)
class AskReviewer:
    """Let the application's reviewer look at it; what it passes on is decided again without it."""


@dataclass(frozen=True, slots=True)
class AskPeople:
    """Hold it, and tell the audience."""


Road: TypeAlias = AcceptEmpty | DeclineNow | AskReviewer | AskPeople

NEVER = DeclineNow("approval_never", "approval_policy is 'never', so nobody is asked")
SWITCHED_OFF = DeclineNow("elicitations_off", "questions of servers are switched off (mcp_elicitations = false)")
NOBODY = DeclineNow("nobody_listens", "nobody is listening who could be asked")


def road(subject: Subject, policy: Policy, *, reviewer: bool, listening: bool) -> Road:
    """Which way a well-formed question goes. `reviewer`: one is configured and has not passed it on yet.

    Malformed questions and unknown modes do not come this far: they are answered as protocol errors first.
    """
    refusal = _refusal(subject, policy)
    if refusal is not None:
        return refusal
    if reviewer:
        return AskReviewer()
    return AskPeople() if listening else NOBODY


def _refusal(subject: Subject, policy: Policy) -> AcceptEmpty | DeclineNow | None:
    never = policy.approval == "never"
    match subject:
        case Form() if subject.empty and never and policy.full_access:
            return AcceptEmpty()
        case Form() | Link():
            return NEVER if never else None if policy.mcp_elicitations else SWITCHED_OFF
        case Approval():  # switching elicitations off does not silence approvals
            return NEVER if never else None
        case _:
            assert_never(subject)
