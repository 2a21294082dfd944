"""What a server asks of us.

Owns: the requests of the server that are being answered, and which of them get an answer at all (CON-12).
Never: knows what a question means, sends anything itself, or lets a server have more than a few at once.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

import anyio
import anyio.abc

from interlock.connections.bell import Bell
from interlock.connections.diagnostics import Diagnostics
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.ports import Respondent

METHOD_NOT_FOUND, INTERNAL_ERROR = -32601, -32603
AT_ONCE = 64
"""Requests of one server that are worked on at the same time; further ones are refused at once."""

OnRequest: TypeAlias = Callable[[JsonObject], Awaitable[JsonObject]]
"""Answers a server's request: params in, result out. Cancelled when the server takes the request back."""

Post: TypeAlias = Callable[[JsonObject], None]


ASKED_WITHIN: Final[ContextVar[Respondent | None]] = ContextVar("ASKED_WITHIN", default=None)
"""For a handler: who answers for the one request of ours that the server asks about, where its transport says so."""


class RequestRefused(Exception):
    """Raised by a handler to answer with a JSON-RPC error; the message is shown to the server."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ServerRequests:
    """Answers requests through `post`, which never waits. `enabled` is False in the stateless era: a server of
    2026-07-28 sends no requests, and must not be sent responses (specification: stdio transport). `farewells` are the
    results, by method, of requests that are still open when we end the session; others get an error."""

    def __init__(
        self,
        handlers: Mapping[str, OnRequest],
        post: Post,
        diagnostics: Diagnostics,
        farewells: Mapping[str, JsonObject] | None = None,
    ) -> None:
        self.handlers = handlers
        self.enabled = True
        self._post = post
        self._diagnostics = diagnostics
        self._farewells = farewells or {}
        self._open: dict[int | str, anyio.CancelScope] = {}
        self._given_up: set[int | str] = set()
        self._ending = False
        self._closed = Bell()

    def __repr__(self) -> str:
        return f"<ServerRequests open={len(self._open)}>"

    def take(
        self,
        request_id: Any,
        method: str,
        params: JsonObject,
        group: anyio.abc.TaskGroup,
        *,
        respondent: Respondent | None = None,
    ) -> None:
        """Answer at once, or start the handler. `respondent` is what ASKED_WITHIN tells the handler."""
        if type(request_id) not in (int, str):
            self._diagnostics.count("bad_request", f"{method} with an id that is neither string nor integer")
        elif not self.enabled:
            self._diagnostics.count("bad_request", f"{method}: the protocol of this server has no server requests")
        elif method == "ping":
            self._post(_result(request_id, {}))
        elif method not in self.handlers:
            self._post(_error(request_id, METHOD_NOT_FOUND, f"method not found: {method[:100]}"))
        elif request_id in self._open:
            self._diagnostics.count("bad_request", f"{method} with the id of a request that is still open")
        elif self._ending:
            self._post(self._farewell(request_id, method))
        elif len(self._open) >= AT_ONCE:
            self._post(_error(request_id, INTERNAL_ERROR, f"more than {AT_ONCE} requests are open already"))
        else:
            scope = self._open[request_id] = anyio.CancelScope()
            group.start_soon(self._serve, request_id, method, params, scope, respondent)

    def withdraw(self, request_id: Any) -> None:
        """The server cancelled its request: the handler is cancelled, nothing is answered. Unknown ids mean nothing."""
        if type(request_id) in (int, str) and (scope := self._open.get(request_id)) is not None:
            scope.cancel()

    async def give_up(self) -> None:
        """The session ends: cancel the handlers, and return once every open request has its last word."""
        self._ending = True
        for request_id, scope in self._open.items():
            if not scope.cancel_called:  # else the server took it back, and is answered nothing
                self._given_up.add(request_id)
                scope.cancel()
        while self._open:
            await self._closed.next_ring()

    def _farewell(self, request_id: int | str, method: str) -> JsonObject:
        if method in self._farewells:
            return _result(request_id, self._farewells[method])
        return _error(request_id, INTERNAL_ERROR, "the client ends this session")

    async def _serve(
        self,
        request_id: int | str,
        method: str,
        params: JsonObject,
        scope: anyio.CancelScope,
        respondent: Respondent | None,
    ) -> None:
        ASKED_WITHIN.set(respondent)  # this task is the request's own
        try:
            with scope:
                self._post(await self._answer(request_id, method, params))
            if scope.cancelled_caught and request_id in self._given_up:
                self._post(self._farewell(request_id, method))
        finally:
            del self._open[request_id]
            self._closed.ring()

    async def _answer(self, request_id: int | str, method: str, params: JsonObject) -> JsonObject:
        try:
            return _result(request_id, await self.handlers[method](params))
        except RequestRefused as refusal:
            return _error(request_id, refusal.code, refusal.message, refusal.data)
        except Exception as error:
            # The server learns nothing of what broke here; the owner of the handler does.
            self._diagnostics.count("handler_failed", f"{method}: {type(error).__name__}: {error}")
            return _error(request_id, INTERNAL_ERROR, "the client could not handle the request")


def _result(request_id: int | str, result: JsonObject) -> JsonObject:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def _error(request_id: int | str, code: int, message: str, data: Any = None) -> JsonObject:
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": request_id, "error": error}
