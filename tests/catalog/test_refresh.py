"""refresh: from a live server to a replaced source, or to nothing changed."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from interlock.catalog.refresh import apply, list_source
from interlock.catalog.registry import Registry
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.ports import Connection
from interlock.vocabulary.resource import Listing
from interlock.vocabulary.server import ServerReport, ServerStatus
from interlock.vocabulary.snapshot import ServerView
from interlock.vocabulary.tool import BadEntry, Tool
from tests.catalog.tools import config, tool
from tests.manifest import requirement

pytestmark = pytest.mark.anyio


@dataclass
class Lister:
    """Below the port: a connection that can list its tools, or fail to."""

    answer: Listing[Tool] | ServerFailed
    capabilities: dict[str, Any] = field(default_factory=lambda: {"tools": {}})
    timeouts: list[float] = field(default_factory=list)

    def report(self) -> ServerReport:
        return ServerReport(name="s", status=ServerStatus.READY, capabilities=self.capabilities)

    async def list_tools(self, *, timeout: float, **rest: Any) -> Listing[Tool]:
        self.timeouts.append(timeout)
        if isinstance(self.answer, ServerFailed):
            raise self.answer
        return self.answer

    def view(self) -> ServerView:
        return ServerView(config=config("s"), connection=cast(Connection, self))


def failure(kind: Any, rpc_code: int | None = None) -> ServerFailed:
    return ServerFailed("no tools could be listed", server="s", kind=kind, rpc_code=rpc_code)


@requirement("CAT-2")
async def test_a_listed_server_becomes_a_source() -> None:
    lister = Lister(Listing(entries=(tool("a"), tool("b"))))
    registry = Registry()
    notes = apply(registry, await list_source(lister.view(), 7.0), config("s"))
    assert list(registry.catalog.entries) == ["mcp__s__a", "mcp__s__b"]
    assert notes == ()
    assert lister.timeouts == [7.0]


@requirement("CAT-3")
async def test_bad_entries_travel_with_the_listing() -> None:
    bad = (BadEntry(name="z", reason="no schema"),)
    listed = await list_source(Lister(Listing(entries=(tool("a"),), bad=bad)).view(), 1.0)
    assert listed.bad == bad


@requirement("CAT-2")
@pytest.mark.parametrize("kind", ["deadline", "lost", "protocol", "rejected", "unavailable"])
async def test_a_failed_listing_reaches_the_caller_before_the_registry(kind: str) -> None:
    with pytest.raises(ServerFailed) as caught:
        await list_source(Lister(failure(kind)).view(), 1.0)
    assert caught.value.kind == kind


async def test_a_server_that_offers_no_tools_lists_none() -> None:
    unsupported = Lister(failure("unsupported"), capabilities={"resources": {}})
    assert (await list_source(unsupported.view(), 1.0)).tools == ()
    unknown_method = Lister(failure("rejected", rpc_code=-32601), capabilities={"resources": {}})
    assert (await list_source(unknown_method.view(), 1.0)).tools == ()


@pytest.mark.parametrize("failed", [failure("rejected", rpc_code=-32601), failure("unsupported")])
async def test_a_server_that_promised_tools_and_knows_no_such_method_failed(failed: ServerFailed) -> None:
    with pytest.raises(ServerFailed):
        await list_source(Lister(failed).view(), 1.0)
