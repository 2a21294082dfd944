"""What can happen to a connection."""

import os
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import asyncpg
import pytest

from interlock.stores.postgres import PostgresStore, open_postgres
from interlock.vocabulary.errors import StorageFailed
from interlock.vocabulary.event import ThreadNamed, ThreadStarted
from tests.manifest import requirement
from tests.stores.postgres_server import PostgresServer
from tests.stores.test_store import stored_in

pytestmark = pytest.mark.anyio

STARTED = ThreadStarted()


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return postgres_server.new_database()


@pytest.fixture
def running(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    """The server, which the test may stop; it runs again afterwards."""
    yield postgres_server
    if not postgres_server.is_running():
        postgres_server.start()


@requirement("HIS-2")
@pytest.mark.parametrize("how", ["fast", "immediate"])
async def test_a_restart_of_the_server_loses_no_event_and_stores_none_twice(
    url: str, running: PostgresServer, how: str
) -> None:
    async with open_postgres(url) as store:
        await store.append("a", [STARTED], after=0, at=0)
        last = 1
        restarted = anyio.Event()

        async def write() -> None:
            nonlocal last
            while not (restarted.is_set() and last > 20):
                await store.append("a", [ThreadNamed(name=str(last))], after=last, at=last)
                last += 1

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            await anyio.to_thread.run_sync(running.stop, how)
            await anyio.to_thread.run_sync(running.start)
            restarted.set()
        stored = await stored_in(store, "a")
        assert [event.sequence for event in stored] == [*range(1, last + 1)]
        assert [event.event for event in stored[1:]] == [ThreadNamed(name=str(number)) for number in range(1, last)]


@requirement("HIS-7")
async def test_a_restart_of_the_server_does_not_free_a_claim(url: str, running: PostgresServer) -> None:
    async with open_postgres(url) as store, open_postgres(url) as other:
        async with store.claim("a"):
            await anyio.to_thread.run_sync(running.stop, "immediate")
            await anyio.to_thread.run_sync(running.start)
            await store.append("a", [STARTED], after=0, at=0)
            with pytest.raises(StorageFailed, match=f"process {os.getpid()} on"):
                async with other.claim("a"):
                    pass
        async with other.claim("a"):
            pass


@requirement("HIS-7")
async def test_a_claim_that_somebody_took_while_the_connection_was_lost_stops_the_former_owner(url: str) -> None:
    async with open_postgres(url) as store, open_postgres(url) as other, store.claim("a"):
        await store.append("a", [STARTED], after=0, at=0)
        await end_session_of(url, store)
        async with other.claim("a"):
            with pytest.raises(StorageFailed, match="cannot open thread 'a' for writing: process"):
                await store.append("a", [ThreadNamed(name="x")], after=1, at=0)
            await other.append("a", [ThreadNamed(name="y")], after=1, at=0)
        assert [event.event for event in await stored_in(store, "a", after=1)] == [ThreadNamed(name="y")]


async def end_session_of(url: str, store: PostgresStore) -> None:
    assert store._session._backend is not None
    connection = await asyncpg.connect(url)
    await connection.execute("SELECT pg_terminate_backend($1, 5000)", store._session._backend[0])
    await connection.close()


async def test_a_server_that_stays_away_fails_the_append_after_a_bounded_time(
    url: str, running: PostgresServer
) -> None:
    async with open_postgres(url, retry_seconds=0.3) as store:
        await store.append("a", [STARTED], after=0, at=0)
        await anyio.to_thread.run_sync(running.stop, "immediate")
        with pytest.raises(StorageFailed, match=r"given up after 1 s, and whether it was done is unknown") as failed:
            await store.append("a", [ThreadNamed(name="x")], after=1, at=0)
        assert failed.value.facts["outcome"] == "unknown"
        with pytest.raises(StorageFailed, match="cannot read events from the database 127"):
            await stored_in(store, "a")
        await anyio.to_thread.run_sync(running.start)
        await store.append("a", [ThreadNamed(name="x")], after=1, at=0)
        assert len(await stored_in(store, "a")) == 2


@asynccontextmanager
async def losing_answers(url: str, which: bytes = b"") -> AsyncIterator[tuple[str, anyio.Event]]:
    """A way to the server that, once the event is set, drops the connection in place of the next answer that holds
    `which`."""
    place = url.partition("@")[2].partition("/")[0]
    host, _, port = place.partition(":")
    lose = anyio.Event()

    async def pass_on(client: anyio.abc.SocketStream) -> None:
        async with client, await anyio.connect_tcp(host, int(port)) as server, anyio.create_task_group() as tasks:

            async def answers() -> None:
                async for data in server:
                    if lose.is_set() and not lost and which in data:
                        lost.append(True)
                        await client.aclose()
                        await anyio.sleep_forever()  # the server goes on believing in its client
                    await client.send(data)
                tasks.cancel_scope.cancel()

            tasks.start_soon(answers)
            with suppress(anyio.ClosedResourceError):
                async for data in client:
                    await server.send(data)
                tasks.cancel_scope.cancel()

    lost: list[bool] = []
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, pass_on)
        (sockets,) = listener.listeners
        _, relay = sockets.extra_attributes[anyio.abc.SocketAttribute.local_address]()
        yield url.replace(place, f"127.0.0.1:{relay}"), lose
        assert lost
        tasks.cancel_scope.cancel()


@requirement("HIS-2")
async def test_an_append_whose_answer_was_lost_is_found_and_not_stored_again(url: str) -> None:
    async with losing_answers(url) as (relayed, lose), open_postgres(relayed) as store, store.claim("a"):
        await store.append("a", [STARTED], after=0, at=0)
        await store.append("a", [ThreadNamed(name="x")], after=1, at=0)  # its statement is prepared from here on
        lose.set()
        stored = await store.append("a", [ThreadNamed(name="y"), ThreadNamed(name="z")], after=2, at=7)
        assert [event.sequence for event in stored] == [3, 4]
        assert await stored_in(store, "a", after=2) == [*stored]


@asynccontextmanager
async def waiting_together(store: PostgresStore, *appends: Awaitable[object]) -> AsyncIterator[list[object]]:
    """The appends wait for the session together while the block runs; after it the list has results, or errors."""
    begun, free = anyio.Event(), anyio.Event()
    results: list[object] = [None] * len(appends)

    async def hold(connection: Any, repeated: bool) -> None:
        begun.set()
        await free.wait()

    async def append(number: int, waited: Awaitable[object]) -> None:
        try:
            results[number] = await waited
        except StorageFailed as error:
            results[number] = error

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store._session.perform, "hold", hold)
        await begun.wait()
        for number, waited in enumerate(appends):
            tasks.start_soon(append, number, waited)
            await anyio.wait_all_tasks_blocked()
        yield results
        free.set()


async def transactions(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        found = await connection.fetchval("SELECT count(DISTINCT xmin::text) FROM events")
    finally:
        await connection.close()
    return int(found)


@requirement("HIS-2")
async def test_appends_that_wait_together_share_a_transaction_and_one_that_is_refused_fails_alone(url: str) -> None:
    async with open_postgres(url) as store:
        appends = [store.append(name, [STARTED], after=0, at=0) for name in "abc"]
        late = store.append("b", [ThreadNamed(name="x")], after=7, at=0)
        following = store.append("a", [ThreadNamed(name="x")], after=1, at=0)
        async with waiting_together(store, *appends, late, following) as results:
            pass
        assert isinstance(results[3], StorageFailed)
        assert [isinstance(result, tuple) for result in results] == [True, True, True, False, True]
        assert [len(await stored_in(store, name)) for name in "abc"] == [2, 1, 1]
    assert await transactions(url) == 1


@requirement("HIS-2")
async def test_where_a_shared_transaction_fails_everybody_gets_an_own_one(url: str) -> None:
    async with open_postgres(url) as store:
        broken = store._session.perform(
            "divide", lambda connection, _: connection.execute("SELECT 1 / 0"), grouped=True
        )
        appends = [store.append(name, [STARTED], after=0, at=0) for name in "ab"]
        async with waiting_together(store, appends[0], broken, appends[1]) as results:
            pass
        assert isinstance(results[1], StorageFailed)
        assert [len(await stored_in(store, name)) for name in "ab"] == [1, 1]
    assert await transactions(url) == 2


@requirement("HIS-2")
async def test_what_cannot_share_a_transaction_keeps_its_place(url: str) -> None:
    async with open_postgres(url) as store:
        deleted = store.delete_thread("a")
        born, again = (store.append("a", [STARTED], after=0, at=at) for at in (1, 2))
        async with waiting_together(store, born, deleted, again) as results:
            pass
        assert not any(isinstance(result, StorageFailed) for result in results)
        assert [stored.at for stored in await stored_in(store, "a")] == [2]


@requirement("HIS-2")
async def test_appends_whose_common_answer_was_lost_are_found_and_not_stored_again(url: str) -> None:
    async with losing_answers(url, b"COMMIT\0") as (relayed, lose), open_postgres(relayed) as store:
        appends = [store.append(name, [STARTED], after=0, at=3) for name in "ab"]
        following = store.append("a", [ThreadNamed(name="x")], after=1, at=4)
        async with waiting_together(store, *appends, following) as results:
            lose.set()
        assert not any(isinstance(result, StorageFailed) for result in results)
        assert [len(await stored_in(store, name)) for name in "ab"] == [2, 1]
    assert await transactions(url) == 1


async def test_a_failure_inside_comes_out_as_it_is(url: str) -> None:
    with pytest.raises(StorageFailed, match="inside"):
        async with open_postgres(url):
            raise StorageFailed("inside")


async def test_a_cancelled_host_can_still_write_its_ends(url: str) -> None:
    with anyio.CancelScope() as scope:
        async with open_postgres(url) as store:
            await store.append("a", [STARTED], after=0, at=0)
            try:
                scope.cancel()
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    await store.append("a", [ThreadNamed(name="end")], after=1, at=0)
    async with open_postgres(url) as store:
        assert len(await stored_in(store, "a")) == 2


async def test_a_closed_store_refuses_and_says_so(url: str) -> None:
    async with open_postgres(url) as store:
        pass
    with pytest.raises(StorageFailed, match="the store is closed"):
        await store.append("a", [STARTED], after=0, at=0)


async def test_a_database_that_does_not_exist_is_named(url: str) -> None:
    with pytest.raises(StorageFailed, match="there is no such database; create it first"):
        async with open_postgres(url + "_not"):
            pass
