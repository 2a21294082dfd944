"""What a person is asked, and what a person may answer.

Owns: the one type of question for elicitations of servers and approvals of calls, the three answers, and what is
kept of a request that a server answers with questions.
Never: decides who is asked, waits, or holds the request id of a server (QST-1).
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from interlock.vocabulary.form import Form
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.server import Era
from interlock.vocabulary.tool import ToolAnnotations

QuestionKind = Literal["elicitation-form", "elicitation-url", "approval"]

CallCertainty = Literal["known", "only_call", "unknown"]
"""How we know the call that a question belongs to (QST-11): the protocol or the host itself says it; it was the
only call of its connection that was running (an older server does not say more); nobody can know."""

Remember = Literal["once", "session", "always"]
"""How long an approval holds: for this call, until its Thread is closed, or written to the configuration (APR-2)."""

Action = Literal["accept", "decline", "cancel"]
"""The three answers, as the protocol names them."""

Answerer = Literal["user", "reviewer", "policy", "nobody"]
"""Who settled a question. "nobody": no one was listening, or the last listener left (QST-4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An address that a person may open; the host never opens or fetches it (QST-7).

    `host` is what the browser would contact, as it is written in the URL; `warnings` are sentences to
    be shown before consent. `elicitation_id` is the server's name for the interaction (2025-11-25).
    """

    url: str
    host: str
    warnings: tuple[str, ...] = ()
    elicitation_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A call that wants a permission: what would be run, with what, and how long a yes may hold.

    `tool` is the remote name and with `server` of the question its identity; `public_name` is what the model used.
    `reason` says in words why somebody is asked.
    """

    tool: str
    public_name: str
    arguments: JsonObject
    annotations: ToolAnnotations = field(default_factory=ToolAnnotations)
    title: str | None = None
    description: str | None = None
    connector_id: str | None = None
    connector_name: str | None = None
    persist: tuple[Remember, ...] = ()
    """Which of "session" and "always" are offered besides "once"."""
    reason: str = ""


Subject: TypeAlias = Form | Link | Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One open question. `id` is the host's own; the server's request id stays inside (QST-1).

    `server` asks, or is to be called. `turn_id` None: it belongs to no turn. `call_id` is the call that it belongs
    to, as far as `certainty` goes (QST-11). `meta` is the `_meta` of the server's request, untouched (QST-12).
    """

    id: str
    server: str
    message: str
    subject: Subject
    turn_id: str | None = None
    call_id: str | None = None
    certainty: CallCertainty = "unknown"
    meta: JsonObject | None = None

    @property
    def kind(self) -> QuestionKind:
        match self.subject:
            case Form():
                return "elicitation-form"
            case Link():
                return "elicitation-url"
            case Approval():
                return "approval"


@dataclass(frozen=True, slots=True)
class Accept:
    """Yes. `content` fills the form (None: an empty object); `remember` counts for approvals only."""

    action: ClassVar[Action] = "accept"
    content: JsonObject | None = None
    meta: JsonObject | None = None
    remember: Remember = "once"


@dataclass(frozen=True, slots=True)
class Decline:
    """No. `message` tells the model why its call was not approved; servers are not told."""

    action: ClassVar[Action] = "decline"
    message: str | None = None
    meta: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Neither yes nor no: dismissed."""

    action: ClassVar[Action] = "cancel"
    meta: JsonObject | None = None


Answer: TypeAlias = Accept | Decline | Cancel


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRequest:
    """A request of ours that a server of 2026-07-28 answered with questions: enough for any host to send it again with
    the answers (specification 2026-07-28: basic/patterns/mrtr; QST-9).

    `params` are those of the first round, `state` is the server's requestState, untouched, `keys` are those of
    inputRequests in their order. `whereabouts` tells whether a server of that name is still the one that asked.
    """

    server: str
    whereabouts: str
    method: str
    params: JsonObject
    keys: tuple[str, ...]
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputResponses:
    """The results for the server, one for each of `request.keys`."""

    request: HeldRequest
    results: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Elicitation:
    """What a server asks, before anybody has looked at it: the params of `elicitation/create` as they came.

    `held`: the request that it asks before answering, where another host could send that again.
    """

    server: str
    params: JsonObject
    era: Era
    call_id: str | None = None
    turn_id: str | None = None
    certainty: CallCertainty = "unknown"
    held: HeldRequest | None = None
