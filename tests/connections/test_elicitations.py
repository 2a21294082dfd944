"""Questions of servers: whose they are, the rounds of input_required, and the clocks that stand still."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import pytest

from interlock.connections.connection import SupervisedConnection
from interlock.connections.elicitations import MAXIMUM_QUESTIONS, MAXIMUM_ROUNDS, InFlight
from interlock.connections.serving import RequestRefused
from interlock.connections.session import SessionHandlers
from interlock.connections.supervisor import Supervisor
from interlock.vocabulary.errors import InvalidRequest, ServerFailed
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.question import Elicitation, HeldRequest, InputResponses
from interlock.vocabulary.server import ServerConfig
from tests.clock import let_pass
from tests.connections.fakes import PATIENCE, FakeServer, FakeSession, config
from tests.connections.http_driver import Reply, Request, configured, serving
from tests.connections.servers import scripted
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

FORM: dict[str, Any] = {
    "message": "n?",
    "requestedSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
}
ACCEPTED: JsonObject = {"action": "accept", "content": {"n": 1}}
DONE: dict[str, Any] = {"content": [{"type": "text", "text": "thanks"}]}
THANKS = tuple(DONE["content"])


@dataclass
class Person:
    """Below the port Respondent: answers everything alike, once `thinking` is over."""

    call_id: str | None = "c1"
    turn_id: str | None = "t1"
    result: JsonObject = field(default_factory=lambda: ACCEPTED)
    refusal: str | None = None
    thinking: Callable[[], Any] = anyio.lowlevel.checkpoint
    asked: list[tuple[Elicitation, ...]] = field(default_factory=list)
    standstill: None = None

    async def answers(self, elicitations: Sequence[Elicitation]) -> Sequence[JsonObject]:
        self.asked.append(tuple(elicitations))
        if self.refusal is not None:
            raise InvalidRequest(self.refusal)
        await self.thinking()
        return [self.result for _ in elicitations]


async def thinking_too_long() -> None:
    """Longer than the call may take."""
    let_pass(PATIENCE)
    await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def connected(
    server: FakeServer | None, owner: Person | None = None, settings: ServerConfig | None = None
) -> AsyncIterator[SupervisedConnection]:
    opener: dict[str, Any] = {} if server is None else {"opener": server}
    supervisor = Supervisor(settings or config(), handlers=SessionHandlers(respondent=owner), **opener)
    connection = SupervisedConnection(supervisor)
    with anyio.fail_after(4 * PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(supervisor.run)
            try:
                yield connection
            finally:
                supervisor.close()
                with anyio.CancelScope(shield=True):
                    await supervisor.wait_closed()


def wants(state: Any = None, **questions: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"resultType": "input_required"}
    if questions:
        result["inputRequests"] = {
            key: {"method": "elicitation/create", "params": params} for key, params in questions.items()
        }
    return result if state is None else {**result, "requestState": state}


def in_turn(*results: JsonObject | ServerFailed) -> Callable[[FakeSession, str, JsonObject], JsonObject | ServerFailed]:
    """A server that gives these results one after another, and the last one for ever."""
    left = list(results)
    return lambda session, method, params: left.pop(0) if len(left) > 1 else left[0]


async def failure(awaitable: Any) -> ServerFailed:
    with pytest.raises(ServerFailed) as failed:
        await awaitable
    return failed.value


# ---- 2026-07-28: rounds


@requirement("QST-8", "QST-11")
async def test_a_result_that_asks_is_answered_and_the_state_goes_back_untouched() -> None:
    state = 'v1:é漢"\\ \n\t' + "=" * 3000
    server = FakeServer(era="stateless", answer=in_turn(wants(state, q=FORM), DONE))
    person = Person()
    async with connected(server, person) as connection:
        result = await connection.call_tool("ask", {"a": 1}, timeout=PATIENCE, respondent=person)

    assert result.content == THANKS
    first, second = server.sessions[0].asked
    assert first == ("tools/call", {"name": "ask", "arguments": {"a": 1}})
    assert second == (
        "tools/call",
        {"name": "ask", "arguments": {"a": 1}, "inputResponses": {"q": ACCEPTED}, "requestState": state},
    )
    known = Elicitation(server="zoo", params=FORM, era="stateless", call_id="c1", turn_id="t1", certainty="known")
    held = HeldRequest(
        server="zoo",
        whereabouts=config().whereabouts(),
        method="tools/call",
        params={"name": "ask", "arguments": {"a": 1}},
        keys=("q",),
        state=state,
    )
    assert person.asked == [(replace(known, held=held),)]


@requirement("QST-9")
async def test_a_call_that_an_earlier_host_was_asked_about_goes_on_with_the_answers() -> None:
    server = FakeServer(era="stateless", answer=in_turn(wants("later", q=FORM), DONE))
    person = Person()
    held = HeldRequest(server="zoo", whereabouts="", method="tools/call", params={}, keys=("a", "b"), state="kept")
    async with connected(server, person) as connection:
        result = await connection.call_tool(
            "ask",
            {"a": 1},
            timeout=PATIENCE,
            respondent=person,
            input_responses=InputResponses(request=held, results=(ACCEPTED, {"action": "decline"})),
        )

    assert result.content == THANKS
    first, second = (params for _, params in server.sessions[0].asked)
    assert first["requestState"] == "kept"
    assert first["inputResponses"] == {"a": ACCEPTED, "b": {"action": "decline"}}
    assert (second["requestState"], second["inputResponses"]) == ("later", {"q": ACCEPTED})


@requirement("QST-9")
async def test_a_server_that_speaks_an_older_protocol_now_is_not_told_the_answers() -> None:
    server = FakeServer(era="handshake", answer=in_turn(DONE))
    held = HeldRequest(server="zoo", whereabouts="", method="tools/call", params={}, keys=("a",), state="kept")
    async with connected(server, Person()) as connection:
        responses = InputResponses(request=held, results=(ACCEPTED,))
        error = await failure(connection.call_tool("ask", {}, timeout=PATIENCE, input_responses=responses))

    assert (error.kind, error.effect) == ("unsupported", "unknown")  # the earlier round was sent
    assert server.sessions[0].asked == []


@requirement("QST-8")
async def test_the_questions_of_one_result_are_asked_together_and_answered_under_their_own_keys() -> None:
    server = FakeServer(era="stateless", answer=in_turn(wants("s", a=FORM, b={**FORM, "message": "m?"}), DONE))
    person = Person()
    async with connected(server, person) as connection:
        await connection.call_tool("ask", {}, timeout=PATIENCE, respondent=person)

    ((one, other),) = person.asked
    assert (one.params["message"], other.params["message"]) == ("n?", "m?")
    assert server.sessions[0].asked[1][1]["inputResponses"] == {"a": ACCEPTED, "b": ACCEPTED}


@requirement("QST-8")
async def test_each_round_answers_its_own_questions_and_carries_its_own_state() -> None:
    server = FakeServer(era="stateless", answer=in_turn(wants("s1", a=FORM), wants("s2"), wants(b=FORM), DONE))
    person = Person()
    async with connected(server, person) as connection:
        await connection.call_tool("ask", None, timeout=PATIENCE, respondent=person)

    assert [params for _, params in server.sessions[0].asked] == [
        {"name": "ask"},
        {"name": "ask", "inputResponses": {"a": ACCEPTED}, "requestState": "s1"},
        {"name": "ask", "requestState": "s2"},
        {"name": "ask", "inputResponses": {"b": ACCEPTED}},
    ]


@requirement("QST-8")
async def test_prompts_and_resource_reads_may_ask_too_and_what_they_give_then_is_not_kept() -> None:
    read = {"contents": [{"uri": "zoo://a", "text": "hello"}], "ttlMs": 60_000, "cacheScope": "public"}
    answers = {
        "resources/read": in_turn(wants("s", q=FORM), read, wants("s", q=FORM), read),
        "prompts/get": in_turn(wants("s", q=FORM), {"messages": []}),
    }
    server = FakeServer(
        era="stateless", answer=lambda session, method, params: answers[method](session, method, params)
    )
    person = Person()
    async with connected(server, person) as connection:
        await connection.ready(PATIENCE)
        server.sessions[0].capabilities = {"resources": {}, "prompts": {}}
        for _ in range(2):
            contents = (await connection.read_resource("zoo://a", timeout=PATIENCE, respondent=person)).contents
            assert contents[0].text == "hello"
        await connection.get_prompt("p", {}, timeout=PATIENCE, respondent=person)

    assert len(person.asked) == 3


@requirement("QST-8")
async def test_rounds_are_bounded() -> None:
    server = FakeServer(era="stateless", answer=in_turn(wants("s", q=FORM)))
    person = Person()
    async with connected(server, person) as connection:
        error = await failure(connection.call_tool("ask", {}, timeout=PATIENCE, respondent=person))

    assert (error.kind, error.effect) == ("protocol", "unknown")
    assert len(server.sessions[0].asked) == MAXIMUM_ROUNDS + 1


@requirement("QST-8")
@pytest.mark.parametrize(
    "result",
    [
        wants(),
        {"resultType": "input_required", "inputRequests": None, "requestState": None},
        {"resultType": "input_required", "requestState": 7},
        {"resultType": "input_required", "inputRequests": []},
        {"resultType": "input_required", "inputRequests": {"q": "elicitation/create"}},
        {"resultType": "input_required", "inputRequests": {"z": {"method": "zoo/feed", "params": {}}}},
        {"resultType": "input_required", "inputRequests": {"z": {"method": "sampling/createMessage", "params": {}}}},
        {"resultType": "input_required", "inputRequests": {"z": {"method": "roots/list"}}},
        wants("s", **{f"q{number}": FORM for number in range(MAXIMUM_QUESTIONS + 1)}),
        wants("s", a=FORM) | {"inputRequests": {"a": {"method": "elicitation/create", "params": FORM}, "z": {}}},
    ],
)
async def test_what_was_not_offered_is_refused_before_anybody_is_asked(result: JsonObject) -> None:
    server = FakeServer(era="stateless", answer=in_turn(result, DONE))
    person = Person()
    async with connected(server, person) as connection:
        error = await failure(connection.call_tool("ask", {}, timeout=PATIENCE, respondent=person))

    assert (error.kind, error.effect) == ("protocol", "unknown")
    assert person.asked == []
    assert len(server.sessions[0].asked) == 1


@requirement("QST-6", "QST-8")
async def test_a_malformed_question_in_a_result_ends_the_call() -> None:
    server = FakeServer(era="stateless", answer=in_turn(wants("s", q={}), DONE))
    person = Person(refusal="it has no message")
    async with connected(server, person) as connection:
        error = await failure(connection.call_tool("ask", {}, timeout=PATIENCE, respondent=person))

    assert (error.kind, error.effect) == ("protocol", "unknown")
    assert "it has no message" in error.message


async def test_a_listing_may_not_ask() -> None:
    server = FakeServer(era="stateless", answer=in_turn(wants("s", q=FORM)))
    async with connected(server, Person()) as connection:
        error = await failure(connection.list_tools(timeout=PATIENCE))

    assert (error.kind, error.effect) == ("protocol", "none")


@requirement("LIF-3")
@pytest.mark.parametrize(("safe", "effect"), [(False, "unknown"), (True, "none")])
async def test_a_later_round_that_is_not_sent_takes_back_nothing_of_what_the_first_may_have_done(
    safe: bool, effect: str
) -> None:
    unsent = ServerFailed("the pipe is full", server="zoo", effect="none")
    server = FakeServer(era="stateless", answer=in_turn(wants("s", q=FORM), unsent))
    person = Person()
    async with connected(server, person) as connection:
        asked = connection.call_tool("ask", {}, timeout=PATIENCE, respondent=person, safe_to_repeat=safe)
        error = await failure(asked)

    assert (error.message, error.effect, error.facts["effect"]) == ("the pipe is full", effect, effect)


@requirement("QST-4")
async def test_without_anybody_to_ask_the_server_is_told_no() -> None:
    server = FakeServer(era="stateless", answer=in_turn(wants("s", q=FORM), DONE))
    async with connected(server) as connection:
        await connection.call_tool("ask", {}, timeout=PATIENCE)

    assert server.sessions[0].asked[1][1]["inputResponses"] == {"q": {"action": "decline"}}


@requirement("CON-11")
async def test_time_that_people_take_between_rounds_does_not_count() -> None:
    server = FakeServer(era="stateless", answer=in_turn(wants("s", q=FORM), DONE))
    person = Person(thinking=thinking_too_long)
    async with connected(server, person) as connection:
        await connection.ready(PATIENCE)
        result = await connection.call_tool("ask", {}, timeout=PATIENCE, respondent=person)

    assert result.content == THANKS


LOGIN = {"mode": "url", "url": "https://example.com/login", "message": "Log in", "elicitationId": "e1"}


def url_required(*wanted: Any) -> ServerFailed:
    data = {"elicitations": list(wanted)}
    return ServerFailed("log in first", server="zoo", kind="rejected", effect="unknown", rpc_code=-32042, rpc_data=data)


@requirement("QST-7", "QST-8")
async def test_a_refusal_that_wants_an_address_opened_asks_and_tries_once_more() -> None:
    server, person = FakeServer(answer=in_turn(url_required(LOGIN), DONE)), Person(result={"action": "accept"})
    async with connected(server, person) as connection:
        result = await connection.call_tool("ask", {"a": 1}, timeout=PATIENCE, respondent=person)

    assert result.content == THANKS
    ((asked,),) = person.asked
    assert (asked.params, asked.call_id, asked.certainty) == (LOGIN, "c1", "known")
    first, second = server.sessions[0].asked
    assert first == second


@requirement("QST-7")
@pytest.mark.parametrize(
    ("answer", "asked", "sent"),
    [({"action": "decline"}, 1, 1), ({"action": "cancel"}, 1, 1), ({"action": "accept"}, 1, 2)],
)
async def test_such_a_refusal_stands_unless_people_agree_and_is_not_asked_about_twice(
    answer: JsonObject, asked: int, sent: int
) -> None:
    refusal = url_required(LOGIN)
    server, person = FakeServer(answer=in_turn(refusal)), Person(result=answer)
    async with connected(server, person) as connection:
        assert await failure(connection.call_tool("ask", {}, timeout=PATIENCE, respondent=person)) is refusal

    assert (len(person.asked), len(server.sessions[0].asked)) == (asked, sent)


@pytest.mark.parametrize("wanted", [(), ({"mode": "form"},), ("x",), tuple([LOGIN] * (MAXIMUM_QUESTIONS + 1))])
async def test_a_refusal_that_does_not_say_what_to_open_is_an_ordinary_one(wanted: tuple[Any, ...]) -> None:
    refusal = url_required(*wanted)
    server, person = FakeServer(answer=in_turn(refusal)), Person()
    async with connected(server, person) as connection:
        assert await failure(connection.call_tool("ask", {}, timeout=PATIENCE, respondent=person)) is refusal

    assert person.asked == []


async def test_an_older_server_that_writes_such_a_result_has_answered() -> None:
    server = FakeServer(answer=in_turn(wants("s", q=FORM) | DONE))
    person = Person()
    async with connected(server, person) as connection:
        result = await connection.call_tool("ask", {}, timeout=PATIENCE, respondent=person)

    assert result.content == THANKS
    assert person.asked == []


# ---- older era: whose question is it


def asked_by(server: str = "zoo") -> Elicitation:
    return Elicitation(server=server, params=FORM, era="handshake")


@requirement("QST-11")
@pytest.mark.parametrize(
    ("running", "respondent", "facts"),
    [
        ([], None, (None, None, "unknown")),
        ([Person("c1", "t1")], 0, ("c1", "t1", "only_call")),
        ([Person(None, None)], 0, (None, None, "unknown")),
        ([None], None, (None, None, "unknown")),
        ([Person("c1", "t1"), Person("c2", "t1")], None, (None, "t1", "unknown")),
        ([Person("c1", "t1"), Person("c2", "t2")], None, (None, None, "unknown")),
        ([Person("c1", "t1"), Person(None, None)], None, (None, None, "unknown")),
        ([Person("c1", "t1"), None], None, (None, None, "unknown")),
    ],
)
def test_a_question_of_an_older_server_is_attributed_as_far_as_honesty_allows(
    running: list[Person | None], respondent: int | None, facts: tuple[str | None, str | None, str]
) -> None:
    in_flight = InFlight()
    numbers = [in_flight.begin(person) for person in running]

    who, known = in_flight.attributed(asked_by(), None)

    assert who is (None if respondent is None else running[respondent])
    assert (known.call_id, known.turn_id, known.certainty) == facts
    for number in numbers:
        in_flight.end(number)
    assert in_flight.attributed(asked_by(), None)[1].call_id is None


@requirement("QST-11")
def test_what_comes_on_the_stream_of_a_request_belongs_to_it_whatever_else_is_in_flight() -> None:
    in_flight, one, other = InFlight(), Person("c1", "t1"), Person("c2", "t1")
    in_flight.begin(one)
    in_flight.begin(other)

    who, known = in_flight.attributed(asked_by(), other)

    assert who is other
    assert (known.call_id, known.turn_id, known.certainty) == ("c2", "t1", "known")


async def elicit(session: FakeSession, params: JsonObject = FORM) -> JsonObject:
    return await session.handlers.on_request["elicitation/create"](params)


@requirement("QST-11")
async def test_the_only_call_in_flight_answers_for_the_question_and_else_the_owner_does() -> None:
    server, owner, person = FakeServer(), Person(None, None, result={"action": "cancel"}), Person()
    async with connected(server, owner) as connection, anyio.create_task_group() as tasks:
        await connection.ready(PATIENCE)
        session = server.sessions[0]
        assert await elicit(session) == {"action": "cancel"}
        assert owner.asked[0][0].certainty == "unknown"

        async def call() -> None:
            await connection.call_tool("ask", {}, timeout=PATIENCE, respondent=person)

        go = server.hold("tools/call")
        tasks.start_soon(call)
        await server.arrivals["tools/call"].wait()
        assert await elicit(session) == ACCEPTED
        assert person.asked[0][0].certainty == "only_call"
        go.set()


@requirement("QST-6")
async def test_a_malformed_question_is_answered_as_invalid_params() -> None:
    server = FakeServer()
    async with connected(server, Person(refusal="it has no message")) as connection:
        await connection.ready(PATIENCE)
        with pytest.raises(RequestRefused) as refused:
            await elicit(server.sessions[0], {})

    assert (refused.value.code, refused.value.message) == (-32602, "it has no message")


@requirement("CON-12")
def test_elicitation_is_advertised_only_with_somebody_to_answer() -> None:
    assert "elicitation" not in SessionHandlers().capabilities()
    assert SessionHandlers(respondent=Person()).capabilities()["elicitation"] == {"form": {}, "url": {}}


# ---- real processes


def question(request_id: Any, **params: Any) -> JsonObject:
    return {"jsonrpc": "2.0", "id": request_id, "method": "elicitation/create", "params": {**FORM, **params}}


@requirement("CON-11", "QST-8")
async def test_deadlines_of_an_older_connection_stand_still_while_a_question_is_open() -> None:
    script = {"tools/call": [{"ask": question("q")}, {"until": "answer"}, {"result": DONE}]}
    person = Person(thinking=thinking_too_long)
    async with connected(None, person, scripted(script, protocol="2025-11-25")) as connection:
        await connection.ready(PATIENCE)
        result = await connection.call_tool("ask", {}, timeout=PATIENCE, respondent=person)

    assert result.content == THANKS


@requirement("QST-1", "QST-8")
async def test_the_two_directions_have_their_own_ids_and_two_questions_may_be_open_at_once() -> None:
    script = {"tools/call": [{"ask": question("$id", message="same id")}, {"ask": question("other")}, {"result": DONE}]}
    both = anyio.Event()

    async def together() -> None:
        if len(person.asked) == 2:
            both.set()
        await both.wait()

    person = Person(thinking=together)
    async with connected(None, person, scripted(script, protocol="2025-11-25")) as connection:
        await connection.call_tool("ask", {}, timeout=PATIENCE, respondent=person)
        await both.wait()
        seen = await connection.call_tool("seen", {}, timeout=PATIENCE)

    assert {asked[0].params["message"] for asked in person.asked} == {"same id", "n?"}
    assert seen is not None


class AsksOnItsStreams:
    """An older server over HTTP: each call asks on its own stream, once both are there, and ends with the answer."""

    def __init__(self) -> None:
        self.open: dict[str, Reply] = {}
        self.both = anyio.Event()
        self.answered = {name: anyio.Event() for name in ("one", "two")}

    async def __call__(self, request: Request, reply: Reply) -> None:
        match request.method, request.message if request.body else {}:
            case "POST", {"method": "initialize"}:
                capabilities = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
                await reply.result(request, {**capabilities, "serverInfo": {"name": "far", "version": "1"}})
            case "POST", {"method": "tools/call", "id": request_id, "params": {"name": name}}:
                await self._ask(name, request_id, reply)
            case "POST", {"id": str(name), "result": _}:
                self.answered[name].set()
                await reply.respond(202)
            case "POST", _:
                await reply.respond(202)
            case _:
                await reply.respond(405)

    async def _ask(self, name: str, request_id: Any, reply: Reply) -> None:
        self.open[name] = reply
        if len(self.open) == 2:
            self.both.set()
        await self.both.wait()
        await reply.head()
        await reply.event(question(name, message=name))
        await self.answered[name].wait()
        await reply.event({"jsonrpc": "2.0", "id": request_id, "result": DONE})


@requirement("QST-11")
async def test_over_http_each_of_two_calls_is_named_by_the_question_on_its_stream() -> None:
    people = {name: Person(call_id=name, turn_id="t1") for name in ("one", "two")}
    async with (
        serving(AsksOnItsStreams()) as server,
        connected(None, Person(None, None), configured(server.url, protocol="2025-11-25")) as connection,
        anyio.create_task_group() as calls,
    ):

        async def call(name: str) -> None:
            result = await connection.call_tool(name, {}, timeout=PATIENCE, respondent=people[name])
            assert result.content == THANKS

        for name in people:
            calls.start_soon(call, name)

    for name, person in people.items():
        ((asked,),) = person.asked
        assert (asked.params["message"], asked.call_id, asked.certainty) == (name, name, "known")


@requirement("QST-5")
async def test_a_question_that_the_server_takes_back_is_withdrawn_and_the_call_goes_on() -> None:
    withdrawn = anyio.Event()

    async def think() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            withdrawn.set()

    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "q"}}
    script = {"tools/call": [{"ask": question("q")}, {"send": cancelled}, {"result": DONE}]}
    person = Person(thinking=think)
    async with connected(None, person, scripted(script, protocol="2025-11-25")) as connection:
        result = await connection.call_tool("ask", {}, timeout=PATIENCE, respondent=person)
        assert result.content == THANKS
        with anyio.fail_after(PATIENCE):
            if person.asked:  # the server may have taken it back before its handler began
                await withdrawn.wait()


@requirement("QST-5")
async def test_a_question_goes_when_its_server_does_and_the_effect_of_the_call_is_unknown() -> None:
    thinking, withdrawn = anyio.Event(), anyio.Event()

    async def think() -> None:
        thinking.set()
        try:
            await anyio.sleep_forever()
        finally:
            withdrawn.set()

    script = {"tools/call": [{"ask": question("q")}, {"sleep": 0.5}, {"exit": 3}]}
    person = Person(thinking=think)
    async with connected(None, person, scripted(script, protocol="2025-11-25")) as connection:
        error = await failure(connection.call_tool("ask", {}, timeout=PATIENCE, respondent=person))
        assert thinking.is_set()
        with anyio.fail_after(PATIENCE):
            await withdrawn.wait()

    assert (error.kind, error.effect) == ("lost", "unknown")
