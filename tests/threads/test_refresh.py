"""The refresher: a Thread's catalogue follows its servers, whole or not at all."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from interlock.catalog.registry import Registry
from interlock.connections.changes import Changes
from interlock.testing import Gate
from interlock.threads.refresh import Refresher
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.resource import Listing
from interlock.vocabulary.server import ServerStatus
from interlock.vocabulary.snapshot import ServerView
from interlock.vocabulary.tool import BadEntry, Tool
from tests.manifest import requirement
from tests.threads.fakes import FakeConnection, config, tool

pytestmark = pytest.mark.anyio


class Watched:
    """A running refresher over fake servers, with what it told."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.revisions: list[int] = []
        self.failures: list[tuple[str, str]] = []
        self.refresher = Refresher(
            self.registry,
            published=lambda: self.revisions.append(self.registry.catalog.revision),
            failed=lambda server, sentence: self.failures.append((server, sentence)),
        )

    @property
    def names(self) -> list[str]:
        return list(self.registry.catalog.entries)

    @property
    def pending(self) -> list[str]:
        return list(self.refresher.pending)

    async def settled(self, *servers: str) -> None:
        with anyio.fail_after(60):
            await self.refresher.settled(servers)

    async def idle(self) -> None:
        """Let the refresher do all that it can do now."""
        for _ in range(20):
            await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def watched(*views: ServerView) -> AsyncIterator[Watched]:
    room = Watched()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(room.refresher.run)
        room.refresher.watch(views)
        yield room
        tasks.cancel_scope.cancel()


def server(name: str, *tools: str, **settings: Any) -> tuple[FakeConnection, ServerView]:
    connection = FakeConnection(name)
    connection.listing = Listing(entries=tuple(tool(tool_name) for tool_name in tools))
    return connection, ServerView(config=config(name, **settings), connection=connection)


def changed(*names: str) -> Changes:
    return Changes(tools=frozenset(names))


@requirement("CAT-2")
async def test_servers_that_are_ready_are_listed_and_their_tools_published() -> None:
    _, a = server("a", "one")
    _, b = server("b", "two")
    async with watched(a, b) as room:
        await room.settled("a", "b")

        assert room.names == ["mcp__a__one", "mcp__b__two"]
        assert room.revisions[-1] == 2


@requirement("CON-14", "CAT-2")
async def test_a_storm_of_marks_during_a_listing_costs_one_more_listing() -> None:
    connection, a = server("a", "one")
    gate, listings = Gate(), 0

    class Counting(FakeConnection):
        async def list_tools(self, *, timeout: float, **rest: Any) -> Listing[Tool]:
            nonlocal listings
            listings += 1
            await gate.wait()
            return await super().list_tools(timeout=timeout)

    counting = Counting("a")
    counting.listing = connection.listing
    async with watched(ServerView(config=a.config, connection=counting)) as room:
        await gate.reached()
        for _ in range(50):
            room.refresher.take(changed("a"))
        gate.open()
        await room.settled("a")
        await room.idle()

        assert listings == 2
        assert room.registry.catalog.revision == 1


@requirement("CAT-2", "CAT-3")
@pytest.mark.parametrize("problem", ["lost", "bad tool"])
async def test_a_failed_refresh_leaves_the_old_tools_whole_and_says_why(problem: str) -> None:
    connection, a = server("a", "one")
    async with watched(a) as room:
        await room.settled("a")
        before = room.registry.catalog

        connection.listing = (
            ServerFailed("the connection was lost", server="a", kind="lost")
            if problem == "lost"
            else Listing(entries=(tool("two"),), bad=(BadEntry(name="three", reason="its schema is a list"),))
        )
        room.refresher.take(changed("a"))
        await room.idle()

        assert room.registry.catalog is before
        ((name, sentence),) = room.failures
        assert name == "a"
        assert sentence == room.refresher.failures["a"]
        assert ("lost" if problem == "lost" else "'three'") in sentence


@requirement("CON-1")
async def test_a_listing_that_meets_a_defect_of_ours_costs_only_its_server(caplog: pytest.LogCaptureFixture) -> None:
    class Breaking(FakeConnection):
        async def list_tools(self, *, timeout: float, **rest: Any) -> Listing[Tool]:
            raise ZeroDivisionError

    _, good = server("good", "one")
    bad = Breaking("bad")
    async with watched(ServerView(config=config("bad"), connection=bad), good) as room:
        await room.settled("bad", "good")
        room.refresher.take(changed("good"))
        await room.idle()

        assert room.names == ["mcp__good__one"]
        assert "'bad'" in room.refresher.failures["bad"]
        assert "ZeroDivisionError" in caplog.text


@requirement("CON-1")
async def test_a_server_whose_listing_hangs_delays_no_other() -> None:
    gate = Gate()

    class Hanging(FakeConnection):
        async def list_tools(self, *, timeout: float, **rest: Any) -> Listing[Tool]:
            await gate.wait()
            return Listing(entries=())

    hanging = ServerView(config=config("hanging"), connection=Hanging("hanging"))
    _, quick = server("quick", "one")
    async with watched(hanging, quick) as room:
        await room.settled("quick")

        assert room.names == ["mcp__quick__one"]
        assert room.pending == ["hanging"]
        with anyio.CancelScope() as waiting:
            waiting.cancel()
            await room.refresher.settled(["hanging"])
        assert waiting.cancelled_caught


@requirement("CON-3")
async def test_a_starting_server_is_pending_until_it_is_ready_and_listed_or_has_failed() -> None:
    late, a = server("late", "one")
    broken, b = server("broken")
    late.status = broken.status = ServerStatus.STARTING
    async with watched(a, b) as room:
        await room.idle()
        assert room.pending == ["broken", "late"]

        broken.status = ServerStatus.FAILED
        room.refresher.take(Changes(status=frozenset({"broken"})))
        await room.settled("broken")
        assert room.pending == ["late"]

        late.status = ServerStatus.READY
        room.refresher.take(changed("late"))
        await room.settled("late")
        assert (room.pending, room.names) == ([], ["mcp__late__one"])


async def test_a_new_set_of_servers_takes_away_the_tools_of_those_that_left() -> None:
    _, a = server("a", "one")
    connection, b = server("b", "two", "three")
    async with watched(a, b) as room:
        await room.settled("a", "b")

        room.refresher.watch([ServerView(config=config("b", disabled_tools=("three",)), connection=connection)])
        assert room.names == ["mcp__b__three", "mcp__b__two"]  # carried over until it is listed again
        await room.idle()

        assert room.names == ["mcp__b__two"]
        room.refresher.take(changed("a"))
        await room.idle()
        assert room.names == ["mcp__b__two"]


async def test_what_a_replaced_server_still_answers_changes_nothing() -> None:
    gate = Gate()

    class Old(FakeConnection):
        async def list_tools(self, *, timeout: float, **rest: Any) -> Listing[Tool]:
            await gate.wait()
            return Listing(entries=(tool("old"),))

    old = ServerView(config=config("a"), connection=Old("a"))
    _, new = server("a", "new")
    async with watched(old) as room:
        await gate.reached()
        room.refresher.watch([new])
        await room.settled("a")
        gate.open()
        await room.idle()

        assert room.names == ["mcp__a__new"]
