"""What a server wants to know of people, in both eras.

Owns: which of our requests a question of a server belongs to (QST-11), the rounds of `input_required` results
(specification 2026-07-28: basic/patterns/mrtr).
Never: reads a question, decides who is asked, or looks into a requestState.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from interlock.connections import convert
from interlock.connections.serving import ASKED_WITHIN, RequestRefused
from interlock.vocabulary.errors import Effect, InvalidRequest, ServerFailed
from interlock.vocabulary.json import JsonObject, excerpt
from interlock.vocabulary.ports import Respondent
from interlock.vocabulary.question import CallCertainty, Elicitation, HeldRequest, InputResponses

ELICIT: Final = "elicitation/create"
INVALID_PARAMS: Final = -32602
URL_REQUIRED: Final = -32042
"""An error of 2025-11-25: people have to open addresses first (specification: client/elicitation, URL mode)."""
ROUND_METHODS: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The requests that a server may answer with input_required; any other such answer is a breach."""
MAXIMUM_ROUNDS: Final = 10
MAXIMUM_QUESTIONS: Final = 32
"""Questions in one result; who has more asks in another round."""

DECLINED: Final[JsonObject] = {"action": "decline"}
CANCELLED: Final[JsonObject] = {"action": "cancel"}


async def answers(respondent: Respondent | None, elicitations: tuple[Elicitation, ...]) -> tuple[JsonObject, ...]:
    """What the server is told; without anybody to ask it is told no (QST-4)."""
    if respondent is None:
        return tuple(DECLINED for _ in elicitations)
    return tuple(await respondent.answers(elicitations)) if elicitations else ()


# ---- older era: requests of the server


class InFlight:
    """Our own requests of one connection that are being waited for, with who answers for them."""

    def __init__(self) -> None:
        self._all: dict[int, Respondent | None] = {}
        self._count = 0

    def __repr__(self) -> str:
        return f"<InFlight {len(self._all)}>"

    def begin(self, respondent: Respondent | None) -> int:
        """A request is in flight from now on, until `end` is called with this number."""
        self._count += 1
        self._all[self._count] = respondent
        return self._count

    def end(self, number: int) -> None:
        del self._all[number]

    def attributed(self, elicitation: Elicitation, within: Respondent | None) -> tuple[Respondent | None, Elicitation]:
        """The question with the call that it belongs to, as far as an older server lets us know, and who answers.

        It says nothing itself. Over HTTP it comes on the stream of a request (`within`), which it then relates to
        (specification: Streamable HTTP). Else, if one request is all that is in flight, the question is taken to be
        that one's; if several are, and all belong to one turn, then at least the turn is known.
        """
        running = list(self._all.values())
        if within is not None:
            return within, _belonging_to(within, elicitation, "known")
        if len(running) == 1 and (only := running[0]) is not None:
            return only, _belonging_to(only, elicitation, "only_call")
        return None, replace(elicitation, turn_id=_common_turn(running))


def _belonging_to(respondent: Respondent, elicitation: Elicitation, certainty: CallCertainty) -> Elicitation:
    return replace(
        elicitation,
        call_id=respondent.call_id,
        turn_id=respondent.turn_id,
        certainty=certainty if respondent.call_id is not None else "unknown",
    )


def _common_turn(running: Iterable[Respondent | None]) -> str | None:
    turns = {None if respondent is None else respondent.turn_id for respondent in running}
    return turns.pop() if len(turns) == 1 else None


async def answer_request(server: str, params: JsonObject, in_flight: InFlight, owner: Respondent | None) -> JsonObject:
    """The result of `elicitation/create`. `owner` answers what belongs to no known request.

    Raises:
        RequestRefused: the question is malformed.
    """
    asked = Elicitation(server=server, params=params, era="handshake")
    respondent, elicitation = in_flight.attributed(asked, ASKED_WITHIN.get())
    try:
        (result,) = await answers(respondent or owner, (elicitation,))
    except InvalidRequest as error:
        raise RequestRefused(INVALID_PARAMS, error.message) from error
    return result


# ---- 2026-07-28: rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequired:
    """What is no answer yet: questions by the server's own keys, and a state that only it understands.

    `refusal`: an older server asked by refusing the request (URL_REQUIRED); it is sent again as it was, once, if
    people agreed to everything.
    """

    questions: Mapping[str, Elicitation] = field(default_factory=dict[str, Elicitation])
    state: str | None = None
    refusal: ServerFailed | None = None

    def agreed(self, given: tuple[JsonObject, ...]) -> bool:
        return all(result.get("action") == "accept" for result in given)

    def params(self, first: JsonObject, given: tuple[JsonObject, ...]) -> JsonObject:
        """The parameters of the next round: those of the first, the answers, and the state as it came."""
        if self.refusal is not None:
            return first
        return {**first, **_input(tuple(self.questions), given, self.state)}

    def elicitations(self, method: str, first: JsonObject, whereabouts: str) -> tuple[Elicitation, ...]:
        """The questions in order, each with what it takes to go on in another host (QST-9)."""
        asked = tuple(self.questions.values())
        if self.refusal is not None or not asked:
            return asked
        held = HeldRequest(
            server=asked[0].server,
            whereabouts=whereabouts,
            method=method,
            params=first,
            keys=tuple(self.questions),
            state=self.state,
        )
        return tuple(replace(elicitation, held=held) for elicitation in asked)


def taken_up(first: JsonObject, responses: InputResponses) -> JsonObject:
    """The parameters of the round in which a request goes on that another host had held."""
    return {**first, **_input(responses.request.keys, responses.results, responses.request.state)}


def _input(keys: tuple[str, ...], given: tuple[JsonObject, ...], state: str | None) -> JsonObject:
    more: dict[str, Any] = {}
    if keys:
        more["inputResponses"] = dict(zip(keys, given, strict=True))
    if state is not None:
        more["requestState"] = state
    return more


def read_url_required(
    refusal: ServerFailed, *, server: str, method: str, respondent: Respondent | None
) -> InputRequired | None:
    """The addresses that a refusal asks people to open; None: it is an ordinary refusal, or nobody can be asked."""
    data = refusal.rpc_data
    wanted = data.get("elicitations") if isinstance(data, Mapping) else None
    if refusal.rpc_code != URL_REQUIRED or respondent is None or method not in ROUND_METHODS:
        return None
    if not isinstance(wanted, list) or not 0 < len(wanted) <= MAXIMUM_QUESTIONS:
        return None
    if not all(isinstance(params, Mapping) and params.get("mode") == "url" for params in wanted):
        return None
    known = _belonging_to(respondent, Elicitation(server=server, params={}, era="handshake"), "known")
    questions = {str(number): replace(known, params=params) for number, params in enumerate(wanted)}
    return InputRequired(questions=questions, refusal=refusal)


def read_input_required(
    result: JsonObject, *, server: str, method: str, effect: Effect, respondent: Respondent | None
) -> InputRequired:
    """What the server wants before it answers.

    Raises:
        ServerFailed: kind "protocol"; it wants nothing, something malformed, or what was not offered to it.
    """
    requests, state = result.get("inputRequests"), result.get("requestState")
    if method not in ROUND_METHODS:
        raise convert.broken(server, method, "it asks for input, which this request does not allow", effect=effect)
    if requests is None and state is None:
        raise convert.broken(server, method, "it asks for input without saying for which", effect=effect)
    if state is not None and not isinstance(state, str):
        raise convert.broken(server, method, "requestState is not a text", effect=effect)
    if requests is None:
        return InputRequired(state=state)
    if not isinstance(requests, Mapping) or len(requests) > MAXIMUM_QUESTIONS:
        reason = f"inputRequests is not an object with at most {MAXIMUM_QUESTIONS} members"
        raise convert.broken(server, method, reason, effect=effect)
    known = Elicitation(server=server, params={}, era="stateless")
    if respondent is not None:
        known = _belonging_to(respondent, known, "known")
    questions = {}
    for key, request in requests.items():
        if not isinstance(request, Mapping) or request.get("method") != ELICIT:
            wanted = excerpt(request.get("method") if isinstance(request, Mapping) else request, 100)
            raise convert.broken(server, method, f"it asks for {wanted}, which was not offered", effect=effect)
        params = request.get("params")
        questions[key] = replace(known, params=params if isinstance(params, Mapping) else {})
    return InputRequired(questions=questions, state=state)
