"""A scripted MCP server over stdio: python -m interlock.testing.server SCRIPT.json

Owns: one session on stdin and stdout: requests in, the steps of the script, answers out.
Never: imports an MCP SDK (it keeps clients honest), or outlives the end of stdin.

The script is a JSON object. What it says nothing of is answered properly, in both protocol eras.

    name, version, instructions     what the server says of itself
    eras                            ["handshake", "stateless"], or one of them
    page_size                       entries on a page of a listing (default: all on one)
    capabilities                    merged over those that the other members imply
    tools                           definitions, each with "do": steps of a call
    resources                       definitions, each with "text" or "blob", and "do": steps of a read
    templates, prompts              definitions; a prompt with "messages" and "do"
    completions                     {"PROMPT or URI template": {"ARGUMENT": ["value", …]}}
    on                              {"start" or METHOD: steps before the proper answer}
    trace                           a file that gets every received message as a line of JSON

A step is an object with one of these members:

    {"text": T}, {"result": R}      the answer; without one a tool answers with its arguments as JSON
    {"error": {"code", "message"}}  a JSON-RPC error
    {"progress": [1, 4, "words"]}   a progress notification, when the caller gave a token
    {"ask": {"message", "requestedSchema"}}   an elicitation of the caller's era; then answers with what came back
    {"wait_for_file": F, "within": seconds}   go on when the file exists
    {"touch": F}                    make a file, to tell a test how far the server is
    {"set": {…}}                    replace members of the script
    {"notify": {"method", "params"}}          to the client; list changes to those who listen (stateless era)
    {"stderr": T}, {"exit": n}      write a line to stderr; end the process at once
    {"silence": true}               never answer
"""

import asyncio
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

from interlock.testing.answers import LISTINGS, METHOD_NOT_FOUND, Answers, Json, RpcError, finished, text_result
from interlock.testing.play import Play

LINE_LIMIT = 256 * 1024 * 1024
"""Bytes of one message from the client; tests send large ones on purpose."""

SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
LISTENED = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/resources/updated": "resourceSubscriptions",
}


class ScriptedServer:
    """One session. Every request is a task of its own, so that one that waits holds nobody up."""

    def __init__(self, answers: Answers, tasks: asyncio.TaskGroup) -> None:
        self.answers = answers
        self._tasks = tasks
        self._running: dict[Any, asyncio.Task[None]] = {}
        self._listeners: dict[Any, Json] = {}
        self._asked: dict[str, asyncio.Future[Json]] = {}
        self._questions = 0

    def receive(self, message: Json) -> None:
        method, key = message.get("method"), message.get("id")
        if method is None:
            answer = self._asked.pop(str(key), None)
            if answer is not None and not answer.done():  # the call that asked may be cancelled by now
                answer.set_result(message.get("result") or {"error": message.get("error")})
        elif key is not None:
            self._running[key] = self._tasks.create_task(self._serve(key, method, message.get("params") or {}))
        elif method == "notifications/cancelled":
            task = self._running.get((message.get("params") or {}).get("requestId"))
            if task is not None:
                task.cancel()

    def close(self) -> None:
        """The client closed stdin: nothing more will be answered."""
        for task in self._running.values():
            task.cancel()

    async def ask(self, params: Json) -> Json:
        """An elicitation as a request of the server (handshake era); gives the client's result."""
        self._questions += 1
        key = f"ask-{self._questions}"
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._asked[key] = answer
        self.send({"id": key, "method": "elicitation/create", "params": params})
        return await answer

    def notify(self, method: str, params: Json, *, stateless: bool) -> None:
        """Send a notification; in the stateless era a change goes to those who listen for it."""
        if not stateless or method not in LISTENED:
            self.send({"method": method, "params": params})
            return
        for key, wanted in self._listeners.items():
            if wanted.get(LISTENED[method]):
                self.send({"method": method, "params": {**params, "_meta": {SUBSCRIPTION_KEY: key}}})

    def send(self, message: Json) -> None:
        sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        sys.stdout.buffer.flush()

    async def _serve(self, key: Any, method: str, params: Json) -> None:
        try:
            stateless = self.answers.check_version(params)
            result = await self._result(key, method, params, stateless)
            self.send({"id": key, "result": finished(result, method) if stateless else result})
        except RpcError as refused:
            self.send({"id": key, "error": refused.error})
        finally:
            self._running.pop(key, None)

    async def _result(self, key: Any, method: str, params: Json, stateless: bool) -> Json:
        play = Play(self, params, stateless=stateless)
        forced = await play.run(self.answers.steps(method))
        if forced is not None:
            return forced
        match method:
            case "subscriptions/listen":
                return await self._listen(key, params)
            case "tools/call":
                tool = self.answers.find("tools", "name", params.get("name"))
                return await play.run(tool.get("do", [])) or text_result(play.said())
            case "resources/read":
                resource = self.answers.find("resources", "uri", params.get("uri"))
                return await play.run(resource.get("do", [])) or self.answers.read(resource)
            case "prompts/get":
                prompt = self.answers.find("prompts", "name", params.get("name"))
                return await play.run(prompt.get("do", [])) or self.answers.prompt(prompt)
        return self._plain(method, params)

    def _plain(self, method: str, params: Json) -> Json:
        if method in LISTINGS:
            return self.answers.listing(method, params)
        match method:
            case "initialize":
                return self.answers.initialize(params)
            case "server/discover":
                return self.answers.discover()
            case "completion/complete":
                return self.answers.complete(params)
            case "ping" | "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel":
                return {}
        raise RpcError(METHOD_NOT_FOUND, f"method not found: {method}")

    async def _listen(self, key: Any, params: Json) -> Json:
        wanted: Json = params.get("notifications") or {}
        self._listeners[key] = wanted
        acknowledged = {"notifications": wanted, "_meta": {SUBSCRIPTION_KEY: key}}
        self.send({"method": "notifications/subscriptions/acknowledged", "params": acknowledged})
        never: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        try:
            return await never  # listening ends by a cancel
        finally:
            del self._listeners[key]


async def serve(script: Json) -> None:
    """Play `script` on stdin and stdout until stdin ends."""
    stdin = asyncio.StreamReader(limit=LINE_LIMIT)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    answers = Answers(script)
    async with asyncio.TaskGroup() as tasks:
        server = ScriptedServer(answers, tasks)
        await Play(server, {}, stateless=False).run(answers.steps("start"))
        while line := await stdin.readline():
            _trace(answers.members.get("trace"), line)
            server.receive(json.loads(line))
        server.close()


def _trace(file: str | None, line: bytes) -> None:
    if file is not None:
        with Path(file).open("ab") as trace:
            trace.write(line)


def _can_be_waited_for(descriptor: int) -> bool:
    """Whether something can arrive: a pipe, a socket or a terminal. The event loop would wait for others for ever."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


def main(arguments: list[str]) -> None:
    script = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    if not _can_be_waited_for(sys.stdin.fileno()):
        sys.exit(f"cannot play {arguments[0]}: stdin is a file or a device; a client or a pipe has to be there")
    try:
        asyncio.run(serve(script))
    except BrokenPipeError:
        os._exit(1)  # the client is gone; the interpreter would complain about stdout when it flushes it


if __name__ == "__main__":
    main(sys.argv[1:])
