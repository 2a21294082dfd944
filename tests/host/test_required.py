"""Required servers: a Step has their tools, however long the servers take within their start-up deadline."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from interlock import ServerConfig
from interlock.testing import scripted_server
from tests.host.conftest import OpenHost, answering
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

Servers = Callable[..., dict[str, ServerConfig]]


@requirement("CON-3", "CON-2")
async def test_a_step_waits_for_the_tools_of_required_servers_beyond_the_grace(
    open_host: OpenHost, tmp_path: Path
) -> None:
    asked, release = anyio.Path(tmp_path / "asked"), anyio.Path(tmp_path / "release")
    listing = {"tools/list": [{"touch": str(asked)}, {"wait_for_file": str(release), "within": 40}]}
    script = {"tools": [answering("one", "1")], "on": listing}
    configs = {"needed": scripted_server("needed", script, tmp_path, required=True)}
    entered = anyio.Event()
    async with open_host(configs, grace=0.01) as host:
        thread = await host.start_thread()

        async def take_a_step() -> None:
            async with thread.step() as step:
                entered.set()
                assert "mcp__needed__one" in [spec.name for spec in step.tools]

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take_a_step)
            with anyio.fail_after(60):
                while not await asked.exists():  # noqa: ASYNC110 -- another process makes it
                    await anyio.sleep(0.01)
            assert not entered.is_set()
            await release.touch()
    assert entered.is_set()
