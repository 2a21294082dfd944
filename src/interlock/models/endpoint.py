"""One streamed request to an OpenAI-like endpoint, over the official client.

Owns: the client's settings, one stream of decoded events with its deadlines, and what the client's errors mean.
Never: knows a dialect, or sends a request twice (the client repeats what was refused before any event).

This module imports `openai`, which takes a second; it is imported in a worker thread when a model is first used.
"""

import errno
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import anyio
import openai
from openai import AsyncOpenAI, AsyncStream, Omit

from interlock.configuration.values import ProviderConfig
from interlock.models.failures import Failures
from interlock.vocabulary.errors import ModelFailed
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.secret import Secret, reveal

CONNECT_TIMEOUT = 15.0
WRITE_TIMEOUT = 120.0
"""Seconds without progress while a request (a history with images, say) is sent."""

OPENAI = "https://api.openai.com/"


class Endpoint:
    """A client for one provider. Closed by leaving it."""

    def __init__(self, provider: ProviderConfig, key: Secret | None) -> None:
        idle = provider.stream_idle_timeout
        self._idle = idle
        self._headers = _headers(provider, key)
        self._client = AsyncOpenAI(
            api_key="not sent",  # the client insists on one, and would else take OPENAI_API_KEY
            base_url=reveal(provider.base_url),
            default_query={name: reveal(value) for name, value in provider.query_params.items()},
            max_retries=provider.request_max_retries,
            timeout=openai.Timeout(connect=CONNECT_TIMEOUT, read=idle, write=WRITE_TIMEOUT, pool=CONNECT_TIMEOUT),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.close()

    @property
    def closed(self) -> bool:
        return self._client.is_closed()

    @asynccontextmanager
    async def stream(
        self, path: str, body: Mapping[str, Any], failures: Failures
    ) -> AsyncIterator[AsyncIterator[JsonObject]]:
        """Send one request; gives its events, each waited for at most the provider's idle time.

        Raises:
            ModelFailed: it was refused, or (from the iterator) it broke off, fell silent or is no event stream.
        """
        try:
            stream = await self._client.post(
                path,
                cast_to=object,
                body=body,
                options={"headers": self._headers},
                stream=True,
                stream_cls=AsyncStream[object],
            )
        except openai.OpenAIError as error:
            raise _refusal(error, failures, self._idle) from error
        async with stream:
            yield _events(stream, failures, self._idle)


def _headers(provider: ProviderConfig, key: Secret | None) -> dict[str, str | Omit]:
    """The provider's own headers and key. Without a key none is sent; the caller's OpenAI ids go to OpenAI only."""
    headers: dict[str, str | Omit] = {"Authorization": Omit() if key is None else f"Bearer {key.reveal()}"}
    if not reveal(provider.base_url).startswith(OPENAI):
        headers |= {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()}
    for name, value in provider.http_headers.items():
        for replaced in [known for known in headers if known.lower() == name.lower()]:
            del headers[replaced]
        headers[name] = value.reveal()
    return headers


async def _events(stream: AsyncStream[object], failures: Failures, idle: float) -> AsyncIterator[JsonObject]:
    content_type = stream.response.headers.get("content-type", "text/event-stream")
    if not content_type.startswith("text/event-stream"):
        raise failures.nonsense(f"{content_type} instead of an event stream")
    events = aiter(stream)
    while True:
        try:
            with anyio.fail_after(idle):
                event = await anext(events, None)
        except (TimeoutError, openai.APITimeoutError) as error:
            raise failures.idle(idle) from error
        except openai.APIConnectionError as error:
            raise failures.broken(_cause(error)) from error
        except openai.APIError as error:
            event = {"type": "error", "error": {"code": error.code or error.type, "message": error.message}}
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise failures.nonsense("an event that is not JSON") from error
        if event is None:
            return
        if not isinstance(event, dict):
            raise failures.nonsense("an event that is not a JSON object")
        yield event


def _refusal(error: openai.OpenAIError, failures: Failures, idle: float) -> ModelFailed:
    match error:
        case openai.APITimeoutError():
            return failures.idle(idle)
        case openai.APIConnectionError():
            return failures.unreachable(_cause(error))
        case openai.APIStatusError():
            return failures.refused(error.status_code, _message(error))
        case _:
            return failures.unreachable(str(error))


def _message(error: openai.APIStatusError) -> str:
    """What the provider wrote; the client's own text repeats the status and the whole body."""
    body = error.body
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return str(body["message"])
    return error.message


def _cause(error: BaseException) -> str:
    """The innermost reason, in the system's words: "connection refused" instead of "Connection error."."""
    while inner := _inner(error):
        error = inner
    words = str(error)
    if isinstance(error, OSError) and error.errno is not None:  # a failed look-up of a name has codes of its own
        words = os.strerror(error.errno) if error.errno in errno.errorcode else error.strerror or words
    return (words or type(error).__name__).rstrip(".")


def _inner(error: BaseException) -> BaseException | None:
    if isinstance(error, BaseExceptionGroup):  # one for each address that was tried
        return error.exceptions[0]
    return error.__cause__ or error.__context__
