"""One connected client.

Owns: its conversation (peer), what waits for it (outgoing), and what it said of itself in `initialize`.
Never: knows a method, a thread, or another client.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import anyio.abc

from interlock.surfaces.rpc.outgoing import Outgoing
from interlock.surfaces.rpc.peer import Answered, Peer, Request, WireError, encode
from interlock.vocabulary.json import JsonObject, JsonValue

LOST: Final = WireError(code=0, message="the connection ended")


@dataclass(slots=True, eq=False)
class Ask:
    """A request to the client that waits for its answer; see `Client.ask`."""

    id: int = -1
    result: JsonValue = None
    error: WireError | None = None
    settled: anyio.Event = field(default_factory=anyio.Event)

    def settle(self, result: JsonValue, error: WireError | None) -> None:
        self.result, self.error = result, error
        self.settled.set()


class Broadcast:
    """One notification for many; it is written once for each style of the wire."""

    def __init__(self, method: str, params: JsonObject) -> None:
        self.method = method
        self._message = {"method": method, "params": params, "emittedAtMs": time.time_ns() // 1_000_000}
        self._frames: dict[bool, bytes] = {}

    def frame(self, versioned: bool) -> bytes:
        frame = self._frames.get(versioned)
        if frame is None:
            message = {"jsonrpc": "2.0", **self._message} if versioned else self._message
            frame = self._frames[versioned] = encode(message)
        return frame


class Client:
    """Made for one transport; `tasks` are those that live as long as the connection."""

    def __init__(self, peer: Peer[Ask], outgoing: Outgoing, tasks: anyio.abc.TaskGroup) -> None:
        self.peer = peer
        self.outgoing = outgoing
        self.tasks = tasks
        self.initialized = False
        self.name = "a client"
        self.extensions: Mapping[str, JsonObject] = {}
        """What it wants servers of its threads to be told, by extension id (CON-13)."""
        self._opted_out: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"<Client {self.name} {self.peer!r} {self.outgoing!r}>"

    def introduce(self, name: str, *, opted_out: frozenset[str], extensions: Mapping[str, JsonObject]) -> None:
        self.initialized, self.name, self._opted_out, self.extensions = True, name, opted_out, extensions

    # ---- to the client

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self.tell(Broadcast(method, params))

    def tell(self, news: Broadcast) -> None:
        """Before `initialize` nothing is said unasked."""
        if self.initialized and news.method not in self._opted_out:
            self.outgoing.put(news.frame(self.peer.versioned))

    def respond(self, request: Request, result: JsonValue) -> None:
        self._answer(self.peer.respond(request, result))

    def fail(self, request: Request, error: WireError) -> None:
        self._answer(self.peer.fail(request, error))

    def ask(self, method: str, params: Mapping[str, Any]) -> Ask:
        """Send a request; `settled` of what is returned is set once, also when the connection ends."""
        ask = Ask()
        ask.id, frame = self.peer.ask(method, params, ask)
        self.outgoing.put(frame)
        return ask

    # ---- from the client

    def answered(self, answer: Answered[Ask]) -> None:
        answer.waiter.settle(answer.result, answer.error)

    def leave(self) -> None:
        """Nobody is there any more: whoever waits for an answer is told."""
        for ask in self.peer.close():
            ask.settle(None, LOST)
        self.outgoing.close()

    def _answer(self, frame: bytes | None) -> None:
        if frame is not None:
            self.outgoing.put(frame, first=True)
