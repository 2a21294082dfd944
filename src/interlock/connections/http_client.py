"""HTTP requests to the one origin of a configured server.

Owns: an aiohttp session (its sockets, timeouts, proxy and TLS), the headers with their secrets, same-origin redirects.
Never: knows JSON-RPC, follows a redirect to another origin, or keeps cookies.
"""

import base64
import ipaddress
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
import anyio
from multidict import CIMultiDict
from yarl import URL

from interlock.connections.http_ending import Ending
from interlock.connections.http_failures import Failures
from interlock.connections.slices import Pace
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.secret import Secret, reveal
from interlock.vocabulary.server import HttpTransport, ServerConfig

CONNECT_SECONDS: Final = 30.0
"""For one TCP or TLS connection. Other waits are the caller's: a call may rightly be silent for minutes."""
MOST_CONNECTIONS: Final = 256
"""Side by side to one server. More requests wait for a free one; a waiting request costs no socket."""
IDLE_SECONDS: Final = 4.0
"""Below the 5 s after which common servers (Node, uvicorn) close an idle connection: a POST on a connection that is
being closed would be lost with its outcome unknown."""
CLOSE_SECONDS: Final = 1.0
MOST_REDIRECTS: Final = 5
LONGEST_HEADER: Final = 64 * 1024
READ_SIZE: Final = 1024 * 1024
"""Buffered of one response before reading pauses; a 10 MB body takes a fifth less time than with 64 KiB."""
REFUSAL_LIMIT: Final = 1024 * 1024
"""Of the body of an error."""

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
KEEPING_METHOD: Final = frozenset({307, 308})
OURS: Final = frozenset(
    {"accept", "content-type", "content-length", "transfer-encoding", "connection"}
    | {"mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id"}
)
"""Headers that the protocol decides; configured ones of these names are left out."""


class HttpClient:
    """One session to one origin; enter `opened()` before the first request.

    Raises (the constructor):
        ServerFailed: the URL or a header cannot be used (effect none).
    """

    def __init__(self, config: ServerConfig) -> None:
        if not isinstance(config.transport, HttpTransport):
            raise TypeError(f"server {config.name!r} is not configured with a url")
        self.failures = Failures(config, config.transport)
        self.server = config.name
        self.redirects = 0
        configured = self._checked_url(config.transport)
        self.url = configured.with_user(None).with_fragment(None)
        self._headers = self._checked_headers(config.transport, configured)
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Holds the session; every socket is closed, bounded, on leaving."""
        session = self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=MOST_CONNECTIONS, keepalive_timeout=IDLE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "interlock"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            proxy=environment_proxy(self.url),
            max_line_size=LONGEST_HEADER,
            max_field_size=LONGEST_HEADER,
            read_bufsize=READ_SIZE,
        )
        try:
            yield
        finally:
            self._session = None
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await session.close()

    async def request(
        self, method: str, headers: CIMultiDict[str], *, what: str, body: bytes | None = None, url: URL | None = None
    ) -> aiohttp.ClientResponse:
        """The response's head, after redirects; the caller closes the response. `what` names the request in errors.

        aiohttp's own errors show headers and the url's query, so none is chained.

        Raises:
            ServerFailed: unavailable (nothing was sent), lost (effect unknown), or protocol (a redirect that is
                not followed, no valid HTTP).
        """
        target = url or self.url
        for _ in range(MOST_REDIRECTS):
            response = await self._request(method, target, headers, body, what)
            if response.status not in REDIRECTS:
                return response
            response.close()
            target = self._followed(response, method)
            self.redirects += 1
        raise self.failures.redirected(response, f"there were {MOST_REDIRECTS} redirects in a row")

    async def read(self, response: aiohttp.ClientResponse, limit: int, *, what: str) -> bytes:
        """The whole body, of at most `limit` bytes after decompression.

        Raises:
            ServerFailed: protocol (too large, refused without reading on), lost (broken off); effect unknown.
        """
        if (response.content_length or 0) > limit:
            raise self._too_large(response, limit, what)
        pieces: list[bytes] = []
        size, pace = 0, Pace()
        try:
            with Ending(response):
                while piece := await response.content.readany():
                    size += len(piece)
                    if size > limit:
                        raise self._too_large(response, limit, what)
                    pieces.append(piece)
                    await pace.step()
        except (aiohttp.ClientError, OSError) as error:
            raise self.failures.broken(response.url, f"reading the answer to {what}", error) from None
        return b"".join(pieces)

    async def refusal_body(self, response: aiohttp.ClientResponse) -> bytes:
        """What can be had, within REFUSAL_LIMIT, of the body of an error; empty if it is too large or broken."""
        try:
            return await self.read(response, REFUSAL_LIMIT, what="a request")
        except ServerFailed:
            return b""

    def _too_large(self, response: aiohttp.ClientResponse, limit: int, what: str) -> ServerFailed:
        text = f"server {self.server!r} answered {what} with more than {limit} bytes; raise line_limit to accept it"
        return self.failures.failed(text, kind="protocol", effect="unknown", status=response.status)

    async def _request(
        self, method: str, url: URL, headers: CIMultiDict[str], body: bytes | None, what: str
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise self.failures.failed(f"the connection to server {self.server!r} is closed", kind="unavailable")
        for name, secret in self._headers.items():
            headers.setdefault(name, secret.reveal())
        try:
            return await self._session.request(method, url, data=body, headers=headers, allow_redirects=False)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError) as error:
            raise self.failures.connecting(url, error) from None
        except aiohttp.ClientResponseError:
            text = f"server {self.server!r} answered {what} with something that is not HTTP"
            raise self.failures.failed(text, kind="protocol", effect="unknown") from None
        except (aiohttp.ClientError, OSError) as error:
            raise self.failures.broken(url, f"waiting for an answer to {what}", error) from None
        except ValueError:  # a line break in a header or the like: refused before it was sent
            text = f"could not send {what} to server {self.server!r}: a header holds characters that HTTP forbids"
            raise self.failures.failed(text, kind="protocol") from None

    def _followed(self, response: aiohttp.ClientResponse, method: str) -> URL:
        location = response.headers.get("Location")
        if location is None:
            raise self.failures.redirected(response, "it names no target")
        try:
            target = response.url.join(URL(location))
            same_origin = target.origin() == self.url.origin()
        except ValueError:
            raise self.failures.redirected(response, "its target is no url") from None
        if not same_origin:
            raise self.failures.redirected(response, "credentials stay with the configured origin")
        if method != "GET" and response.status not in KEEPING_METHOD:
            raise self.failures.redirected(response, f"status {response.status} would drop the message")
        return target

    def _checked_url(self, transport: HttpTransport) -> URL:
        try:
            url = URL(reveal(transport.url))
            usable = url.scheme in {"http", "https"} and bool(url.host)
        except ValueError:
            usable = False
        if not usable:
            text = f"the url of server {self.server!r} is not an http or https address"
            raise self.failures.failed(text, kind="unavailable")
        return url

    def _checked_headers(self, transport: HttpTransport, url: URL) -> dict[str, Secret]:
        headers = {name: value for name, value in transport.headers.items() if name.lower() not in OURS}
        for name, value in headers.items():
            if any(ord(c) < 32 and c != "\t" for c in name + value.reveal()):
                text = f"header {name!r} of server {self.server!r} ({value.source}) holds a control character"
                raise self.failures.failed(text, kind="unavailable")
        if url.user is not None and not any(name.lower() == "authorization" for name in headers):
            credentials = base64.b64encode(f"{url.user}:{url.password or ''}".encode()).decode()
            headers["Authorization"] = Secret(f"Basic {credentials}", "the url")
        return headers


def environment_proxy(url: URL) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name for `url`; never one for this machine itself."""
    host = url.host or ""
    if host == "localhost" or _is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(url.scheme)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
