"""A compaction that a client asked for, from its answer to its end.

Owns: the turn that it is told as, that later turns wait for it, and that it can be interrupted.
Never: compacts; the library does.
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import anyio

from interlock.surfaces.rpc import projection, shapes
from interlock.threads.thread import Thread
from interlock.vocabulary.errors import InterlockError
from interlock.vocabulary.ids import uuid7
from interlock.vocabulary.ports import Model


class Compaction:
    """One at a time in a thread; `turn_id` is the turn that it is told and stored as."""

    def __init__(self, thread: Thread, tell: Callable[[Iterator[tuple[str, Any]]], None]) -> None:
        self.turn_id = uuid7(_now(), os.urandom(10))
        self._thread = thread
        self._tell = tell
        self._scope = anyio.CancelScope()
        self._over = anyio.Event()

    async def run(self, model: Model | None, instructions: str) -> None:
        """Whatever comes of it is told to who follows the thread."""
        began = _now()
        try:
            with self._scope:
                await self._thread.compact(model=model, instructions=instructions, as_turn=self.turn_id)
        except InterlockError as error:
            if self._thread.journal.turn(self.turn_id) is None:  # it did not even begin, and clients wait for its end
                turn = projection.new_turn(self.turn_id, began)
                self._tell(_never_begun(self._thread.id, turn, error.message))
        finally:
            self._over.set()

    @property
    def is_running(self) -> bool:
        """From the answer to the client on, also before it is told as a turn."""
        return not self._over.is_set()

    async def over(self) -> None:
        """Wait for its end."""
        await self._over.wait()

    async def interrupt(self) -> None:
        """End it as interrupted, with the history as it was; returns when it has ended."""
        self._scope.cancel()
        await self._over.wait()


def _never_begun(thread_id: str, turn: shapes.Turn, sentence: str) -> Iterator[tuple[str, Any]]:
    about, error = {"threadId": thread_id}, projection.turn_error(sentence)
    yield "turn/started", {**about, "turn": turn}
    yield "error", {**about, "turnId": turn["id"], "error": error, "willRetry": False}
    yield "turn/completed", {**about, "turn": {**turn, "status": "failed", "error": error}}


def _now() -> int:
    return time.time_ns() // 1_000_000
