"""What a client declares of MCP extensions reaches the servers of its threads, and of nobody else's."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.manifest import requirement
from tests.surfaces.rpc.conftest import Serve
from tests.surfaces.rpc.driver import Refused

pytestmark = pytest.mark.anyio

SETTINGS: dict[str, Any] = {"mimeTypes": ["text/html;profile=mcp-app"], "own": {"deep": [1, None]}}
DECLARED = {"io.modelcontextprotocol/ui": SETTINGS, "openai/standard-form-input": {"any": 1}}


def told(trace: Path, era: str) -> list[Any]:
    """The extensions that each session of the server was told of, in order."""
    seen = []
    for line in trace.read_text().splitlines():
        message = json.loads(line)
        if era == "handshake" and message.get("method") == "initialize":
            seen.append(message["params"]["capabilities"].get("extensions"))
        elif era == "stateless" and message.get("method") == "tools/list":
            own = message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
            seen.append(own.get("extensions"))
    return seen


@requirement("CON-13", "CON-15")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_extensions_of_a_client_go_to_the_servers_of_its_own_threads(
    serve: Serve, tmp_path: Path, era: str
) -> None:
    trace = tmp_path / "trace"
    script = {"eras": [era], "trace": str(trace), "tools": []}
    async with serve({"s": script}, settings={"s": {"required": True}}) as desk:
        rich = await desk.connect(initialize=False)
        await rich.initialize(experimentalApi=True, extensions=DECLARED)
        plain = await desk.connect()
        for client in (rich, plain):
            thread_id = (await client.request("thread/start"))["thread"]["id"]
            await client.request("mcpServerStatus/list", threadId=thread_id)
        resumed = await plain.request("thread/resume", threadId=thread_id)
        assert resumed["thread"]["id"] == thread_id
        await rich.request("thread/resume", threadId=thread_id)
        await rich.request("mcpServerStatus/list", threadId=thread_id)
    seen = told(trace, era)
    ui = {"io.modelcontextprotocol/ui": SETTINGS}
    assert seen[0] == ui
    assert set(map(json.dumps, seen)) == {json.dumps(ui), "null"}
    assert len(seen) == 2 or era == "stateless"
    assert "standard-form-input" not in trace.read_text()


async def test_extensions_of_a_wrong_shape_are_refused_and_null_is_none(serve: Serve) -> None:
    async with serve() as desk:
        client = await desk.connect(initialize=False)
        with pytest.raises(Refused) as refused:
            await client.initialize(extensions=[1])
        assert refused.value.code == -32600
        await client.initialize(extensions=None)
