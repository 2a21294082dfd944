"""What is sent though nobody waits for it: answers to a server's requests, notices of cancellation.

Owns: the bounded line of such messages, the one task that sends them, and what of it is still under way.
Never: holds up whoever posts, or outlives the connection.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import anyio.abc

from interlock.connections.bell import Bell
from interlock.connections.channel import Channel
from interlock.connections.diagnostics import Diagnostics
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject

POSTS_LIMIT: Final = 1024
"""Answers that may wait for a slow transport."""


class Outbox:
    """The line of one connection's posts; what cannot be delivered is counted."""

    def __init__(self, channel: Channel, diagnostics: Diagnostics) -> None:
        self._channel = channel
        self._diagnostics = diagnostics
        self._posts: deque[JsonObject] = deque()
        self._posting = False
        self._emptied = Bell()

    def __repr__(self) -> str:
        return f"<Outbox waiting={len(self._posts)}>"

    def post(self, message: JsonObject, group: anyio.abc.TaskGroup) -> None:
        """Have `message` sent by a task of `group`."""
        if len(self._posts) >= POSTS_LIMIT:
            self._diagnostics.count("dropped_answer", "the server does not take our answers")
            return
        self._posts.append(message)
        if not self._posting:
            self._posting = True
            group.start_soon(self._send_posts)

    async def send(self, message: JsonObject) -> None:
        """Send what nobody waits for."""
        try:
            await self._channel.send(message)
        except ServerFailed as error:
            self._diagnostics.count("not_delivered", error.message)

    async def drain(self) -> None:
        """Return once all that was posted is with the transport, and has left it."""
        while self._posting:
            await self._emptied.next_ring()
        await self._channel.flush()

    async def _send_posts(self) -> None:
        try:
            while self._posts:
                await self.send(self._posts.popleft())
        finally:
            self._posting = False
            self._emptied.ring()


class Errands:
    """Tasks in which a channel carries what nobody waits for, until somebody wants to close it."""

    def __init__(self) -> None:
        self._under_way = 0
        self._returned = Bell()

    def __repr__(self) -> str:
        return f"<Errands under_way={self._under_way}>"

    def start_soon(self, group: anyio.abc.TaskGroup, errand: Callable[[], Awaitable[None]]) -> None:
        """Have a task of `group` run `errand`."""
        self._under_way += 1
        group.start_soon(self._run, errand)

    async def all_done(self) -> None:
        while self._under_way:
            await self._returned.next_ring()

    async def _run(self, errand: Callable[[], Awaitable[None]]) -> None:
        try:
            await errand()
        finally:
            self._under_way -= 1
            self._returned.ring()
