"""MCP over HTTP+SSE, the transport of 2024-11-05, as a Channel.

Owns: the one event stream that brings everything, and the address that its first event gives for POSTs.
Never: re-opens the stream (its end is the end of the session), or waits for a deadline.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Final

import aiohttp
import anyio
import anyio.abc
from multidict import CIMultiDict
from yarl import URL

from interlock.connections.channel import Receiver
from interlock.connections.event_stream import EventStream, ServerSentEvent
from interlock.connections.http_client import HttpClient
from interlock.connections.http_exchange import GET_HEADERS, PROTOCOL_VERSION
from interlock.connections.http_listening import is_event_stream, linger, read_events
from interlock.connections.inbox import Inbox, RequestId
from interlock.connections.posting import Errands
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject, compact
from interlock.vocabulary.server import Era, ServerConfig

POST_HEADERS: Final = {"Content-Type": "application/json"}


@dataclass(slots=True)
class _Stream:
    """What the reading of the one stream has found out."""

    endpoint: URL | None = None
    refused: ServerFailed | None = None
    opened: anyio.Event = field(default_factory=anyio.Event)


class SseChannel:
    """A server of HTTP+SSE at a URL (config.transport is an HttpTransport).

    `run` says started once the server named its endpoint; how long that may take is the caller's deadline.
    Its ServerFailed bears the facts of `http_failures`, `status` among them, when the GET was refused.

    Raises (the constructor):
        ServerFailed: the URL or a header cannot be used (effect none).
    """

    sending_waits = True

    def __init__(self, config: ServerConfig) -> None:
        self._client = HttpClient(config)
        self._limit = config.line_limit
        self._calls: dict[RequestId, anyio.CancelScope] = {}
        self._errands = Errands()
        self._protocol_version: str | None = None
        self._stream = _Stream()
        self._group: anyio.abc.TaskGroup | None = None
        self._inbox: Inbox | None = None
        self._end: ServerFailed | None = None

    async def run(
        self, receiver: Receiver, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """See Channel. It ends when cancelled, or with the stream."""
        inbox = self._inbox = Inbox(receiver)
        async with self._client.opened():
            response = await self._open()
            try:
                await self._listen(response, inbox, task_status)
            finally:
                self._group = None
                response.close()
            if self._stream.refused is not None:
                raise self._stream.refused
            if self._end is not None:
                receiver.ended(self._end)

    async def send(self, message: JsonObject, *, headers: Mapping[str, str] | None = None) -> None:
        """POST `message` to the server's endpoint; returns at once, but for notifications/initialized.

        Raises:
            ServerFailed: the channel is closed, the message is not JSON, or initialized was refused.
        """
        group, inbox, endpoint = self._group, self._inbox, self._stream.endpoint
        if group is None or inbox is None or endpoint is None:
            text = f"the connection to server {self._client.server!r} is closed"
            raise self._end or self._client.failures.failed(text, kind="unavailable")
        method, body = message.get("method"), self._encoded(message)
        what = "an answer" if method is None else repr(method)
        post = _Post(url=endpoint, body=body, headers=self._headers(headers), what=what)
        if method == "notifications/initialized":
            await self._post(post)
        elif method is not None and "id" in message:
            scope = self._calls[message["id"]] = anyio.CancelScope()
            group.start_soon(self._ask, message["id"], scope, post, inbox)
        else:
            self._errands.start_soon(group, partial(self._tell, post, inbox))

    async def flush(self) -> None:
        await self._errands.all_done()

    def abandon(self, request_id: RequestId) -> bool:
        """Stop sending, if that has not happened yet; the server is told by notifications/cancelled."""
        scope = self._calls.pop(request_id, None)
        if scope is not None:
            scope.cancel()
        return False

    def adopted(self, era: Era, protocol_version: str) -> None:
        self._protocol_version = protocol_version

    @property
    def standard_error(self) -> str:
        return ""

    @property
    def process_id(self) -> int | None:
        return None

    def __repr__(self) -> str:
        return f"<SseChannel {self._client.server!r}: {'closed' if self._group is None else 'open'}>"

    async def _open(self) -> aiohttp.ClientResponse:
        response = await self._client.request("GET", CIMultiDict(GET_HEADERS), what="the GET for its event stream")
        if is_event_stream(response):
            return response
        try:
            body = await self._client.refusal_body(response)
        finally:
            response.close()
        what = "the GET for its event stream"
        failures = self._client.failures
        raise (
            failures.refused(response, what, body)
            if response.status >= 300
            else failures.wrong_type(response, what, body, effect="none")
        )

    async def _listen(
        self, response: aiohttp.ClientResponse, inbox: Inbox, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._read, response, inbox, group.cancel_scope)
            await self._stream.opened.wait()
            if self._stream.endpoint is not None:
                self._group = group
                task_status.started()
                await anyio.sleep_forever()

    async def _read(self, response: aiohttp.ClientResponse, inbox: Inbox, scope: anyio.CancelScope) -> None:
        def take(event: ServerSentEvent) -> bool:
            if event.name == "endpoint":
                self._take_endpoint(response.url, event)
            elif self._stream.endpoint is not None:
                inbox.take_event(event)
            return self._stream.refused is not None

        await read_events(response, EventStream(self._limit), take)
        failures, server = self._client.failures, self._client.server
        if self._stream.endpoint is not None:
            self._end = failures.failed(f"server {server!r} ended its event stream", kind="lost", effect="unknown")
            scope.cancel()
        elif self._stream.refused is None:
            text = f"server {server!r} ended its event stream before it named an endpoint"
            self._stream.refused = failures.failed(text, kind="protocol", status=response.status)
        self._stream.opened.set()

    def _take_endpoint(self, base: URL, event: ServerSentEvent) -> None:
        """The first one counts; it must lie on our origin, as our credentials go there."""
        if self._stream.endpoint is not None or self._stream.refused is not None:
            return
        try:
            endpoint = base.join(URL(event.data.decode("utf-8").strip()))
            usable = endpoint.origin() == self._client.url.origin() and not event.too_large
        except ValueError:
            usable = False
        if usable:
            self._stream.endpoint = endpoint
        else:
            text = f"server {self._client.server!r} names an endpoint that is not on its own origin; it is not used"
            self._stream.refused = self._client.failures.failed(text, kind="protocol")
        self._stream.opened.set()

    def _headers(self, extra: Mapping[str, str] | None) -> CIMultiDict[str]:
        headers = CIMultiDict(POST_HEADERS)
        if self._protocol_version is not None:
            headers[PROTOCOL_VERSION] = self._protocol_version
        headers.update(extra or {})
        return headers

    def _encoded(self, message: JsonObject) -> bytes:
        try:
            return compact(message).encode()
        except ValueError as error:
            text = f"could not send a message to server {self._client.server!r}: {error}"
            raise self._client.failures.failed(text, kind="protocol") from error

    async def _ask(self, request_id: RequestId, scope: anyio.CancelScope, post: "_Post", inbox: Inbox) -> None:
        try:
            with scope:
                await self._post(post)
        except ServerFailed as error:
            inbox.receiver.failed(request_id, error)
        finally:
            if self._calls.get(request_id) is scope:
                del self._calls[request_id]

    async def _tell(self, post: "_Post", inbox: Inbox) -> None:
        try:
            await self._post(post)
        except ServerFailed as error:
            inbox.receiver.diagnostic("not_delivered", error.message)

    async def _post(self, post: "_Post") -> None:
        response = await self._client.request("POST", post.headers, what=post.what, body=post.body, url=post.url)
        try:
            if response.status >= HTTPStatus.MULTIPLE_CHOICES:
                body = await self._client.refusal_body(response)
                raise self._client.failures.refused(response, post.what, body)
            await linger(response)
        finally:
            response.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Post:
    url: URL
    body: bytes
    headers: CIMultiDict[str]
    what: str
