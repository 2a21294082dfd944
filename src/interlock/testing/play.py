"""The steps of a scripted MCP server, played one after another.

Owns: one run of steps for one request, and where it goes on after an elicitation of the stateless era.
Never: reads a message; what it sends goes through the session.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, Protocol

from interlock.testing.answers import Answers, Json, RpcError, text_result

POLL = 0.01
"""Seconds between two looks for a file: another process makes it, so there is nothing to wait on."""


class Session(Protocol):
    """What steps can do to the session that they are played in."""

    answers: Answers

    async def ask(self, params: Json) -> Json: ...

    def notify(self, method: str, params: Json, *, stateless: bool) -> None: ...


class Play:
    """Steps for one request. `run` gives the result that a step made, or None for the proper answer."""

    def __init__(self, session: Session, params: Json, *, stateless: bool) -> None:
        self._session = session
        self._params = params
        self._stateless = stateless
        self._answered: list[Json] = []
        self._token = (params.get("_meta") or {}).get("progressToken")

    def said(self) -> str:
        """What a tool without an answer of its own says: what it was told, as JSON."""
        return json.dumps(self._answered or self._params.get("arguments") or {})

    async def run(self, steps: list[Json]) -> Json | None:
        for number in range(self._resume(), len(steps)):
            result = await self._step(steps[number], number)
            if result is not None:
                return result
        return None

    def _resume(self) -> int:
        """The step to begin with: after a round of input, the one that asked."""
        state = self._params.get("requestState")
        if state is None:
            return 0
        kept = json.loads(state)
        self._answered = kept["answered"]
        return int(kept["step"])

    async def _step(self, step: Json, number: int) -> Json | None:
        match step:
            case {"result": result}:
                return dict(result)
            case {"text": text}:
                return text_result(text, is_error=step.get("is_error", False))
            case {"error": error}:
                raise RpcError(error.get("code", -32000), error.get("message", "scripted"), error.get("data"))
            case {"ask": params}:
                return await self._ask({"mode": "form", **params}, number)
            case {"wait_for_file": file}:
                await _appeared(Path(file), step.get("within", 30))
            case {"silence": True}:
                await asyncio.get_running_loop().create_future()
            case _:
                self._at_once(step)
        return None

    def _at_once(self, step: Json) -> None:
        match step:
            case {"progress": [progress, *rest]}:
                self._progress(progress, rest)
            case {"notify": note}:
                self._session.notify(note["method"], note.get("params", {}), stateless=self._stateless)
            case {"set": members}:
                self._session.answers.members.update(members)
            case {"touch": file}:
                Path(file).touch()
            case {"stderr": text}:
                print(text, file=sys.stderr, flush=True)  # noqa: T201  # writing there is what the step is for
            case {"exit": code}:
                os._exit(code)  # at once: an orderly end would answer first
            case _:
                raise RpcError(-32603, f"the script has a step that is not known: {json.dumps(step)}")

    def _progress(self, progress: float, rest: list[Any]) -> None:
        if self._token is None:
            return
        params = {"progressToken": self._token, "progress": progress}
        params |= dict(zip(("total", "message"), rest, strict=False))
        self._session.notify("notifications/progress", params, stateless=self._stateless)

    async def _ask(self, params: Json, number: int) -> Json | None:
        if not self._stateless:
            self._answered.append(await self._session.ask(params))
            return None
        key = f"ask-{number}"
        responses = self._params.get("inputResponses") or {}
        if key in responses:
            self._answered.append(responses[key])
            return None
        state = json.dumps({"step": number, "answered": self._answered})
        request = {"method": "elicitation/create", "params": params}
        return {"resultType": "input_required", "inputRequests": {key: request}, "requestState": state}


async def _appeared(file: Path, within: float) -> None:
    for _ in range(int(within / POLL)):
        if file.exists():  # noqa: ASYNC240  # one look at a local file
            return
        await asyncio.sleep(POLL)
    raise RpcError(-32000, f"the file {file} did not appear within {within} s")
