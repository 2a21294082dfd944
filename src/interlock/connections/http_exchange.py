"""One request over Streamable HTTP: its POST, and whatever brings its answer.

Owns: the kinds of answer (JSON, event stream, refusal), resumption, the session id and protocol headers.
Never: starts a task, repeats a POST, or tells the dispatcher of a failure; it raises, the channel tells.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import aiohttp
import anyio
import orjson
from multidict import CIMultiDict

from interlock.connections.event_stream import EventStream, ServerSentEvent
from interlock.connections.http_client import HttpClient
from interlock.connections.http_listening import (
    LINGER_SECONDS,
    content_type,
    is_event_stream,
    linger,
    pause,
    read_events,
    resuming,
)
from interlock.connections.inbox import Inbox, NotJson, RequestId
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.server import Era

POST_HEADERS: Final = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
GET_HEADERS: Final = {"Accept": "text/event-stream"}
SESSION_ID: Final = "Mcp-Session-Id"
PROTOCOL_VERSION: Final = "MCP-Protocol-Version"

NO_ANSWER: Final = frozenset({HTTPStatus.ACCEPTED, HTTPStatus.NO_CONTENT})
METHOD_NOT_FOUND: Final = -32601
SESSION_ERRORS: Final = frozenset({-32000, -32001, -32600})
"""Codes of the official SDKs' servers for a request whose session they do not know."""

MOST_FRUITLESS_TRIES: Final = 5
"""Resumptions in a row that brought not even a new event id."""
SLOWEST_TRY: Final = 3
"""The pause between resumptions grows this often only: somebody waits for the answer."""


@dataclass(slots=True)
class HttpSession:
    """What later requests of one channel have to repeat. All None until the server and negotiation said it."""

    session_id: str | None = None
    era: Era | None = None
    protocol_version: str | None = None

    def headers(self, base: Mapping[str, str], extra: Mapping[str, str] | None = None) -> CIMultiDict[str]:
        headers = CIMultiDict(base)
        if self.session_id is not None:
            headers[SESSION_ID] = self.session_id
        if self.protocol_version is not None:
            headers[PROTOCOL_VERSION] = self.protocol_version
        if extra:
            headers.update(extra)
        return headers


@dataclass(slots=True, kw_only=True)
class Call:
    """One request on its way. `answered` once its own answer was handed on."""

    request_id: RequestId
    method: str
    body: bytes
    headers: Mapping[str, str] | None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    answered: bool = False
    too_large: bool = False

    @property
    def what(self) -> str:
        return repr(self.method)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Asks one server. `limit` is in bytes, for one JSON body and for one event."""

    client: HttpClient
    session: HttpSession
    inbox: Inbox
    limit: int

    async def ask(self, call: Call) -> None:
        """Send the request and hand on all that comes back for it.

        Raises:
            ServerFailed: there will be no answer; facts as listed in `http_failures`.
        """
        first = call.method == "initialize"
        if first:
            self.session.session_id = None  # a handshake begins without one
        session_id = self.session.session_id
        headers = self.session.headers(POST_HEADERS, call.headers)
        response = await self.client.request("POST", headers, what=call.what, body=call.body)
        try:
            if response.status >= 300:
                await self._refusal(response, call, session_id)
                return
            if first:
                self.session.session_id = response.headers.get(SESSION_ID)
            if is_event_stream(response):
                await self._stream(response, call)
            else:
                await self._body(response, call)
        finally:
            response.close()

    async def tell(self, body: bytes, headers: Mapping[str, str] | None, what: str) -> None:
        """Send a notification or a response; any 2xx will do.

        Raises:
            ServerFailed: the server did not take it.
        """
        session_id = self.session.session_id
        response = await self.client.request("POST", self.session.headers(POST_HEADERS, headers), what=what, body=body)
        try:
            if response.status < 300:
                await linger(response)
                return
            said = await self.client.refusal_body(response)
            if session_id is not None and means_lost_session(response.status, rpc_error(said), None):
                raise self.client.failures.session_lost(response.status, "none")
            raise self.client.failures.refused(response, what, said)
        finally:
            response.close()

    async def _body(self, response: aiohttp.ClientResponse, call: Call) -> None:
        if response.status in NO_ANSWER:
            raise self._unusable(response, call, "without an answer")
        if content_type(response) not in {"application/json", ""}:
            raise self.client.failures.wrong_type(response, call.what, await self.client.refusal_body(response))
        body = await self.client.read(response, self.limit, what=call.what)
        try:
            call.answered = self.inbox.take(body, call.request_id)
        except NotJson:
            said = self.client.failures.excerpt(body) or "an empty body"
            raise self._unusable(response, call, f"with what is not JSON: {said}") from None
        if not call.answered:
            raise self._unusable(response, call, "with a message that is not the response to it")

    async def _refusal(self, response: aiohttp.ClientResponse, call: Call, session_id: str | None) -> None:
        body = await self.client.refusal_body(response)
        error = rpc_error(body)
        if session_id is not None and means_lost_session(response.status, error, call.request_id):
            raise self.client.failures.session_lost(response.status, "none")
        if error is None or response.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise self.client.failures.refused(response, call.what, body)
        call.answered = True  # servers that refused before they read the id send null, or a word of their own
        # …and its error alone: with a method or a result beside it, it would be no refusal.
        self.inbox.receiver.message({"jsonrpc": "2.0", "id": call.request_id, "error": error["error"]})

    async def _stream(self, response: aiohttp.ClientResponse, call: Call) -> None:
        stream = EventStream(self.limit)
        await self._events(response, stream, call)
        tries = fruitless = 0
        while not call.answered:
            if call.too_large:
                raise self._unusable(
                    response, call, f"with an event over {self.limit} bytes; raise line_limit to accept it"
                )
            if self.session.era == "stateless" or not stream.last_event_id or fruitless >= MOST_FRUITLESS_TRIES:
                raise self._ended(call)
            await anyio.sleep(pause(stream, min(tries, SLOWEST_TRY)))
            before, stream = stream.last_event_id, stream.again()
            await self._resume(stream, call)
            fruitless = fruitless + 1 if stream.last_event_id == before else 0
            tries += 1

    async def _resume(self, stream: EventStream, call: Call) -> None:
        """Go on after the newest event (specification 2025-11-25 basic/transports: resumability)."""
        headers = self.session.headers(GET_HEADERS, resuming(stream))
        try:
            response = await self.client.request("GET", headers, what=f"the resumption of {call.what}")
        except ServerFailed:
            return  # a fruitless try
        try:
            if response.status == HTTPStatus.NOT_FOUND and self.session.session_id is not None:
                raise self.client.failures.session_lost(response.status, "unknown")
            if is_event_stream(response):
                await self._events(response, stream, call)
            elif response.status < 500 and response.status != HTTPStatus.TOO_MANY_REQUESTS:
                raise self._ended(call)
        finally:
            response.close()

    async def _events(self, response: aiohttp.ClientResponse, stream: EventStream, call: Call) -> None:
        def take(event: ServerSentEvent) -> bool:
            call.too_large = call.too_large or event.too_large
            call.answered = self.inbox.take_event(event, call.request_id) or call.answered
            return call.answered or call.too_large

        await read_events(response, stream, take)
        if call.answered:  # a stream that ends now leaves a connection that can serve again
            with anyio.move_on_after(LINGER_SECONDS):
                await read_events(response, stream, self.inbox.take_event)

    def _ended(self, call: Call) -> ServerFailed:
        text = f"server {self.client.server!r} ended the event stream of {call.what} without an answer"
        return self.client.failures.failed(text, kind="lost", effect="unknown")

    def _unusable(self, response: aiohttp.ClientResponse, call: Call, how: str) -> ServerFailed:
        text = f"server {self.client.server!r} answered {call.what} (HTTP {response.status}) {how}"
        return self.client.failures.failed(text, kind="protocol", effect="unknown", status=response.status)


def rpc_error(body: bytes) -> dict[str, Any] | None:
    """The JSON-RPC error response in the body of a 4xx or 5xx, if that is what it is."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("error"), dict):
        return None
    return value if isinstance(value["error"].get("code"), int) else None


def means_lost_session(status: int, error: dict[str, Any] | None, request_id: RequestId | None) -> bool:
    """Whether a refusal of a request that bore a session id says that the session is gone.

    404 does (specification 2025-11-25 basic/transports: session management), unless it is the error of a server that
    knows no such method. So does the 400 "no valid session ID" of many servers made after the official examples.
    """
    code = error["error"]["code"] if error else None
    ours = error is not None and request_id is not None and error.get("id") == request_id
    if status == HTTPStatus.NOT_FOUND:
        return not (ours and code == METHOD_NOT_FOUND)
    if status == HTTPStatus.BAD_REQUEST and error is not None and not ours and code in SESSION_ERRORS:
        said = error["error"].get("message")
        return isinstance(said, str) and "session" in said.lower()
    return False
