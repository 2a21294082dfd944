"""The one PostgreSQL session that writes.

Owns: the writing connection, its advisory locks (the claims on Threads), what is done when it is lost.
Never: does two things at once, or does a thing twice: a request whose outcome is unknown is asked for again
in a way that finds what was done.

The session does what it is asked in one task of its own, shielded: a caller that is cancelled does not
tear a statement apart. Appends that wait together go into one transaction (group commit), for a commit is what a disk
takes longest for.
"""

import hashlib
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import anyio
import asyncpg  # type: ignore[import-untyped] # it ships no types

from interlock.stores.outcome import Outcome
from interlock.stores.owner import Owner, claimed_by, this_process
from interlock.stores.postgres_failures import is_lost, storage_failed
from interlock.vocabulary.errors import InterlockError, StorageFailed

Connection: TypeAlias = Any
"""An asyncpg.Connection."""

Operation: TypeAlias = Callable[[Connection, bool], Awaitable[Any]]
"""What is done on the connection. The flag says that an earlier attempt may have done it already."""

RETRY_SECONDS = 30.0
"""How long a lost connection is tried again before the request fails."""

CONNECT_SECONDS, STATEMENT_SECONDS, CLOSE_SECONDS = 10.0, 30.0, 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
MAXIMUM_GROUP = 128
"""Requests in one transaction; bounds how long the first of them waits for the others."""
MAXIMUM_WAITING = 1000
"""Requests that wait for the session; who comes after them waits before it is heard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    action: str
    operation: Operation
    patience: float
    grouped: bool
    outcome: Outcome[Any]


class PostgresSession:
    """Serves requests from `run`, which its opener starts as a task, until `close`."""

    def __init__(self, url: str, database: str, *, retry_seconds: float = RETRY_SECONDS) -> None:
        self._url = url
        self._database = database
        self._retry_seconds = retry_seconds
        self._sender, self._receiver = anyio.create_memory_object_stream[_Request](MAXIMUM_WAITING)
        self._next: _Request | None = None
        """Met behind a group that it cannot be part of."""
        self._connection: Connection | None = None
        self._backend: tuple[int, datetime] | None = None
        self._claims: dict[str, Owner] = {}
        self._lost_claims: dict[str, Owner | None] = {}

    async def perform(self, action: str, operation: Operation, *, retry: bool = True, grouped: bool = False) -> Any:
        """What `operation` returns; StorageFailed ("cannot <action> the database …") otherwise.

        `grouped`: it may share a transaction with others, since what it refuses by an InterlockError it has not begun.
        """
        patience = self._retry_seconds if retry else 0.0
        request = _Request(action=action, operation=operation, patience=patience, grouped=grouped, outcome=Outcome())
        try:
            await self._sender.send(request)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise self._stopped(action) from error
        return await request.outcome.wait()

    async def claim(self, thread_id: str) -> None:
        await self.perform("claim a thread in", lambda connection, _: self._claim(connection, thread_id))

    async def release(self, thread_id: str) -> None:
        # Not tried again: where the connection is gone, so is the lock.
        await self.perform("free a claim in", lambda connection, _: self._release(connection, thread_id), retry=False)

    def check_claim(self, thread_id: str) -> None:
        """StorageFailed when the claim was lost with a connection and somebody else has it now."""
        if thread_id in self._lost_claims:
            raise claimed_by(thread_id, self._lost_claims[thread_id])

    async def run(self) -> None:
        """Serve until closed. Shielded: what a cancelled host must still write is written."""
        with anyio.CancelScope(shield=True):
            try:
                async for request in self._receiver:
                    self._next = request
                    while self._next is not None:
                        await self._settle(self._group())
            finally:
                self._refuse_waiting()
                await self._disconnect()

    def close(self) -> None:
        """Serve what waits, then end."""
        self._sender.close()

    def _group(self) -> list[_Request]:
        """The next request, with those that wait behind it and may share its transaction."""
        group: list[_Request] = []
        while self._next is not None and (not group or (self._next.grouped and len(group) < MAXIMUM_GROUP)):
            group.append(self._next)
            self._next = None
            if group[0].grouped:
                with suppress(anyio.EndOfStream, anyio.WouldBlock):
                    self._next = self._receiver.receive_nowait()
        return group

    async def _settle(self, group: list[_Request]) -> None:
        # Unless they get others: the task itself may be torn down.
        results: list[Any] = [self._stopped(request.action) for request in group]
        try:
            results = await (self._serve_together(group) if len(group) > 1 else self._serve_each(group))
        finally:
            for request, result in zip(group, results, strict=True):
                request.outcome.settle(result)

    async def _serve_together(self, group: list[_Request]) -> list[Any]:
        """One transaction for all; where that fails, each gets its own, for one may be to blame for all."""
        try:
            connection = await self._connected()
            async with connection.transaction():
                results = [await _outcome(request, connection) for request in group]
        except Exception as error:
            lost = is_lost(error)
            if lost:
                await self._disconnect()
            return await self._serve_each(group, repeated=lost)
        return results

    async def _serve_each(self, group: list[_Request], repeated: bool = False) -> list[Any]:
        return [await self._serve(request, repeated) for request in group]

    def _refuse_waiting(self) -> None:
        if self._next is not None:
            self._next.outcome.settle(self._stopped(self._next.action))
        with self._receiver, suppress(anyio.EndOfStream, anyio.WouldBlock):
            while True:
                request = self._receiver.receive_nowait()
                request.outcome.settle(self._stopped(request.action))

    def _stopped(self, action: str) -> StorageFailed:
        return StorageFailed(f"cannot {action} the database {self._database}: the store is closed; open it again")

    async def _serve(self, request: _Request, repeated: bool) -> Any:
        """The result of the request, or its error as a value."""
        deadline, pause = anyio.current_time() + request.patience, FIRST_PAUSE
        while True:
            try:
                return await request.operation(await self._connected(), repeated)
            except InterlockError as error:
                return error
            except Exception as error:
                if not is_lost(error):
                    return storage_failed(request.action, self._database, error)
                await self._disconnect()
                if anyio.current_time() + pause > deadline:
                    return self._gave_up(request, error)
            repeated = True
            await anyio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _gave_up(self, request: _Request, error: Exception) -> StorageFailed:
        failed = storage_failed(request.action, self._database, error)
        waited = math.ceil(request.patience)
        return StorageFailed(
            f"{failed.message}; given up after {waited} s, and whether it was done is unknown until it is read again",
            database=self._database,
            outcome="unknown",
        )

    async def _connected(self) -> Connection:
        if self._connection is not None and not self._connection.is_closed():
            return self._connection
        connection = await asyncpg.connect(
            self._url,
            timeout=CONNECT_SECONDS,
            command_timeout=STATEMENT_SECONDS,
            server_settings={"application_name": "interlock"},
        )
        self._connection = connection
        await self._end_former_backend(connection)
        await self._claim_again(connection)
        return connection

    async def _end_former_backend(self, connection: Connection) -> None:
        """The server may not know yet that our former connection is gone, and keep our locks and half a request."""
        if self._backend is not None:
            await connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2",
                *self._backend,
            )
        row = await connection.fetchrow("SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()")
        self._backend = (row[0], row[1])

    async def _claim_again(self, connection: Connection) -> None:
        for thread_id, owner in self._claims.items():
            self._lost_claims.pop(thread_id, None)
            if await _try_lock(connection, thread_id):
                await _sign(connection, thread_id, owner)
            else:
                self._lost_claims[thread_id] = await _owner(connection, thread_id)

    async def _claim(self, connection: Connection, thread_id: str) -> None:
        if thread_id in self._claims:  # PostgreSQL would grant our own session its lock a second time
            raise claimed_by(thread_id, self._claims[thread_id])
        if not await _try_lock(connection, thread_id):
            raise claimed_by(thread_id, await _owner(connection, thread_id))
        owner = this_process()
        await _sign(connection, thread_id, owner)
        self._claims[thread_id] = owner

    async def _release(self, connection: Connection, thread_id: str) -> None:
        del self._claims[thread_id]
        if thread_id in self._lost_claims:
            del self._lost_claims[thread_id]
            return
        await connection.execute("DELETE FROM claims WHERE thread_id = $1", thread_id)
        await connection.execute("SELECT pg_advisory_unlock($1)", _lock_number(thread_id))

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            await connection.close(timeout=CLOSE_SECONDS)
        except Exception:  # a connection that cannot even say goodbye
            connection.terminate()


async def _outcome(request: _Request, connection: Connection) -> Any:
    try:
        return await request.operation(connection, False)
    except InterlockError as refusal:
        return refusal


def _lock_number(thread_id: str) -> int:
    """The advisory lock of a Thread: 64 bits of a digest, signed as PostgreSQL wants them."""
    digest = hashlib.sha256(f"interlock thread {thread_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


async def _try_lock(connection: Connection, thread_id: str) -> bool:
    return bool(await connection.fetchval("SELECT pg_try_advisory_lock($1)", _lock_number(thread_id)))


async def _sign(connection: Connection, thread_id: str, owner: Owner) -> None:
    await connection.execute(
        "INSERT INTO claims (thread_id, process_id, host, since) VALUES ($1, $2, $3, $4) ON CONFLICT (thread_id)"
        " DO UPDATE SET process_id = excluded.process_id, host = excluded.host, since = excluded.since",
        thread_id,
        owner.process_id,
        owner.host,
        owner.since,
    )


async def _owner(connection: Connection, thread_id: str) -> Owner | None:
    row = await connection.fetchrow("SELECT process_id, host, since FROM claims WHERE thread_id = $1", thread_id)
    return None if row is None else Owner(process_id=row[0], host=row[1], since=row[2])
