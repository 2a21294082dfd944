"""MCP over Streamable HTTP, in both eras, as a Channel.

Owns: the tasks that carry messages, and the verdict whether a failure ends one request or the whole channel.
Never: repeats a POST, opens a new session, or waits for a deadline; the dispatcher and supervision do.

For negotiation: a request that came to nothing is told by `Receiver.failed` with the facts that `http_failures` lists
(`status` above all: a 4xx to the first request means an older server, perhaps one of HTTP+SSE). A JSON-RPC error in
the body of a 4xx or 5xx is an answer, so it goes to `Receiver.message`, under the request's own id.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

import anyio
import anyio.abc
from multidict import CIMultiDict

from interlock.connections.channel import Receiver
from interlock.connections.http_client import HttpClient
from interlock.connections.http_exchange import GET_HEADERS, Call, Exchange, HttpSession
from interlock.connections.http_listening import Listener
from interlock.connections.inbox import Inbox, RequestId
from interlock.connections.posting import Errands
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject, compact
from interlock.vocabulary.server import Era, ServerConfig

GOODBYE_SECONDS: Final = 1.5
"""For the DELETE of the session, which some servers never answer."""


class HttpChannel:
    """A server at a URL (config.transport is an HttpTransport), spoken to by POST (CON-4).

    `body_limit` bounds one JSON body and one event, in bytes; by default it is the server's line_limit (CON-8).

    Raises (the constructor):
        ServerFailed: the URL or a header cannot be used (effect none).
    """

    sending_waits = True

    def __init__(self, config: ServerConfig, *, body_limit: int | None = None) -> None:
        self._client = HttpClient(config)
        self._session = HttpSession()
        self._limit = body_limit or config.line_limit
        self._calls: dict[RequestId, Call] = {}
        self._errands = Errands()
        self._exchange: Exchange | None = None
        self._group: anyio.abc.TaskGroup | None = None
        self._end: ServerFailed | None = None
        self._redirect_told = False

    async def run(
        self, receiver: Receiver, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """See Channel. Nothing is connected before the first message; it ends when cancelled or its session is lost."""
        inbox = Inbox(receiver)
        self._exchange = Exchange(client=self._client, session=self._session, inbox=inbox, limit=self._limit)
        async with self._client.opened():
            try:
                async with anyio.create_task_group() as group:
                    self._group = group
                    task_status.started()
                    await anyio.sleep_forever()
            finally:
                self._group = None
                await self._say_goodbye()

    async def send(self, message: JsonObject, *, headers: Mapping[str, str] | None = None) -> None:
        """POST `message`. Requests go side by side: this returns at once, without the answer.

        Only notifications/initialized is waited for, as what follows must not overtake it.

        Raises:
            ServerFailed: the channel is closed, the message is not JSON, or initialized was refused.
        """
        group, exchange = self._opened()
        method, body = message.get("method"), self._encoded(message)
        if method == "notifications/initialized":
            await self._tell(exchange, body, headers, repr(method))
        elif method is not None and "id" in message:
            call = Call(request_id=message["id"], method=method, body=body, headers=headers)
            self._calls[call.request_id] = call
            group.start_soon(self._ask, exchange, call)
        else:
            what = "an answer" if method is None else repr(method)
            self._errands.start_soon(group, partial(self._tell_or_count, exchange, body, headers, what))

    async def flush(self) -> None:
        await self._errands.all_done()

    def abandon(self, request_id: RequestId) -> bool:
        """Stop listening for the answer; see Channel.

        Closing the stream is the cancellation in 2026-07-28, and a request before negotiation is never cancelled
        otherwise. In the handshake era a disconnection says nothing, so the dispatcher has to.
        """
        call = self._calls.pop(request_id, None)
        if call is not None:
            call.scope.cancel()
        return self._session.era != "handshake"

    def adopted(self, era: Era, protocol_version: str) -> None:
        self._session.era, self._session.protocol_version = era, protocol_version
        if era == "handshake" and self._group is not None and self._exchange is not None:
            self._group.start_soon(self._listen, self._exchange)

    @property
    def standard_error(self) -> str:
        return ""

    @property
    def process_id(self) -> int | None:
        return None

    def __repr__(self) -> str:
        state = "closed" if self._group is None else f"open, {len(self._calls)} requests in flight"
        return f"<HttpChannel {self._client.server!r}: {state}>"

    def _opened(self) -> tuple[anyio.abc.TaskGroup, Exchange]:
        if self._group is None or self._exchange is None:
            text = f"the connection to server {self._client.server!r} is closed"
            raise self._end or self._client.failures.failed(text, kind="unavailable")
        return self._group, self._exchange

    def _encoded(self, message: JsonObject) -> bytes:
        try:
            return compact(message).encode()
        except ValueError as error:
            text = f"could not send a message to server {self._client.server!r}: {error}"
            raise self._client.failures.failed(text, kind="protocol") from error

    async def _ask(self, exchange: Exchange, call: Call) -> None:
        receiver = exchange.inbox.receiver
        try:
            with call.scope:
                await exchange.ask(call)
        except ServerFailed as error:
            if not call.answered:
                receiver.failed(call.request_id, error)
            self._judge(error, receiver)
        except Exception as error:  # whatever an answer does to a library must cost one request, not the channel
            text = f"could not read what server {self._client.server!r} answered {call.what}: {type(error).__name__}"
            if not call.answered:
                failed = self._client.failures.failed(text, kind="protocol", effect="unknown")
                receiver.failed(call.request_id, failed)
        finally:
            if self._calls.get(call.request_id) is call:
                del self._calls[call.request_id]
            self._tell_of_redirects(receiver)

    async def _tell(self, exchange: Exchange, body: bytes, headers: Mapping[str, str] | None, what: str) -> None:
        try:
            await exchange.tell(body, headers, what)
        except ServerFailed as error:
            self._judge(error, exchange.inbox.receiver)
            raise

    async def _tell_or_count(
        self, exchange: Exchange, body: bytes, headers: Mapping[str, str] | None, what: str
    ) -> None:
        try:
            await self._tell(exchange, body, headers, what)
        except ServerFailed as error:
            exchange.inbox.receiver.diagnostic("not_delivered", error.message)

    async def _listen(self, exchange: Exchange) -> None:
        listener = Listener(self._client, exchange.inbox, self._limit, lambda: self._session.headers(GET_HEADERS))
        if await listener.run():
            self._judge(self._client.failures.session_lost(404, "none"), exchange.inbox.receiver)

    def _judge(self, error: ServerFailed, receiver: Receiver) -> None:
        """A lost session ends the channel: what else is in flight may or may not have been done (CON-7)."""
        if "session_lost" not in error.facts or self._end is not None:
            return
        self._end = self._client.failures.session_lost(error.facts["status"], "unknown")
        self._session.session_id = None
        receiver.ended(self._end)
        if self._group is not None:
            self._group.cancel_scope.cancel()

    def _tell_of_redirects(self, receiver: Receiver) -> None:
        if self._client.redirects and not self._redirect_told:
            self._redirect_told = True
            receiver.diagnostic("redirected", "each request is redirected; configure the url that it ends at")

    async def _say_goodbye(self) -> None:
        """End the session on the server too, if it takes that (405 is as good)."""
        if self._session.session_id is None:
            return
        with anyio.move_on_after(GOODBYE_SECONDS, shield=True):
            try:
                headers: CIMultiDict[str] = self._session.headers({})
                response = await self._client.request("DELETE", headers, what="the end of the session")
                response.close()
            except ServerFailed:
                return
