"""Notifications between their arrival and their one consumer.

Owns: the bounded queue, and which notifications fold into one.
Never: starts a task or calls a handler.

A list_changed notice says "read again" and nothing more, so one that waits already stands for all that follow
(CON-14: a storm costs one refresh). Others are dropped, oldest kept, when a slow handler lets 256 of them wait: log
messages and updates are no facts to rely on, and memory is not the server's to spend.
"""

from collections.abc import Hashable, Mapping
from typing import Any

from interlock.vocabulary.json import JsonObject, excerpt

QUEUE_LIMIT = 256
FOLDED_LIMIT = 64
"""Further places for list_changed and resources/updated, so that a flood of log messages cannot crowd them out."""

SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"


class NotificationQueue:
    """First in, first out; `put` never waits."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, tuple[str, JsonObject]] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, method: str, params: JsonObject) -> bool:
        """Take a notification. False if it was dropped because the queue is full."""
        folding = _folding_key(method, params)
        if folding is not None and folding in self._waiting:
            return True
        limit = QUEUE_LIMIT if folding is None else QUEUE_LIMIT + FOLDED_LIMIT
        if len(self._waiting) >= limit:
            return False
        self._number += 1
        self._waiting[folding if folding is not None else self._number] = (method, params)
        return True

    def take(self) -> tuple[str, JsonObject]:
        """The oldest; KeyError when empty."""
        return self._waiting.pop(next(iter(self._waiting)))


def _folding_key(method: str, params: JsonObject) -> Hashable | None:
    """What is equal for notifications that say the same; None for those that each say something of their own."""
    if method.endswith("/list_changed"):
        return (method, _subscription(params))
    if method == "notifications/resources/updated" and isinstance(uri := params.get("uri"), str):
        return (method, _subscription(params), uri)
    return None


def _subscription(params: JsonObject) -> str | None:
    meta: Any = params.get("_meta")
    return excerpt(meta.get(SUBSCRIPTION_KEY), 100) if isinstance(meta, Mapping) and SUBSCRIPTION_KEY in meta else None
