"""A language model behind an endpoint, as the port Model.

Owns: one sampling: the key, the attempts, the bound on what comes back.
Never: knows what a request looks like (`responses_api`, `chat_completions`) or how it travels (`endpoint`).
"""

import importlib
import importlib.util
import os
import random
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import replace
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.to_thread
import orjson

from interlock.configuration.values import ProviderConfig
from interlock.models.chat_completions import ChatDialect
from interlock.models.dialect import Dialect, Reader, Stopped, new_call_id
from interlock.models.failures import REPEATABLE, Failures, check_address, shown
from interlock.models.parts import MediaKind
from interlock.models.responses_api import ResponsesDialect
from interlock.vocabulary.conversation import CallEntry, EntryCompleted, ModelEvent, ModelRequest
from interlock.vocabulary.errors import InvalidRequest, ModelFailed
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.secret import Secret

if TYPE_CHECKING:
    from interlock.models.endpoint import Endpoint

OUTPUT_LIMIT = 64 * 1024 * 1024
"""Bytes of events of one answer. The longest answers are some 100,000 tokens, told three times: some megabytes."""

FIRST_BACKOFF, LONGEST_BACKOFF = 0.2, 10.0
"""Seconds before a stream that broke is opened again: doubled each time, with jitter."""


class EndpointModel:
    """A model (port `Model`) that OpenAI's Responses API or Chat Completions reaches.

    Every sampling opens a connection of its own, unless the model is entered: inside
    `async with model:` one client is kept for all of them. Entering loads its package too, best while servers start;
    a turn does so before its first Step (`prepare_sampling`).

    Raises:
        InvalidRequest: the package `openai` is not installed, or the base URL is none.
    """

    def __init__(
        self, name: str, provider: ProviderConfig, *, media: Collection[MediaKind], output_limit: int = OUTPUT_LIMIT
    ) -> None:
        if importlib.util.find_spec("openai") is None:
            raise InvalidRequest(
                f"cannot use the model {name}: the package openai is not installed; "
                "run: pip install 'interlock[openai]'"
            )
        check_address(name, provider)
        self._name = name
        self._provider = provider
        self._output_limit = output_limit
        self._dialect: Dialect = ChatDialect(media) if provider.wire_api == "chat" else ResponsesDialect(media)
        self._kept: AsyncExitStack | None = None
        self._endpoint: Endpoint | None = None

    def __repr__(self) -> str:
        return f"<EndpointModel {self._name!r} at {shown(self._provider)} over {self._provider.wire_api}>"

    @property
    def name(self) -> str:
        return self._name

    @property
    def provider(self) -> str:
        return self._dialect.provider

    async def __aenter__(self) -> Self:
        self._kept = AsyncExitStack()
        await self.prepare_sampling()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kept, self._kept, self._endpoint = self._kept, None, None
        if kept is not None:
            await kept.aclose()

    async def prepare_sampling(self) -> None:
        """Load the package, once for the process; it takes a second or more."""
        with suppress(Exception):  # `sample` tells what is wrong with it
            await _endpoint_module()

    async def sample(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask once. A request that came to nothing before its first event is repeated, a bounded number of times."""
        key = self._key()
        failures = Failures(self._name, self._provider, key)
        body, attempt = self._dialect.body(self._name, request), 0
        used = {entry.call_id for entry in request.entries if isinstance(entry, CallEntry)}
        async with self._opened(key) as endpoint:
            while True:
                async with aclosing(self._attempt(endpoint, body, failures)) as events:
                    try:
                        first = await anext(events)
                    except ModelFailed as failure:
                        body, attempt = await self._next_attempt(body, attempt, failure)
                        continue
                    yield _told_apart(first, used)
                    async for event in events:
                        yield _told_apart(event, used)
                    return

    async def _attempt(
        self, endpoint: "Endpoint", body: dict[str, Any], failures: Failures
    ) -> AsyncGenerator[ModelEvent]:
        """One request; its last event is SamplingCompleted."""
        reader, size = self._dialect.reader(), 0
        async with endpoint.stream(self._dialect.path, body, failures) as events:
            async for event in events:
                size += len(orjson.dumps(event))
                if size > self._output_limit:
                    raise failures.too_much(self._output_limit)
                for made in _read(reader, event, failures):
                    yield made
                if reader.done:
                    break
        try:
            for made in reader.finish():
                yield made
        except Stopped as stopped:
            raise failures.stopped(stopped) from None

    async def _next_attempt(
        self, body: dict[str, Any], attempt: int, failure: ModelFailed
    ) -> tuple[dict[str, Any], int]:
        """What to send now, after a pause; `failure` is raised where sending again makes no sense."""
        if failure.facts.get("status") in (400, 422):
            amended = self._dialect.amended(body, failure.message)
            if amended is not None:
                return amended, attempt
        if failure.facts.get("kind") not in REPEATABLE or attempt >= self._provider.stream_max_retries:
            raise failure
        pause = min(FIRST_BACKOFF * 2**attempt, LONGEST_BACKOFF)
        await anyio.sleep(pause * random.uniform(0.5, 1.0))
        return body, attempt + 1

    @asynccontextmanager
    async def _opened(self, key: Secret | None) -> AsyncIterator["Endpoint"]:
        """The kept client, or one for this sampling alone."""
        module = await _endpoint_module()
        if self._kept is None:
            async with module.Endpoint(self._provider, key) as endpoint:
                yield endpoint
            return
        endpoint = self._endpoint
        if endpoint is None:
            endpoint = self._endpoint = await self._kept.enter_async_context(module.Endpoint(self._provider, key))
        yield endpoint

    def _key(self) -> Secret | None:
        try:
            key = self._provider.api_key(os.environ)
        except InvalidRequest as error:
            raise ModelFailed(error.message, kind="key", model=self._name) from error
        for secret in (key, *self._provider.http_headers.values()):
            if secret is not None and not (secret.reveal().isascii() and secret.reveal().isprintable()):
                text = (
                    f"cannot ask the model {self._name}: the value from {secret.source} holds characters that no header"
                )
                raise ModelFailed(f"{text} can carry; check it for line breaks and odd letters", kind="key")
        return key


def _read(reader: Reader, event: JsonObject, failures: Failures) -> Iterator[ModelEvent]:
    """Feed one event. What no dialect foresees is the endpoint's nonsense, not our bug."""
    try:
        yield from reader.feed(event)
    except Stopped as stopped:
        raise failures.stopped(stopped) from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise failures.nonsense("an event of an unknown shape") from error


def _told_apart(event: ModelEvent, used: set[str]) -> ModelEvent:
    """`event`; a call whose id is among those `used` gets one of ours.

    Some endpoints number the calls of every answer from nought, or call all of them "0". A Thread takes an id once
    (LIF-8), and no endpoint minds which id its own call comes back under.
    """
    match event:
        case EntryCompleted(entry=CallEntry() as call):
            if call.call_id in used:
                call = replace(call, call_id=new_call_id())
            used.add(call.call_id)
            return EntryCompleted(entry=call)
        case _:
            return event


async def _endpoint_module() -> ModuleType:
    """Who is cancelled meanwhile has a turn to end, and does not wait for a package to load."""
    return await anyio.to_thread.run_sync(_load_endpoint, abandon_on_cancel=True)


def _load_endpoint() -> ModuleType:
    return importlib.import_module("interlock.models.endpoint")
