"""Listening for changes: streams that come back after a cut, and resources that are subscribed to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from interlock.connections.connection import SupervisedConnection
from interlock.connections.notices import Change
from interlock.connections.session import SessionHandlers
from interlock.connections.startup import Backoff, Recovery
from interlock.connections.subscriptions import MAXIMUM_RESOURCES, Subscriptions
from interlock.connections.supervisor import Supervisor
from interlock.vocabulary.errors import InvalidRequest, ServerFailed
from tests.connections.fakes import PATIENCE, FakeServer, FakeSession, config, lost, until
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

QUICK = Recovery(backoff=Backoff(first=0.001, limit=0.01))
CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": False},
}
KEY = "io.modelcontextprotocol/subscriptionId"


class Listened(FakeServer):
    """A server whose listen streams a test can cut."""

    def __init__(self, era: Any = "stateless") -> None:
        super().__init__(era=era)
        self.streams: dict[str, tuple[Any, anyio.Event]] = {}
        self.outcomes: list[ServerFailed] = []
        self.listens: list[Any] = []
        self.acknowledge = True

    async def request(self, session: FakeSession, wanted: Any, key: str) -> dict[str, Any]:
        self.listens.append(wanted)
        cut = anyio.Event()
        self.streams[key] = (wanted, cut)
        try:
            if self.acknowledge:
                await session.notify_us("notifications/subscriptions/acknowledged", _meta={KEY: key})
            if self.outcomes:
                raise self.outcomes.pop(0)
            await cut.wait()
        finally:
            del self.streams[key]
        raise lost()


class ListenedSession(FakeSession):
    async def request(self, method: str, params: Any = None, **options: Any) -> Any:
        if method != "subscriptions/listen":
            return await super().request(method, params, **options)
        assert options["timeout"] is None
        server = self.server
        assert isinstance(server, Listened)
        return await server.request(self, params["notifications"], options["request_id"])


@asynccontextmanager
async def connected(server: FakeServer) -> AsyncIterator[tuple[SupervisedConnection, list[Change]]]:
    supervisor = Supervisor(config(), handlers=SessionHandlers(), opener=server, recovery=QUICK)
    connection = SupervisedConnection(supervisor)
    connection._subscriptions._recovery = QUICK
    heard: list[Change] = []
    with anyio.fail_after(4 * PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(supervisor.run)
            await connection.ready(PATIENCE)
            connection.listen(lambda change: heard.append(change) if change.kind != "status" else None)
            yield connection, heard
            supervisor.close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Listened:
    monkeypatch.setattr("tests.connections.fakes.FakeSession", ListenedSession)
    monkeypatch.setattr("tests.connections.fakes.CAPABILITIES", CAPABILITIES)
    return Listened()


@requirement("CON-14")
async def test_a_stateless_server_is_listened_to_for_the_lists_that_it_offers(server: Listened) -> None:
    async with connected(server) as (_, heard):
        await until(lambda: len(server.streams) == 1)
        assert server.listens == [{"toolsListChanged": True, "promptsListChanged": True}]
        await server.sessions[0].notify_us("notifications/tools/list_changed")
        assert [change.kind for change in heard] == ["tools"]
    assert server.streams == {}


@requirement("CON-14")
async def test_a_stream_that_was_cut_is_opened_again_and_what_was_missed_is_said_to_have_changed(
    server: Listened,
) -> None:
    async with connected(server) as (_, heard):
        await until(lambda: len(server.streams) == 1)
        assert heard == []
        next(iter(server.streams.values()))[1].set()
        await until(lambda: len(server.listens) == 2 and len(heard) == 2)
        assert [change.kind for change in heard] == ["tools", "prompts"]


@requirement("CON-14")
async def test_a_server_that_refuses_to_be_listened_to_is_not_asked_again(server: Listened) -> None:
    server.outcomes = [ServerFailed("method not found", server="zoo", kind="rejected", rpc_code=-32601)]
    async with connected(server) as (connection, _):
        await until(lambda: server.sessions[0].noted != [])
        await connection.list_tools(timeout=PATIENCE)
        await anyio.wait_all_tasks_blocked()
        assert len(server.listens) == 1
        assert server.sessions[0].noted[0][0] == "listen_refused"


async def test_a_stream_that_is_never_acknowledged_holds_nobody_up(server: Listened) -> None:
    server.acknowledge = False
    async with connected(server) as (connection, _):
        assert (await connection.list_tools(timeout=PATIENCE)).entries
        assert (await connection.call_tool("echo", {}, timeout=PATIENCE)).content


@requirement("CON-14")
async def test_listening_goes_on_in_the_next_session(server: Listened) -> None:
    async with connected(server):
        await until(lambda: len(server.streams) == 1)
        server.sessions[0].die()
        await until(lambda: len(server.sessions) == 2 and len(server.streams) == 1)
        assert len(server.listens) == 2


async def test_subscribed_resources_share_one_stream_and_survive_a_restart(server: Listened) -> None:
    async with connected(server) as (connection, heard):
        await connection.subscribe_resource("zoo://a", timeout=PATIENCE)
        await connection.subscribe_resource("zoo://a", timeout=PATIENCE)
        await connection.subscribe_resource("zoo://b", timeout=PATIENCE)
        await until(lambda: {"resourceSubscriptions": ["zoo://a", "zoo://b"]} in server.listens)
        await connection.unsubscribe_resource("zoo://a", timeout=PATIENCE)
        await server.sessions[0].notify_us("notifications/resources/updated", uri="zoo://a")
        assert heard[-1] == Change(server="zoo", kind="updated", uri="zoo://a")
        heard.clear()
        server.sessions[0].die()
        await until(lambda: server.listens[-2:].count({"resourceSubscriptions": ["zoo://a", "zoo://b"]}) == 1)
        await until(lambda: {change.uri for change in heard} == {"zoo://a", "zoo://b"})
        await connection.unsubscribe_resource("zoo://a", timeout=PATIENCE)
        await connection.unsubscribe_resource("zoo://b", timeout=PATIENCE)
        await until(lambda: len(server.streams) == 1)


async def test_a_handshake_server_is_told_of_subscriptions_and_told_again_after_a_restart(server: Listened) -> None:
    server.era = "handshake"
    server.answer = lambda *_: {}
    async with connected(server) as (connection, heard):
        await connection.subscribe_resource("zoo://a", timeout=PATIENCE)
        await connection.subscribe_resource("zoo://a", timeout=PATIENCE)
        server.sessions[0].die()
        await until(lambda: heard != [])
        await connection.unsubscribe_resource("zoo://a", timeout=PATIENCE)
        await connection.unsubscribe_resource("zoo://a", timeout=PATIENCE)
        asked = [[method for method, _ in session.asked] for session in server.sessions]
        assert asked == [["resources/subscribe"], ["resources/subscribe", "resources/unsubscribe"]]
        assert heard == [Change(server="zoo", kind="updated", uri="zoo://a")]


async def test_a_server_without_subscriptions_refuses_them() -> None:
    async with connected(FakeServer()) as (connection, _):
        with pytest.raises(ServerFailed) as failed:
            await connection.subscribe_resource("zoo://a", timeout=PATIENCE)
    assert failed.value.kind == "unsupported"


def test_subscriptions_are_bounded() -> None:
    subscriptions = Subscriptions(lambda kind, uri: None)
    for number in range(MAXIMUM_RESOURCES):
        assert subscriptions.add(str(number))
    with pytest.raises(InvalidRequest):
        subscriptions.add("one more")
    assert not subscriptions.add("0")


# ---- what a listing is worth


def numbered(session: FakeSession, method: str, params: Any) -> Any:
    """Tools that are others each time, though the server lets them be kept for a minute."""
    name = f"t{session.number}.{len(session.asked)}"
    return {"tools": [{"name": name, "inputSchema": {"type": "object"}}], "ttlMs": 60_000}


async def listed(connection: SupervisedConnection, **options: Any) -> str:
    return (await connection.list_tools(timeout=PATIENCE, **options)).entries[0].name


@requirement("CON-14", "CON-17")
async def test_after_a_gap_what_was_kept_is_asked_for_again(server: Listened) -> None:
    server.answer = numbered
    async with connected(server) as (connection, _):
        await until(lambda: connection._subscriptions.hears_lists)
        first = await listed(connection)
        assert await listed(connection) == await listed(connection, held=True) == first

        next(iter(server.streams.values()))[1].set()
        await until(lambda: len(server.listens) == 2 and connection._subscriptions.hears_lists)

        assert await listed(connection, held=True) != first


@requirement("CON-14")
async def test_a_listing_from_before_the_stream_stood_is_taken_again(server: Listened) -> None:
    server.acknowledge = False
    async with connected(server) as (connection, heard):
        await until(lambda: len(server.streams) == 1)
        await connection.list_tools(timeout=PATIENCE)
        assert heard == []

        (key,) = server.streams
        await server.sessions[0].notify_us("notifications/subscriptions/acknowledged", _meta={KEY: key})

        assert [change.kind for change in heard] == ["tools"]


@requirement("CON-14", "CON-15")
@pytest.mark.parametrize("era", ["stateless", "handshake"])
async def test_those_who_come_later_share_a_listing_until_the_server_says_that_it_changed(
    server: Listened, era: Any
) -> None:
    server.era, server.answer = era, numbered
    async with connected(server) as (connection, _):
        await until(lambda: connection._subscriptions.hears_lists)
        first = await listed(connection)
        assert [await listed(connection, held=True) for _ in range(3)] == [first] * 3
        await server.sessions[0].notify_us("notifications/tools/list_changed")
        second = await listed(connection, held=True)
        assert second != first
        assert await listed(connection, held=True, fresh=True) != second


@pytest.mark.parametrize("why", ["no promise", "not heard", "another session"])
async def test_a_listing_is_not_shared_where_changes_may_go_unheard(
    server: Listened, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    server.answer = lambda *call: {**numbered(*call), "ttlMs": 0}
    server.acknowledge = why != "not heard"
    if why == "no promise":
        monkeypatch.setattr("tests.connections.fakes.CAPABILITIES", {**CAPABILITIES, "tools": {}})
    async with connected(server) as (connection, _):
        await until(lambda: len(server.streams) == 1)
        first = await listed(connection, held=True)
        if why == "another session":
            server.sessions[0].die()
            await connection.ready(PATIENCE)
        assert await listed(connection, held=True) != first
