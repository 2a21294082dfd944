"""All live connections of a Host.

Owns: the task group in which connections run, who holds which of them, and what is known of a server's era.
Never: publishes anything or knows Threads beyond an opaque owner key; `generation` does.

Isolation follows the era (ARCHITECTURE section 10): a connection to a 2026-07-28 server carries no conversation, so
all owners with equal identity share it; an older server's connection belongs to one owner. `shared` in the
configuration overrides. The era is known only once a server has answered, so the first connection of an unknown
server belongs to its owner until it turns out to be shareable; from then on others join it.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Final, NamedTuple, Self

import anyio
import anyio.abc

from interlock.connections.connection import SupervisedConnection
from interlock.connections.notices import Change
from interlock.connections.session import SessionHandlers, open_session
from interlock.connections.startup import Recovery
from interlock.connections.supervisor import Opener, Supervisor
from interlock.vocabulary.server import Era, ServerConfig, ServerReport, ServerStatus

HandlersFor = Callable[[ServerConfig, str], SessionHandlers]
"""Gives the handlers of a new connection of an owner. Their capabilities are part of the connection's identity."""


ERAS_REMEMBERED: Final = 1_000
"""Identities whose era is remembered; every edit of a server's command or variables makes a new identity."""


class Key(NamedTuple):
    """Who may use a connection: one owner, or (None) everybody with an equal identity."""

    identity: str
    owner: str | None


class Pool:
    """An async context manager; leaving it closes every connection, side by side and bounded.

    async with Pool() as pool:
        connection = pool.acquire(config, owner="thread-1")   # starts in the background
        ...
        pool.release(connection)                              # the last release closes
    """

    def __init__(
        self,
        *,
        handlers_for: HandlersFor = lambda config, owner: SessionHandlers(),
        opener: Opener = open_session,
        recovery: Recovery | None = None,
    ) -> None:
        self._handlers_for = handlers_for
        self._opener = opener
        self._recovery = recovery
        self._holders: dict[SupervisedConnection, int] = {}
        self._keys: dict[SupervisedConnection, Key] = {}
        self._by_key: dict[Key, SupervisedConnection] = {}
        self._eras: dict[str, Era] = {}
        self._tasks: anyio.abc.TaskGroup | None = None

    def __repr__(self) -> str:
        return f"<Pool connections={len(self._keys)} held={len(self._holders)}>"

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        tasks, self._tasks = self._tasks, None
        for connection in self._keys:
            connection.supervisor.close()
        return await tasks.__aexit__(kind, error, traceback) if tasks is not None else None

    # ---- holding

    def acquire(self, config: ServerConfig, *, owner: str) -> SupervisedConnection:
        """Hold a connection for `config`: the one that exists, or a new one that starts now.

        One that exists takes over the new settings (timeouts, filters), and is tried again if it had failed. Every
        acquire needs one `release`.
        """
        handlers = self._handlers_for(config, owner)
        identity = config.identity(handlers.capabilities())
        connection = self._usable(config, identity, owner) or self._started(config, identity, owner, handlers)
        connection.supervisor.config = config
        connection.supervisor.retry()
        self._holders[connection] = self._holders.get(connection, 0) + 1
        return connection

    def release(self, connection: SupervisedConnection) -> None:
        """Give up one hold. The last one closes the connection in the background; never waits."""
        left = self._holders[connection] - 1
        if left:
            self._holders[connection] = left
            return
        del self._holders[connection]
        self._forget(connection)
        connection.supervisor.close()

    def holders(self, connection: SupervisedConnection) -> int:
        return self._holders.get(connection, 0)

    def reports(self) -> tuple[ServerReport, ...]:
        """The state of every connection, those that are closing included; sorted by server name."""
        return tuple(sorted((connection.report() for connection in self._keys), key=lambda report: report.name))

    # ---- inside

    def _usable(self, config: ServerConfig, identity: str, owner: str) -> SupervisedConnection | None:
        for key in (Key(identity, owner), Key(identity, None)):
            connection = self._by_key.get(key)
            if connection is not None and not connection.supervisor.closing:
                if key.owner is None and config.shared is False:
                    continue
                return connection
        return None

    def _started(
        self, config: ServerConfig, identity: str, owner: str, handlers: SessionHandlers
    ) -> SupervisedConnection:
        if self._tasks is None:
            raise RuntimeError("the pool is not open")
        era = self._eras.get(identity)
        connection = SupervisedConnection(
            Supervisor(config, handlers=handlers, era=era, opener=self._opener, recovery=self._recovery)
        )
        key = Key(identity, None if _shareable(config, era) else owner)
        self._keys[connection] = key
        self._by_key[key] = connection
        connection.listen(lambda change: self._changed(connection, change))
        self._tasks.start_soon(self._run, connection, name=f"connection {config.name}")
        return connection

    async def _run(self, connection: SupervisedConnection) -> None:
        try:
            await connection.supervisor.run()
        finally:
            self._forget(connection)
            self._keys.pop(connection, None)

    def _changed(self, connection: SupervisedConnection, change: Change) -> None:
        """Learn the era of a server that became ready, and who may share its connection from now on."""
        supervisor = connection.supervisor
        if change.kind != "status" or supervisor.state.status is not ServerStatus.READY or supervisor.era is None:
            return
        key = self._keys.get(connection)
        if key is None or supervisor.closing:
            return
        if len(self._eras) >= ERAS_REMEMBERED:
            self._eras.clear()  # they are found out again
        self._eras[key.identity] = supervisor.era
        if key.owner is not None and _shareable(supervisor.config, supervisor.era):
            self._share(connection, key)
        elif key.owner is None and not _shareable(supervisor.config, supervisor.era):
            # It came back with an older era: those who hold it keep it, nobody joins them.
            self._forget(connection)

    def _share(self, connection: SupervisedConnection, key: Key) -> None:
        everybody = Key(key.identity, None)
        if everybody in self._by_key:
            return  # two owners met an unknown server at once; the first to be ready is shared, this one stays private
        self._forget(connection)
        self._keys[connection] = everybody
        self._by_key[everybody] = connection

    def _forget(self, connection: SupervisedConnection) -> None:
        """Let nobody find the connection any more."""
        key = self._keys.get(connection)
        if key is not None and self._by_key.get(key) is connection:
            del self._by_key[key]


def _shareable(config: ServerConfig, era: Era | None) -> bool:
    return config.shared if config.shared is not None else era == "stateless"
