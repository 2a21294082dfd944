"""A server with a tool that cannot be used: refused whole by default, and the way to the others is said (CAT-3)."""

from dataclasses import replace
from typing import Any

import pytest

from interlock.vocabulary.notice import WarningNotice
from tests.host.conftest import READ_ONLY, OpenHost, answering
from tests.host.test_host import Servers, until
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

BAD = {"name": "crooked", "inputSchema": ["no", "object"]}
GOOD = [answering("one", "1"), answering("two", "2")]
REFUSED = (
    "cannot take the tools of server 'a': tool 'crooked' cannot be used ({}); 2 good tools wait behind it, "
    'and on_bad_tool = "skip" in [mcp_servers.a] lets them in'
)


def is_refusal(sentence: str) -> bool:
    begin, end = REFUSED.split("{}")
    return sentence.startswith(begin) and sentence.endswith(end)


@requirement("CAT-3", "CAT-2", "CON-1")
async def test_a_bad_tool_refuses_all_of_its_server_by_default_and_names_the_way_out(
    open_host: OpenHost, servers: Servers
) -> None:
    async with open_host(servers(a={"tools": [BAD, *GOOD]}, b={"tools": [answering("three", "3")]})) as host:
        thread = await host.start_thread()
        notices = thread.notices()
        async with thread.step() as step:
            assert list(step.binding.snapshot.catalog.entries) == ["mcp__b__three"]
            assert step.pending == ()
            refused = await step.call("1", "mcp__a__one")
            assert "there is no tool 'mcp__a__one' in this step" in refused.text

        assert list(thread.listing_failures) == ["a"]
        assert is_refusal(thread.listing_failures["a"])
        await thread.close()
        warnings = [notice async for notice in notices if isinstance(notice, WarningNotice)]
        assert [(warning.server, is_refusal(warning.message)) for warning in warnings] == [("a", True)]


@requirement("CAT-3", "CFG-6")
async def test_the_setting_lets_the_good_tools_in_without_a_restart(open_host: OpenHost, servers: Servers) -> None:
    refusing = servers(a={"tools": [BAD, *GOOD]})
    async with open_host(refusing) as host:
        thread = await host.start_thread()
        async with thread.step() as step:
            assert list(step.binding.snapshot.catalog.entries) == []

        await host.reload({"a": replace(refusing["a"], on_bad_tool="skip")})

        await until(lambda: not thread.listing_failures)
        async with thread.step() as step:
            assert list(step.binding.snapshot.catalog.entries) == ["mcp__a__one", "mcp__a__two"]
        assert [report.restarts for report in thread.reports()] == [0]


@requirement("CAT-3", "CAT-2")
async def test_a_tool_that_turns_bad_leaves_the_older_tools_whole(open_host: OpenHost, servers: Servers) -> None:
    turn: dict[str, Any] = {
        "name": "turn",
        "annotations": READ_ONLY,
        "do": [
            {"set": {"tools": [*GOOD, BAD]}},
            {"notify": {"method": "notifications/tools/list_changed", "params": {}}},
            {"text": "turned"},
        ],
    }
    async with open_host(servers(a={"tools": [turn], "eras": ["handshake"]})) as host:
        thread = await host.start_thread()
        async with thread.step() as step:
            before = step.binding.snapshot.catalog
            assert (await step.call("1", "mcp__a__turn")).text == "turned"

        await until(lambda: bool(thread.listing_failures))
        assert is_refusal(thread.listing_failures["a"])
        async with thread.step() as step:
            assert step.binding.snapshot.catalog is before
