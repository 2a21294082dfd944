"""The peer without a wire: every request has its one answer, whatever the frames hold."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from interlock.surfaces.rpc.peer import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    OVERLOADED,
    PARSE_ERROR,
    Answered,
    Notification,
    Peer,
    Reply,
    Request,
    WireError,
)
from tests.manifest import requirement

FAILED = WireError(code=METHOD_NOT_FOUND, message="no")


def frame(message: Any) -> bytes:
    return json.dumps(message).encode()


def only(peer: Peer[str], message: Any) -> Any:
    (received,) = peer.receive(frame(message))
    return received


def decoded(data: bytes | None) -> Any:
    assert data is not None
    assert b"\n" not in data
    return json.loads(data)


@pytest.mark.parametrize("versioned", [False, True])
def test_answers_are_in_the_style_of_the_first_message(versioned: bool) -> None:
    peer: Peer[str] = Peer()
    style = {"jsonrpc": "2.0"} if versioned else {}
    request = only(peer, {**style, "id": 1, "method": "m"})
    assert decoded(peer.respond(request, {"a": 1})) == {**style, "id": 1, "result": {"a": 1}}
    assert decoded(peer.notification("n", {})) == {**style, "method": "n", "params": {}}
    other = only(peer, {"jsonrpc": "2.0", "id": 2, "method": "m"})
    assert ("jsonrpc" in decoded(peer.fail(other, FAILED))) is versioned


def test_an_answer_goes_to_whoever_asked_and_a_second_one_to_nobody() -> None:
    peer: Peer[str] = Peer()
    first, data = peer.ask("q", {"x": 1}, "one")
    second, _ = peer.ask("q", {}, "two")
    assert decoded(data) == {"method": "q", "id": first, "params": {"x": 1}}
    assert only(peer, {"id": second, "result": 2}) == Answered("two", 2)
    assert peer.receive(frame({"id": second, "result": 3})) == []
    error = only(peer, {"id": first, "error": {"code": -1, "message": "no", "data": [1]}})
    assert error == Answered("one", None, WireError(code=-1, message="no", data=[1]))


@pytest.mark.parametrize("broken", [{}, {"error": "x"}, {"error": {"code": "x"}}, {"error": None}])
def test_a_broken_answer_settles_its_request_as_an_error(broken: dict[str, Any]) -> None:
    peer: Peer[str] = Peer()
    identity, _ = peer.ask("q", {}, "one")
    answered = only(peer, {"id": identity, **broken})
    assert (answered.waiter, answered.error is None) == ("one", False)


def test_whoever_waits_when_the_conversation_ends_is_given_back() -> None:
    peer: Peer[str] = Peer()
    peer.ask("q", {}, "one")
    gone, _ = peer.ask("q", {}, "two")
    peer.forget(gone)
    request = only(peer, {"id": 1, "method": "m"})
    assert peer.close() == ("one",)
    assert peer.close() == ()
    assert peer.respond(request, {}) is None
    assert peer.receive(frame({"id": 2, "method": "m"})) == []


def test_a_request_is_answered_once() -> None:
    peer: Peer[str] = Peer()
    request = only(peer, {"id": "a", "method": "m"})
    assert peer.respond(request, 1) is not None
    assert peer.respond(request, 2) is None
    assert peer.fail(request, FAILED) is None
    again = only(peer, {"id": "a", "method": "m"})
    assert isinstance(again, Request)
    assert peer.respond(request, 3) is None
    assert peer.respond(again, 4) is not None


def test_ids_of_different_types_are_different() -> None:
    peer: Peer[str] = Peer()
    one, text = only(peer, {"id": 1, "method": "m"}), only(peer, {"id": "1", "method": "m"})
    assert decoded(peer.respond(text, 0))["id"] == "1"
    assert decoded(peer.respond(one, 0))["id"] == 1


@requirement("RPC-6")
@pytest.mark.parametrize(
    ("message", "code", "identity"),
    [
        (b"{", PARSE_ERROR, None),
        (b"\xff", PARSE_ERROR, None),
        (b"[" * 5000, PARSE_ERROR, None),
        (b"1", INVALID_REQUEST, None),
        (b"null", INVALID_REQUEST, None),
        (b"{}", INVALID_REQUEST, None),
        (b"[]", INVALID_REQUEST, None),
        (b'{"id":7}', INVALID_REQUEST, 7),
        (b'{"id":1.5,"method":"m"}', INVALID_REQUEST, None),
        (b'{"id":true,"method":"m"}', INVALID_REQUEST, None),
        (b'{"id":null,"method":"m"}', INVALID_REQUEST, None),
        (b'{"id":9223372036854775808,"method":"m"}', INVALID_REQUEST, None),
        (b'{"id":7,"method":null}', INVALID_REQUEST, 7),
        (b'{"method":5}', INVALID_REQUEST, None),
    ],
)
def test_what_is_malformed_is_answered_once(message: bytes, code: int, identity: int | None) -> None:
    (received,) = Peer[str]().receive(message)
    assert isinstance(received, Reply)
    answer = decoded(received.frame)
    assert (answer["error"]["code"], answer["id"]) == (code, identity)


def test_an_empty_line_is_nothing() -> None:
    assert Peer[str]().receive(b"  \r") == []


@requirement("RPC-6")
def test_too_many_open_requests_are_refused_and_the_open_ones_stand() -> None:
    peer: Peer[str] = Peer(request_limit=2)
    first, _ = only(peer, {"id": 1, "method": "m"}), only(peer, {"id": 2, "method": "m"})
    refused = decoded(only(peer, {"id": 3, "method": "m"}).frame)
    assert (refused["id"], refused["error"]["code"]) == (3, OVERLOADED)
    assert decoded(only(peer, {"id": 1, "method": "m"}).frame)["error"]["code"] == INVALID_REQUEST
    assert peer.respond(first, {}) is not None
    assert isinstance(only(peer, {"id": 3, "method": "m"}), Request)


def test_a_batch_is_answered_in_one_when_all_of_it_is_answered() -> None:
    peer: Peer[str] = Peer()
    batch = [{"id": 1, "method": "a"}, {"method": "n"}, 5, {"id": 2, "method": "b"}]
    first, note, second = peer.receive(frame(batch))
    assert isinstance(first, Request)
    assert isinstance(second, Request)
    assert note == Notification("n", None)
    assert peer.respond(second, "b") is None
    answers = decoded(peer.respond(first, "a"))
    assert [answer["id"] for answer in answers] == [None, 2, 1]


def test_a_batch_of_notifications_has_no_answer_and_a_large_one_is_refused() -> None:
    peer: Peer[str] = Peer(batch_limit=2)
    assert peer.receive(frame([{"method": "n"}] * 2)) == [Notification("n", None)] * 2
    (refused,) = peer.receive(frame([{"id": 1, "method": "m"}] * 3))
    assert isinstance(refused, Reply)


def test_a_result_that_is_no_json_is_an_error_and_odd_text_goes_through() -> None:
    peer: Peer[str] = Peer()
    request = only(peer, {"id": 1, "method": "m"})
    assert decoded(peer.respond(request, {"a": object()}))["error"]["code"] == -32603
    odd = only(peer, {"id": 1, "method": "m"})
    assert decoded(peer.respond(odd, {"a": "\ud800", "b": 2**70}))["result"] == {"a": "\ud800", "b": 2**70}


@pytest.mark.parametrize(
    ("head", "identity"),
    [
        (b'{"id":5,"method":"turn/start","params":{"input":"aaaa', 5),
        (b'{"jsonrpc":"2.0","method":"m","id":"x","params":{', "x"),
        (b'{"method":"m","params":{"id":5,', None),
        (b"aaaaaaaa", None),
    ],
)
def test_a_frame_that_is_too_long_is_refused_under_its_id(head: bytes, identity: Any) -> None:
    answer = decoded(Peer[str]().too_long(head, 10).frame)
    assert (answer["id"], answer["error"]["code"]) == (identity, INVALID_REQUEST)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", 2]),
        "id": st.integers(-2, 5) | st.sampled_from(["a", "1"]) | JSON,
        "method": st.sampled_from(["a", "b"]) | JSON,
        "params": JSON,
        "result": JSON,
        "error": JSON,
    },
)


@requirement("RPC-6")
@given(st.binary(max_size=60) | JSON.map(frame) | st.lists(MESSAGES, max_size=4).map(frame))
def test_no_frame_breaks_the_peer(data: bytes) -> None:
    peer: Peer[str] = Peer(batch_limit=3)
    for received in peer.receive(data):
        if isinstance(received, Request):
            peer.respond(received, {})
    assert peer.open_requests == 0


class Conversation(RuleBasedStateMachine):
    """Both sides ask and answer in any order: every request has exactly one answer under its own id."""

    def __init__(self) -> None:
        super().__init__()
        self.peer: Peer[int] = Peer(request_limit=4)
        self.owed: list[int | str] = []
        self.open: list[Request] = []
        self.asked: dict[int, int] = {}

    def settle(self, data: bytes | None) -> None:
        assert data is not None
        identity = json.loads(data)["id"]
        self.owed.remove(identity)

    @rule(identity=st.integers(0, 5) | st.sampled_from(["0", "a"]), method=st.sampled_from(["m", 5]))
    def request(self, identity: int | str, method: Any) -> None:
        self.owed.append(identity)
        (received,) = self.peer.receive(frame({"id": identity, "method": method}))
        if isinstance(received, Request):
            self.open.append(received)
        else:
            assert isinstance(received, Reply)
            self.settle(received.frame)

    @rule(place=st.integers(0, 3), fail=st.booleans())
    def answer(self, place: int, fail: bool) -> None:
        if place < len(self.open):
            request = self.open.pop(place)
            self.settle(self.peer.fail(request, FAILED) if fail else self.peer.respond(request, 1))
            assert self.peer.respond(request, 2) is None

    @rule()
    def ask(self) -> None:
        number = len(self.asked)
        identity, _ = self.peer.ask("q", {}, number)
        self.asked[identity] = number

    @rule(identity=st.integers(-1, 6))
    def be_answered(self, identity: int) -> None:
        received = self.peer.receive(frame({"id": identity, "result": 1}))
        waiter = self.asked.pop(identity, None)
        assert received == ([] if waiter is None else [Answered(waiter, 1)])

    @invariant()
    def owes_what_is_open(self) -> None:
        assert sorted(map(repr, self.owed)) == sorted(repr(request.id) for request in self.open)


TestConversation = Conversation.TestCase


@requirement("RPC-6")
@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb'"cut \ud83d"', "cut \ufffd"),
        (rb'"\ude00 off"', "\ufffd off"),
        (rb'"\ud83d\ude00 whole, \uD83D half"', "\U0001f600 whole, \ufffd half"),
        (rb'{"a\ud83d": [1, "\\ud83d"]}', {"a\ufffd": [1, "\\ud83d"]}),
    ],
)
def test_half_a_character_costs_itself_and_not_the_answer(written: bytes, read: object) -> None:
    peer: Peer[str] = Peer()
    (request,) = peer.receive(b'{"id": 7, "method": "x", "params": ' + written + b"}")
    assert isinstance(request, Request)
    assert (request.id, request.params) == (7, read)
    frame = peer.respond(request, request.params)
    assert frame is not None
    assert json.loads(frame)["result"] == read


@pytest.mark.parametrize(
    "frame", [rb'{"id": 1, "method": "\ud83d"', b'["\\ud83d", NaN]', b"[" * 100_000 + rb'"\ud83d"', b'"\\ud83d", 1']
)
def test_what_is_no_json_is_none_with_half_a_character_either(frame: bytes) -> None:
    (reply,) = Peer[str]().receive(frame)
    assert isinstance(reply, Reply)
    assert json.loads(reply.frame)["error"]["code"] == -32700
