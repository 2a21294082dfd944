"""Servers that repeat their secrets, over a whole Host: nothing that is told, logged or stored holds one."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from interlock import HttpTransport, InterlockError, ServerConfig, StdioTransport, Thread
from interlock.testing import scripted_server
from interlock.vocabulary.secret import MASK, Secret
from tests.host.conftest import READ_ONLY, OpenHost
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

SECRETS = ("variable-AAAA1111", "argument-BBBB2222", "header-CCCC3333", "address-DDDD4444")
SAID = " ".join(SECRETS[:2])
REFUSAL = {"code": -32000, "message": f"wrong {SAID}", "data": {"given": SAID}}


def telling(name: str, script: dict[str, Any], folder: Path) -> ServerConfig:
    """A scripted server that was given two secrets; its script repeats them."""
    config = scripted_server(name, script, folder, startup_timeout=40.0)
    transport = config.transport
    assert isinstance(transport, StdioTransport)
    given = replace(
        transport,
        args=(*transport.args, Secret(SECRETS[1], "file key")),
        env={"TOKEN": Secret(SECRETS[0], "environment variable TOKEN")},
    )
    return replace(config, transport=given)


def servers(folder: Path) -> dict[str, ServerConfig]:
    talkative = {
        "tools": [
            {"name": "refuse", "annotations": READ_ONLY, "do": [{"error": REFUSAL}]},
            {"name": "die", "annotations": READ_ONLY, "do": [{"stderr": f"lost {SAID}"}, {"exit": 4}]},
        ],
        "resources": [{"uri": "x://a", "name": "a", "do": [{"error": REFUSAL}]}],
    }
    ends = {"on": {"start": [{"stderr": f"no use of {SAID}"}, {"exit": 3}]}}
    configs = [telling("talkative", talkative, folder), telling("ends", ends, folder)]
    url = f"http://127.0.0.1:9/{SECRETS[3]}/mcp"
    header = {"Authorization": Secret(f"Bearer {SECRETS[2]}", "environment variable KEY")}
    configs.append(ServerConfig(name="far", transport=HttpTransport(url=Secret(url, "file url"), headers=header)))
    return {config.name: config for config in configs}


@asynccontextmanager
async def overheard(thread: Thread, heard: list[str]) -> AsyncIterator[None]:
    """All notices of `thread` while the block runs."""
    notices = thread.notices()

    async def listen() -> None:
        async for notice in notices:
            heard.append(repr(notice))  # noqa: PERF401 -- the list is read while this waits for more

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        yield
        tasks.cancel_scope.cancel()


def stored(folder: Path) -> str:
    return b"".join(file.read_bytes() for file in folder.glob("interlock.db*") if file.is_file()).decode("latin-1")


CALLS: list[tuple[str, dict[str, str]]] = [
    ("mcp__talkative__refuse", {}),
    ("mcp__talkative__die", {}),
    ("read_mcp_resource", {"server": "talkative", "uri": "x://a"}),
    ("list_mcp_resources", {}),
    ("list_mcp_resources", {"server": "ends"}),
    ("list_mcp_resource_templates", {"server": "far"}),
]


@requirement("CFG-4")
async def test_no_secret_is_told_logged_or_stored_however_servers_repeat_theirs(
    open_host: OpenHost, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    results: list[str] = []
    async with open_host(servers(tmp_path)) as host:
        thread = await host.start_thread()
        async with overheard(thread, told), thread.step() as step:
            for number, (name, arguments) in enumerate(CALLS):
                result = await step.call(f"c{number}", name, arguments)
                results.append(f"{result.text} {result!r}")
        for server in ("ends", "far"):
            with pytest.raises(InterlockError) as failed:
                await host.read_resource(server, "x://a")
            told.append(f"{failed.value!r} {failed.value.facts}")
        told += [repr(report) for report in (*host.reports(), *thread.reports())]
        told += [repr(host), repr(host.configuration), repr(thread), repr(thread.snapshot), repr(thread.state)]
    everything = "\n".join([*told, *results, caplog.text, stored(tmp_path)])
    assert [secret for secret in SECRETS if secret in everything] == []
    assert [MASK in result for result in results[:3]] == [True] * 3  # the others may find a server just starting again
    assert "mcp__talkative__refuse" in stored(tmp_path)
