"""A local HTTP server that answers like a language model's endpoint, from a script.

Owns: the socket on 127.0.0.1, the requests it saw, and playing the script to whoever asks.
Never: listens anywhere else, or judges a request; tests look at `requests`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from aiohttp import web
from aiohttp.typedefs import Handler

from interlock.testing.dialect import ChatDialect, Dialect, ResponsesDialect
from interlock.testing.script import (
    DEFAULT_USAGE,
    Break,
    Call,
    EndpointStep,
    Raw,
    Refuse,
    Sampling,
    Say,
    Script,
    Wait,
)
from interlock.vocabulary.conversation import Usage
from interlock.vocabulary.json import JsonObject

REQUEST_LIMIT = 64 * 1024 * 1024
"""Bytes of one request: histories with images are large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """One POST as it came: path, headers with names in lower case, decoded body."""

    path: str
    headers: Mapping[str, str]
    body: JsonObject


class ScriptedEndpoint:
    """The n-th request gets the n-th sampling, in the dialect of the path that it was sent to.

        async with ScriptedEndpoint(Call("mcp__a__one"), Say("done")) as endpoint:
            model = interlock.models.responses("gpt-5.5", base_url=endpoint.base_url, api_key="test")

    A sampling is a step, a sequence of steps, or a function of the RecordedRequest. Requests
    beyond the script are refused with status 400. Speaks POST /responses and POST
    /chat/completions below `base_url`, both streamed.
    """

    def __init__(
        self, *samplings: Sampling[EndpointStep, RecordedRequest], usage: Usage | None = DEFAULT_USAGE
    ) -> None:
        self._script: Script[EndpointStep, RecordedRequest] = Script(samplings)
        self._usage = usage
        self._requests: list[RecordedRequest] = []
        self._runner: web.AppRunner | None = None
        self._port = 0

    def __repr__(self) -> str:
        return f"<ScriptedEndpoint on port {self._port}: {self._script!r}>"

    @property
    def base_url(self) -> str:
        """Where it listens, such as "http://127.0.0.1:40123/v1"."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def requests(self) -> tuple[RecordedRequest, ...]:
        return tuple(self._requests)

    @property
    def remaining(self) -> int:
        """How many samplings were not asked for yet."""
        return self._script.remaining

    async def __aenter__(self) -> Self:
        application = web.Application(client_max_size=REQUEST_LIMIT)
        application.router.add_post("/v1/responses", self._answer_with(ResponsesDialect))
        application.router.add_post("/v1/chat/completions", self._answer_with(ChatDialect))
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.05)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._port = runner.addresses[0][1]
        self._runner = runner
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _answer_with(self, dialect: Callable[[str, str], Dialect]) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            recorded = await _record(request)
            self._requests.append(recorded)
            steps = self._script.take(recorded)
            if steps is None:
                return _refusal(Refuse(400, f"the script has no answer left after {self._script.played}"))
            if isinstance(steps[0], Refuse):
                return _refusal(steps[0])
            spoken = dialect(str(len(self._requests)), str(recorded.body.get("model")))
            return await self._stream(request, spoken, steps)

        return answer

    async def _stream(
        self, request: web.Request, spoken: Dialect, steps: tuple[EndpointStep, ...]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(spoken.opened().encode())
        for step in steps:
            match step:
                case Wait():
                    await step.gate.wait()
                case Break():
                    _cut(request)
                case _:
                    for text in self._texts(step, spoken):
                        await response.write(text.encode())
        if not any(isinstance(step, Raw | Break) for step in steps):
            await response.write(spoken.completed(self._usage).encode())
        return response

    def _texts(self, step: Say | Call | Raw | Refuse, spoken: Dialect) -> Iterable[str]:
        match step:
            case Say():
                return spoken.said(step)
            case Call():
                return spoken.called(self._script.name(step), step.name, step.arguments_text())
            case Raw():
                return (step.text,)
            case Refuse():
                raise ValueError("a refusal must be the only step of its sampling")


async def _record(request: web.Request) -> RecordedRequest:
    headers = {name.lower(): value for name, value in request.headers.items()}
    return RecordedRequest(path=request.path, headers=headers, body=await request.json())


def _cut(request: web.Request) -> None:
    """Close below HTTP: what was written arrives, the end of the body does not."""
    if request.transport is not None:
        request.transport.close()


def _refusal(step: Refuse) -> web.Response:
    error = {"message": step.message, "type": "scripted", "param": None, "code": step.code}
    return web.json_response({"error": error}, status=step.status, headers=dict(step.headers))
