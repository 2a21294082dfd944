"""What changed at a server, for those who listen.

Owns: Change, the meaning of a server's change notifications, and the listeners of one connection.
Never: waits, reads anything again, or folds (the listeners do).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from interlock.vocabulary.json import JsonObject

ChangeKind = Literal["status", "tools", "resources", "prompts", "updated"]

KINDS: Final[Mapping[str, ChangeKind]] = {
    "notifications/tools/list_changed": "tools",
    "notifications/resources/list_changed": "resources",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/updated": "updated",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The status or one of the lists of `server` changed, or its resource `uri` did."""

    server: str
    kind: ChangeKind
    uri: str | None = None


OnChange = Callable[[Change], None]
"""Called on the event loop; it must not wait and must not raise."""


class Listeners:
    """Who is told of the changes of one connection."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._listeners: list[OnChange] = []

    def add(self, on_change: OnChange) -> Callable[[], None]:
        """Returns the function that takes the listener out again; it may be called any number of times."""
        self._listeners.append(on_change)
        return lambda: self._listeners.remove(on_change) if on_change in self._listeners else None

    def tell(self, kind: ChangeKind, uri: str | None = None) -> None:
        change = Change(server=self._server, kind=kind, uri=uri)
        for listener in tuple(self._listeners):
            listener(change)


def change_of(method: str, params: JsonObject) -> tuple[ChangeKind, str | None] | None:
    """The change that a notification tells; None for all other notifications, and for an update of no URI."""
    kind = KINDS.get(method)
    if kind != "updated":
        return None if kind is None else (kind, None)
    uri = params.get("uri")
    return ("updated", uri) if isinstance(uri, str) else None
