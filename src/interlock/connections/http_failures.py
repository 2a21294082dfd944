"""What went wrong over HTTP, as ServerFailed.

Owns: the sentences, kinds, effects and facts of failures below JSON-RPC; what may be shown of a URL or a body.
Never: decides to retry, re-open a session or fall back; negotiation and supervision do, by these facts:

    status        int: the HTTP status, whenever there was a response (kind follows it, see `refused`)
    challenges    tuple of WWW-Authenticate values, on 401 and 403
    retry_after   float seconds, when the server said Retry-After (429, 503)
    session_lost  True: the server forgot our Mcp-Session-Id; a new session helps (CON-7)
    content_type  str: what came instead of JSON or an event stream (kind "protocol")
"""

import email.utils
import os
import re
import ssl
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import aiohttp
from yarl import URL

from interlock.connections.masking import mask_of
from interlock.vocabulary.errors import Effect, ServerFailed, ServerFailure
from interlock.vocabulary.secret import MASK, Secret
from interlock.vocabulary.server import HttpTransport, ServerConfig

EXCERPT = 200
LONGEST_CHALLENGE = 4096
MOST_CHALLENGES = 8
LONGEST_RETRY_AFTER = 86_400.0


class Failures:
    """Makes the errors of one configured server; it knows which values must not show."""

    def __init__(self, config: ServerConfig, transport: HttpTransport) -> None:
        self.server = config.name
        self._mask = mask_of(transport)
        self._url_is_secret = isinstance(transport.url, Secret)

    def failed(self, text: str, *, kind: ServerFailure, effect: Effect = "none", **facts: Any) -> ServerFailed:
        return ServerFailed(text, server=self.server, kind=kind, effect=effect, **facts)

    def connecting(self, url: URL, error: BaseException) -> ServerFailed:
        """Nothing was sent: the connection could not be made."""
        text = f"could not connect to server {self.server!r} at {self._shown(url)}: {_reason(error)}"
        return self.failed(f"{text}; check the address, and that it runs", kind="unavailable")

    def broken(self, url: URL, doing: str, error: BaseException) -> ServerFailed:
        """The connection broke when the request, or a part of it, may have been read."""
        text = f"lost the connection to server {self.server!r} at {self._shown(url)} while {doing}: {_reason(error)}"
        return self.failed(text, kind="lost", effect="unknown")

    def refused(self, response: aiohttp.ClientResponse, what: str, body: bytes) -> ServerFailed:
        """A status of 400 and above whose body was no JSON-RPC error.

        401 and 403 are "authentication"; 404, 429 and 5xx "unavailable"; the rest "protocol". A request that was
        refused with 4xx changed nothing (408 and 5xx may come from a gateway that had already passed it on).
        """
        status = response.status
        effect: Effect = "unknown" if status >= 500 or status == HTTPStatus.REQUEST_TIMEOUT else "none"
        said = self.excerpt(body)
        meaning, way_out = _meaning(status)
        text = f"server {self.server!r} answered {what} with HTTP {_named(status)}{meaning}" + (
            f": {said}" if said else ""
        )
        text += f"; {way_out}" if way_out else ""
        return self.failed(text, kind=_kind(status), effect=effect, **self._facts(response))

    def session_lost(self, status: int, effect: Effect) -> ServerFailed:
        text = f"server {self.server!r} no longer knows the session (HTTP {status}); it must be opened again"
        return self.failed(text, kind="lost", effect=effect, status=status, session_lost=True)

    def redirected(self, response: aiohttp.ClientResponse, why: str) -> ServerFailed:
        target = self._mask(_target(response))[:EXCERPT]
        text = f"server {self.server!r} redirects {self._shown(response.url)} to {target}, which is not followed"
        return self.failed(f"{text}: {why}; configure the right url", kind="protocol", status=response.status)

    def wrong_type(
        self, response: aiohttp.ClientResponse, what: str, body: bytes, *, effect: Effect = "unknown"
    ) -> ServerFailed:
        content_type = self._mask(response.headers.get("Content-Type", ""))[:EXCERPT]
        text = (
            f"server {self.server!r} answered {what} (HTTP {response.status}) with content type {content_type!r}"
            f" instead of JSON or an event stream: {self.excerpt(body) or 'an empty body'}"
            "; check that `url` is its MCP endpoint"
        )
        facts = {"status": response.status, "content_type": content_type}
        return self.failed(text, kind="protocol", effect=effect, **facts)

    def excerpt(self, body: bytes) -> str:
        """The first characters of a body on one line, without our own secrets if it echoes them."""
        text = self._mask(body[: 16 * EXCERPT].decode("utf-8", "replace"))
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return text if len(text) <= EXCERPT else text[:EXCERPT] + "…"

    def _facts(self, response: aiohttp.ClientResponse) -> Mapping[str, Any]:
        facts: dict[str, Any] = {"status": response.status}
        if response.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            challenges = response.headers.getall("WWW-Authenticate", [])[:MOST_CHALLENGES]
            facts["challenges"] = tuple(self._mask(challenge)[:LONGEST_CHALLENGE] for challenge in challenges)
        if (wait := retry_after(response.headers.get("Retry-After", ""), time.time())) is not None:
            facts["retry_after"] = wait
        return facts

    def _shown(self, url: URL) -> str:
        return MASK if self._url_is_secret else self._mask(shown(url))


def shown(url: URL) -> str:
    """The URL without user, password, fragment and the values of its query."""
    plain = url.with_user(None).with_fragment(None) if url.absolute else url.with_fragment(None)
    return str(plain.with_query(None)) + ("?" + "&".join(f"{name}=…" for name in url.query) if url.query else "")


def _target(response: aiohttp.ClientResponse) -> str:
    try:
        return shown(URL(response.headers["Location"]))
    except (KeyError, ValueError):
        return "nowhere"


def retry_after(text: str, now: float) -> float | None:
    """Retry-After in seconds from `now` (RFC 9110 section 10.2.3): a number or a date; None if it is neither."""
    text = text.strip()
    if re.fullmatch(r"[0-9]{1,9}", text):
        return min(float(text), LONGEST_RETRY_AFTER)
    try:
        moment = email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
    return min(max(moment - now, 0.0), LONGEST_RETRY_AFTER)


def _kind(status: int) -> ServerFailure:
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return "authentication"
    if status in {HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS} or status >= 500:
        return "unavailable"
    return "protocol"


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _meaning(status: int) -> tuple[str, str]:
    """What a status means here, and what to do; either may be empty."""
    match status:
        case 401:
            return ", it wants credentials", "set bearer_token_env_var or http_headers in its table, or correct them"
        case 403:
            way_out = "give it other credentials with bearer_token_env_var or http_headers"
            # also a matter of the address: many a local server is there for one host name only
            return ", it does not allow this", f"{way_out}, or use the address that it allows"
        case 421:
            return "", "use the address that it allows"
        case 404 | 405:
            return ", there is no MCP endpoint of this kind at the configured url", "correct it: many end in /mcp"
        case 429:
            return "", "ask again later"
        case _ if status >= 500:
            return "", "look into its log, or ask again later"
        case _:
            return "", ""


def _reason(error: BaseException) -> str:
    """A short reason without addresses or header values; aiohttp's own texts hold both."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"its certificate is not valid ({_certificate_reason(error.certificate_error)})"
        case aiohttp.ClientSSLError():  # its errno is one of OpenSSL's
            return f"no TLS connection came about{_tls_reason(error)}: without TLS its address begins with http://"
        case aiohttp.ClientConnectorDNSError():
            return "its host name is not known"
        case aiohttp.ServerTimeoutError() | TimeoutError():
            return "it took too long"
        case aiohttp.ServerDisconnectedError():
            return "it closed the connection without an answer"
        case aiohttp.ClientPayloadError():
            return "the answer broke off"
        case OSError(errno=int(number)) if number > 0:
            return os.strerror(number).lower()
        case _:
            return type(error).__name__


def _tls_reason(error: BaseException) -> str:
    """OpenSSL's word for it, such as "wrong version number"."""
    reason = getattr(getattr(error, "os_error", None), "reason", None)
    return f" ({reason.replace('_', ' ').lower()})" if isinstance(reason, str) else ""


def _certificate_reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return type(error).__name__
