"""A client in the test's own process, over a transport without a wire.

Owns: sending, waiting for answers and news with a bound, and checking every message against the schemas.
Never: lets a message of a wrong shape pass.
"""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from interlock import Host
from interlock.surfaces.rpc.application import Application
from interlock.surfaces.rpc.serving import AppServer, Limits
from interlock.surfaces.rpc.table import METHODS
from interlock.surfaces.rpc.transport import TooLong
from tests.surfaces.rpc.validation import problems_of_news, problems_of_result

PATIENCE = 60.0
Message = dict[str, Any]


class Refused(Exception):
    """The request was answered with an error."""

    def __init__(self, error: Message) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


class MemoryTransport:
    """Frames in two streams; `readable` closed means that the client does not read."""

    def __init__(self, *, half_closes: bool = False) -> None:
        self.half_closes = half_closes
        self.to_server, self._incoming = anyio.create_memory_object_stream[bytes | TooLong](1000)
        self.sent: list[bytes] = []
        self.readable = anyio.Event()
        self.readable.set()
        self.news = anyio.Event()
        self.closed: str | bool | None = False

    async def frames(self) -> AsyncIterator[bytes | TooLong]:
        async for frame in self._incoming:
            yield frame

    async def send(self, frames: Sequence[bytes]) -> None:
        await self.readable.wait()
        self.sent.extend(frames)
        self.news.set()
        self.news = anyio.Event()

    async def close(self, reason: str | None) -> None:
        self.closed = reason
        self._incoming.close()
        self.to_server.close()
        self.news.set()
        self.news = anyio.Event()


class Driver:
    """One client. `answers` is called with each request of the server; what it returns is the result, None: none."""

    def __init__(self, transport: MemoryTransport, *, versioned: bool = False) -> None:
        self.transport = transport
        self.answers: Callable[[Message], Message | None] = lambda request: None
        self.messages: list[Message] = []
        self._versioned = versioned
        self._read = 0
        self._next_id = 0
        self._methods: dict[int, str] = {}

    # ---- saying

    def send(self, message: Any) -> None:
        self.send_raw(json.dumps(message).encode())

    def send_raw(self, frame: bytes) -> None:
        self.transport.to_server.send_nowait(frame)

    def begin(self, method: str, params: Any = None) -> int:
        """Send a request without waiting; its id."""
        self._next_id += 1
        self._methods[self._next_id] = method
        message = {"id": self._next_id, "method": method, "params": params}
        self.send({"jsonrpc": "2.0", **message} if self._versioned else message)
        return self._next_id

    async def request(self, method: str, **params: Any) -> Any:
        """The checked result. Refused: the answer is an error."""
        return await self.answer_to(self.begin(method, params))

    async def initialize(self, **capabilities: Any) -> Any:
        info = {"name": "test", "version": "1"}
        result = await self.request("initialize", clientInfo=info, capabilities=capabilities)
        self.send({"method": "initialized"})
        return result

    def end(self) -> None:
        self.transport.to_server.close()

    # ---- hearing

    async def answer_to(self, identity: int) -> Any:
        message = await self.until(lambda m: m.get("id") == identity and "method" not in m)
        if "error" in message:
            raise Refused(message["error"])
        return message["result"]

    async def news(self, method: str, **about: Any) -> Message:
        """The params of the first notification that fits, heard or still to come."""
        message = await self.until(
            lambda m: m.get("method") == method and all(m["params"].get(k) == v for k, v in about.items())
        )
        params: Message = message["params"]
        return params

    async def completion(self, turn_id: str) -> Message:
        """How that turn ended."""
        message = await self.until(
            lambda m: m.get("method") == "turn/completed" and m["params"]["turn"]["id"] == turn_id
        )
        turn: Message = message["params"]["turn"]
        return turn

    async def until(self, fits: Callable[[Message], bool]) -> Message:
        place = 0
        with anyio.fail_after(PATIENCE):
            while True:
                news = self.transport.news
                self.hear()
                for message in self.messages[place:]:
                    if fits(message):
                        return message
                place = len(self.messages)
                await news.wait()

    def hear(self) -> list[Message]:
        """Take what has come; every message is checked."""
        new = [json.loads(frame) for frame in self.transport.sent[self._read :]]
        self._read += len(new)
        for message in new:
            self._check(message)
            self.messages.append(message)
            if "method" in message and "id" in message:
                result = self.answers(message)
                if result is not None:
                    self.send({"id": message["id"], **result})
        return self.messages

    def methods(self) -> list[str]:
        return [message["method"] for message in self.hear() if "method" in message]

    def _check(self, message: Message | list[Message]) -> None:
        if isinstance(message, list):
            return  # the answers to a batch, which tests look at themselves
        assert ("jsonrpc" in message) is self._versioned
        if "method" in message:
            assert problems_of_news(message) == []
        elif "result" in message and message["id"] in self._methods:
            assert problems_of_result(self._methods[message["id"]], message["result"]) == []


class Desk:
    """An app server over a host, for any number of clients in this process."""

    def __init__(self, server: AppServer, tasks: anyio.abc.TaskGroup) -> None:
        self.server = server
        self._tasks = tasks

    async def connect(self, *, versioned: bool = False, half_closes: bool = False, initialize: bool = True) -> Driver:
        transport = MemoryTransport(half_closes=half_closes)
        self._tasks.start_soon(self.server.serve, transport)
        driver = Driver(transport, versioned=versioned)
        if initialize:
            await driver.initialize()
        return driver


@asynccontextmanager
async def app_server(host: Host, limits: Limits | None = None) -> AsyncIterator[Desk]:
    async with anyio.create_task_group() as tasks:
        application = Application(host, tasks, home="/home/of/interlock")
        yield Desk(AppServer(application, METHODS, limits=limits), tasks)
        tasks.cancel_scope.cancel()
