"""Skills through a whole Thread: a real server, a new set of connections, no item."""

from collections.abc import Callable
from typing import Any

import pytest

from interlock import ServerConfig, ServerFailed
from tests.host.conftest import OpenHost
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

Servers = Callable[..., dict[str, ServerConfig]]


def library(*names: str) -> dict[str, Any]:
    return {
        "page_size": 1,
        "resources": [{"uri": f"skill://{name}/SKILL.md", "name": name, "text": f"how to {name}"} for name in names],
        "tools": [{"name": "t", "inputSchema": {"type": "object"}}],
    }


@requirement("SKL-1", "SKL-2")
async def test_skills_follow_the_connections_of_a_thread_and_leave_nothing_in_it(
    open_host: OpenHost, servers: Servers
) -> None:
    async with open_host(servers({"required": True}, codex_apps=library("cook", "sew"))) as host:
        thread = await host.start_thread()
        before, key = thread.state, thread.resources.cache_key
        skills = thread.skills()
        assert [skill.name for skill in (await skills.list()).skills] == ["cook", "sew"]
        assert (await skills.read("sew")).text == "how to sew"
        assert thread.state == before
        assert thread.resources.cache_key == key

        configs = servers({"required": True}, codex_apps=library("draw"), other=library())
        await host.reload(configs)
        async with thread.step():
            assert thread.resources.cache_key != key
            assert thread.skills() is skills
        await thread.close()
        assert "there are no skills now" in (await skills.list()).warnings[0]
        with pytest.raises(Exception, match="closed"):
            await thread.resources.list_resources("codex_apps")


@requirement("SKL-2")
async def test_a_server_that_cannot_start_is_told_at_once(open_host: OpenHost, servers: Servers) -> None:
    broken = servers({"restart": "never"}, codex_apps={"on": {"start": [{"exit": 1}]}})
    async with open_host(broken) as host:
        thread = await host.start_thread()
        with pytest.raises(ServerFailed, match="not ready"):
            await thread.resources.read_resource("codex_apps", "skill://a/SKILL.md")
