"""What servers say of themselves and of their resources, as a library's user gets it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import ServerConfig, ServerFailed
from tests.host.conftest import OpenHost
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

Servers = Callable[..., dict[str, ServerConfig]]


@requirement("TYP-1", "RES-7")
async def test_a_uri_that_is_a_path_of_this_machine_is_asked_of_the_server_and_never_opened(
    open_host: OpenHost, servers: Servers, tmp_path: Path
) -> None:
    file = tmp_path / "private.txt"
    file.write_text("the file of this machine")
    offered = {"uri": file.as_uri(), "name": "private", "text": "what the server says"}
    async with open_host(servers(docs={"resources": [offered]})) as host:
        thread = await host.start_thread()
        async with thread.step() as step:
            known = await step.call("c1", "read_mcp_resource", {"server": "docs", "uri": file.as_uri()})
            unknown = await step.call("c2", "read_mcp_resource", {"server": "docs", "uri": str(file)})
        read = await host.read_resource("docs", file.as_uri())
        with pytest.raises(ServerFailed):
            await host.read_resource("docs", str(file))
    assert json.loads(known.text)["contents"][0]["text"] == "what the server says"
    assert read.contents[0].text == "what the server says"
    assert unknown.is_error
    assert "the file of this machine" not in known.text + unknown.text


FULL: dict[str, Any] = {
    "uri": "x://full",
    "name": "full",
    "title": "Full",
    "description": "has every member",
    "mimeType": "text/plain",
    "size": 4,
    "icons": [{"src": "https://x.example/i.png", "sizes": ["48x48"], "mimeType": "image/png", "theme": "dark"}],
    "_meta": {"own": {"deep": [1, 2.5, None]}},
    "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01T00:00:00Z", "own": 1},
}


@requirement("TYP-1", "RES-4")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_every_member_of_a_resource_and_what_a_server_says_of_itself_reaches_library_and_model(
    open_host: OpenHost, servers: Servers, era: str
) -> None:
    script = {"eras": [era], "name": "docs server", "version": "7", "resources": [FULL | {"text": "text"}]}
    async with open_host(servers(docs=script)) as host:
        thread = await host.start_thread()
        async with thread.step() as step:
            listed = await step.call("c1", "list_mcp_resources", {"server": "docs"})
        (resource,) = (await host.list_resources("docs")).entries
        (report,) = thread.reports()
    assert json.loads(listed.text)["resources"] == [{"server": "docs"} | FULL]
    assert (resource.title, resource.mime_type, resource.size) == ("Full", "text/plain", 4)
    assert (list(resource.icons or ()), resource.meta, resource.annotations) == (
        FULL["icons"],
        FULL["_meta"],
        FULL["annotations"],
    )
    assert report.info is not None
    assert (report.info.name, report.info.version) == ("docs server", "7")


@requirement("CON-13")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_servers_are_told_of_the_applications_extensions_whole_and_of_none_that_is_for_applications_only(
    open_host: OpenHost, servers: Servers, tmp_path: Path, era: str
) -> None:
    settings = {"mimeTypes": ["text/html;profile=mcp-app"], "own": {"deep": [1, None]}}
    extensions = {"io.modelcontextprotocol/ui": settings, "openai/standard-form-input": {"any": 1}}
    trace = tmp_path / "trace"
    script = {"eras": [era], "trace": str(trace), "resources": []}
    async with open_host(servers(docs=script), extensions=extensions, elicitation=False) as host:
        await host.list_resource_templates("docs")
    received = [json.loads(line) for line in trace.read_text().splitlines()]
    told = received[0 if era == "stateless" else 1]["params"]
    own = "io.modelcontextprotocol/clientCapabilities"
    capabilities = told["_meta"][own] if era == "stateless" else told["capabilities"]
    assert capabilities == {"extensions": {"io.modelcontextprotocol/ui": settings}}
    assert "standard-form-input" not in trace.read_text()
