"""Resources for the host's own consumers, which are neither the model nor the application.

Owns: requests over the latest connections of a Thread, and the key by which a consumer knows that they have changed.
Never: waits for a server to start, makes an item, or asks for an approval (SKL-2).
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.ports import Connection
from interlock.vocabulary.resource import Page, Resource, ResourceRead
from interlock.vocabulary.server import ServerStatus
from interlock.vocabulary.snapshot import ServerView

Latest = Callable[[], AbstractContextManager[Mapping[str, ServerView]]]
"""The newest servers; their connections are held while the block runs."""


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Equal as long as the same connections live: another server, another process or another session changes it.

    Tools, names and settings of a server do not; so a changed catalogue leaves what was kept under it (SKL-2).
    """

    connections: tuple[tuple[str, Connection, int], ...]


class ResourceClient:
    """The resources of the servers of one Thread. All requests raise ServerFailed."""

    def __init__(self, latest: Latest) -> None:
        self._latest = latest

    @property
    def cache_key(self) -> CacheKey:
        with self._latest() as views:
            live = [(name, view.connection, view.connection.report().restarts) for name, view in sorted(views.items())]
        return CacheKey(tuple(live))

    async def list_resources(self, server: str, *, cursor: str | None = None) -> Page[Resource]:
        """One page; its `next_cursor` continues."""
        with self._latest() as views:
            view = _ready(views, server)
            return await view.connection.list_resources(cursor=cursor, timeout=view.config.tool_timeout)

    async def read_resource(self, server: str, uri: str) -> ResourceRead:
        with self._latest() as views:
            view = _ready(views, server)
            return await view.connection.read_resource(uri, timeout=view.config.tool_timeout)


def _ready(views: Mapping[str, ServerView], server: str) -> ServerView:
    view = views.get(server)
    if view is None:
        raise ServerFailed(f"there is no server {server!r} among the enabled ones", server=server)
    status = view.connection.report().status
    if status is not ServerStatus.READY:
        raise ServerFailed(f"server {server!r} is {status.value.replace('_', ' ')}, not ready", server=server)
    return view
