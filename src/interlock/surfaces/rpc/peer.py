"""One side of a JSON-RPC conversation, without the wire.

Owns: what a frame says, which requests are open in either direction, and that each is settled exactly once (RPC-6).
Never: reads, writes, waits, or knows a method.

The `jsonrpc` member is optional; answers carry it when the other side's first message did.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeAlias, TypeVar

import orjson

from interlock.vocabulary.json import JsonObject, JsonValue, compact

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INTERNAL_ERROR: Final = -32603
OVERLOADED: Final = -32001

BATCH_LIMIT: Final = 100
"""Messages of one batch."""
REQUEST_LIMIT: Final = 256
"""Requests of one connection that may be open at a time."""

RequestId: TypeAlias = int | str
Waiter = TypeVar("Waiter")

HALF_CHARACTERS_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of a frame in which half characters are looked for; that takes a second parser."""

_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")
_EARLY_ID = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"[^"]*"\s*,\s*)?(?:"method"\s*:\s*"[^"\\]{1,200}"\s*,\s*)?'
    rb'"id"\s*:\s*(?:(\d{1,18})|"([^"\\]{1,200})")\s*[,}]'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WireError:
    """The `error` of an answer."""

    code: int
    message: str
    data: JsonValue = None


@dataclass(slots=True, eq=False)
class _Batch:
    """The answers to one batch, sent together once the last is there."""

    missing: int
    answers: list[bytes] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """To be answered once, by `Peer.respond` or `Peer.fail`."""

    id: RequestId
    method: str
    params: JsonValue
    batch: _Batch | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    method: str
    params: JsonValue


@dataclass(frozen=True, slots=True)
class Answered(Generic[Waiter]):
    """The other side settled a request of ours. Without `error`, `result` is what it sent."""

    waiter: Waiter
    result: JsonValue = None
    error: WireError | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """Bytes to be sent at once: the answer to something that was refused."""

    frame: bytes


Received: TypeAlias = Request | Notification | Answered[Waiter] | Reply


class Peer(Generic[Waiter]):
    """Parses each frame once. A `Waiter` is whatever the owner wants back with the answer to a request of ours."""

    def __init__(self, *, batch_limit: int = BATCH_LIMIT, request_limit: int = REQUEST_LIMIT) -> None:
        self._batch_limit = batch_limit
        self._request_limit = request_limit
        self._versioned: bool | None = None
        self._open: dict[tuple[type, RequestId], Request] = {}
        self._asked: dict[int, Waiter] = {}
        self._next_id = 0
        self._closed = False

    def __repr__(self) -> str:
        return f"<Peer open={len(self._open)} asked={len(self._asked)} closed={self._closed}>"

    @property
    def versioned(self) -> bool:
        """Whether our messages carry the `jsonrpc` member."""
        return self._versioned is True

    @property
    def open_requests(self) -> int:
        return len(self._open)

    # ---- what comes in

    def receive(self, frame: bytes) -> list[Received[Waiter]]:
        """What a frame holds, in order: one message, or a batch of them. An empty line holds nothing."""
        if self._closed or not frame or frame.isspace():
            return []
        try:
            message = _parsed(frame)
        except ValueError as error:
            return [self._refuse(PARSE_ERROR, f"a message must be one line of JSON in UTF-8: {error}")]
        if isinstance(message, list):
            return list(self._receive_batch(message))
        return [one for one in [self._receive_one(message, None)] if one is not None]

    def too_long(self, head: bytes, limit: int) -> Reply:
        """The answer to a frame that was thrown away; `head` is its beginning, for the id."""
        match = _EARLY_ID.match(head)
        identity: RequestId | None = None
        if match is not None:
            number, text = match.groups()
            identity = int(number) if number is not None else text.decode("utf-8", "replace")
        return self._refuse(
            INVALID_REQUEST, f"a message may be at most {limit} bytes long; send less at once", identity
        )

    def _receive_batch(self, messages: list[JsonValue]) -> Iterator[Received[Waiter]]:
        if not messages or len(messages) > self._batch_limit:
            sentence = f"a batch holds 1 to {self._batch_limit} messages, not {len(messages)}"
            yield self._refuse(INVALID_REQUEST, sentence)
            return
        batch = _Batch(missing=1)  # one more than there are, until all have been looked at
        for message in messages:
            one = self._receive_one(message, batch)
            if one is not None:
                yield one
        whole = _completed(batch, None)
        if whole is not None:
            yield Reply(whole)

    def _receive_one(self, message: JsonValue, batch: _Batch | None) -> Received[Waiter] | None:
        if not isinstance(message, dict):
            return self._refused(INVALID_REQUEST, "a message must be a JSON object", None, batch)
        if self._versioned is None:
            self._versioned = "jsonrpc" in message
        if "method" not in message:
            return self._receive_answer(message, batch)
        method, params = message["method"], message.get("params")
        if "id" not in message:
            if isinstance(method, str):
                return Notification(method, params)
            return self._refused(INVALID_REQUEST, "`method` must be a string", None, batch)
        return self._receive_request(message["id"], method, params, batch)

    def _receive_request(
        self, identity: JsonValue, method: JsonValue, params: JsonValue, batch: _Batch | None
    ) -> Received[Waiter] | None:
        if not _is_id(identity):
            return self._refused(INVALID_REQUEST, "`id` must be a string or a 64-bit integer", None, batch)
        if not isinstance(method, str):
            return self._refused(INVALID_REQUEST, "`method` must be a string", identity, batch)
        key = (type(identity), identity)
        if key in self._open:
            return self._refused(INVALID_REQUEST, "a request of that id is open already", identity, batch)
        if len(self._open) >= self._request_limit:
            sentence = (
                f"the server is overloaded: {self._request_limit} requests of this connection are open; retry later"
            )
            return self._refused(OVERLOADED, sentence, identity, batch)
        request = self._open[key] = Request(identity, method, params, batch)
        if batch is not None:
            batch.missing += 1
        return request

    def _receive_answer(self, message: dict[str, Any], batch: _Batch | None) -> Received[Waiter] | None:
        identity = message.get("id")
        if type(identity) is int and identity in self._asked:
            waiter = self._asked.pop(identity)
            return Answered(waiter, message.get("result"), _error_of(message))
        if "result" in message or "error" in message:
            return None  # late, or an answer to nothing
        known = identity if _is_id(identity) else None
        return self._refused(INVALID_REQUEST, "a message must have a `method`, a `result` or an `error`", known, batch)

    # ---- what goes out

    def respond(self, request: Request, result: JsonValue) -> bytes | None:
        """The frame that answers `request`; None: nothing to send (yet: its batch is not whole; or ever)."""
        if not self._settle(request):
            return None
        try:
            answer = self._frame({"id": request.id, "result": result})
        except ValueError:
            answer = self._error(
                request.id, INTERNAL_ERROR, f"the result of {request.method} cannot be written as JSON"
            )
        return answer if request.batch is None else _completed(request.batch, answer)

    def fail(self, request: Request, error: WireError) -> bytes | None:
        """The same with an error."""
        if not self._settle(request):
            return None
        answer = self._error(request.id, error.code, error.message, error.data)
        return answer if request.batch is None else _completed(request.batch, answer)

    def notification(self, method: str, params: JsonObject) -> bytes:
        return self._frame({"method": method, "params": params})

    def ask(self, method: str, params: JsonObject, waiter: Waiter) -> tuple[int, bytes]:
        """A request of ours: its id, and the frame."""
        identity = self._next_id
        self._next_id += 1
        frame = self._frame({"method": method, "id": identity, "params": params})
        if not self._closed:
            self._asked[identity] = waiter
        return identity, frame

    def forget(self, identity: int) -> None:
        """Nobody waits for the answer to that request any more; if it comes, it is ignored."""
        self._asked.pop(identity, None)

    def close(self) -> tuple[Waiter, ...]:
        """Nothing is received or answered from now on; whoever still waited for an answer is returned."""
        self._closed = True
        waiting = tuple(self._asked.values())
        self._asked.clear()
        self._open.clear()
        return waiting

    # ---- inside

    def _settle(self, request: Request) -> bool:
        """True once for every request that is open."""
        key = (type(request.id), request.id)
        if self._closed or self._open.get(key) is not request:
            return False
        del self._open[key]
        return True

    def _refused(
        self, code: int, sentence: str, identity: RequestId | None, batch: _Batch | None
    ) -> Received[Waiter] | None:
        if batch is None:
            return self._refuse(code, sentence, identity)
        batch.answers.append(self._error(identity, code, sentence))
        return None

    def _refuse(self, code: int, sentence: str, identity: RequestId | None = None) -> Reply:
        return Reply(self._error(identity, code, sentence))

    def _error(self, identity: RequestId | None, code: int, message: str, data: JsonValue = None) -> bytes:
        error = {"code": code, "message": message}
        return self._frame({"id": identity, "error": error if data is None else {**error, "data": data}})

    def _frame(self, message: dict[str, Any]) -> bytes:
        return encode({"jsonrpc": "2.0", **message} if self._versioned else message)


def encode(message: JsonObject) -> bytes:
    """One message as JSON without a line feed. ValueError: it holds what JSON cannot carry."""
    try:
        return orjson.dumps(message, default=_plain)
    except orjson.JSONEncodeError:
        return compact(message).encode("utf-8")


def _parsed(frame: bytes) -> JsonValue:
    """The JSON of a frame. ValueError: it is none.

    Clients that cut a text between the halves of a character write the half as an escape, which JSON permits and a
    careful parser refuses. Such a half becomes U+FFFD: without its frame, a request would have no answer.
    """
    try:
        return orjson.loads(frame)
    except orjson.JSONDecodeError:
        if len(frame) > HALF_CHARACTERS_LIMIT or _HALF_CHARACTER.search(frame) is None:
            raise
    try:
        text = json.dumps(json.loads(frame), ensure_ascii=False)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return orjson.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def _plain(value: object) -> dict[Any, Any] | list[Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _completed(batch: _Batch, answer: bytes | None) -> bytes | None:
    """Count one answer; the whole batch once nothing is missing. A batch without requests has no answer."""
    if answer is not None:
        batch.answers.append(answer)
    batch.missing -= 1
    if batch.missing or not batch.answers:
        return None
    return b"[" + b",".join(batch.answers) + b"]"


def _is_id(value: JsonValue) -> bool:
    return isinstance(value, str) or (type(value) is int and -(2**63) <= value < 2**63)


def _error_of(message: dict[str, Any]) -> WireError | None:
    """The error of an answer; one that has neither result nor a readable error counts as an error too."""
    if "error" not in message:
        return None if "result" in message else WireError(code=INVALID_REQUEST, message="the answer has no result")
    error = message["error"]
    if not isinstance(error, dict):
        return WireError(code=INVALID_REQUEST, message="the answer's error is no object")
    code, text = error.get("code"), error.get("message")
    return WireError(
        code=code if type(code) is int else INTERNAL_ERROR,
        message=text if isinstance(text, str) else "",
        data=error.get("data"),
    )
