"""The scripted parts together, as a user's test would have them: a Host, a scripted server, a scripted model."""

import json
from pathlib import Path

import pytest

from interlock import Host
from interlock.testing import Call, Say, ScriptedModel, scripted_server
from interlock.vocabulary.item import McpToolCallItem
from tests.manifest import requirement

pytestmark = pytest.mark.anyio
SCRIPT = {
    "page_size": 1,
    "tools": [{"name": "echo", "annotations": {"readOnlyHint": True}}],
    "resources": [{"uri": "a://1", "name": "one", "text": "first"}, {"uri": "a://2", "name": "two", "text": "second"}],
}


@requirement("CON-4")
@pytest.mark.parametrize(("spoken", "version"), [("handshake", "2025-11-25"), ("stateless", "2026-07-28")])
async def test_a_turn_of_a_scripted_model_over_a_scripted_server(tmp_path: Path, spoken: str, version: str) -> None:
    server = scripted_server("docs", {**SCRIPT, "eras": [spoken]}, tmp_path, required=True)
    model = ScriptedModel(
        [Call("mcp__docs__echo", {"text": "hi"}), Call("list_mcp_resources", {})],
        Call("read_mcp_resource", {"server": "docs", "uri": "a://2"}),
        lambda request: Say(f"done after {len(request.entries)} entries"),
    )
    async with Host({"docs": server}, store=tmp_path / "threads.db", model=model) as host:
        thread = await host.start_thread()
        result = await (await thread.start_turn("go")).finished()
        report = thread.reports()[0]
    assert (result.status, result.last_message) == ("completed", "done after 7 entries")
    assert (report.era, report.protocol_version) == (spoken, version)
    assert model.remaining == 0
    calls = {item.tool: item for item in thread.items if isinstance(item, McpToolCallItem)}
    texts = {tool: item.result.content[0]["text"] for tool, item in calls.items() if item.result is not None}
    assert json.loads(texts["echo"]) == {"text": "hi"}
    assert [entry["uri"] for entry in json.loads(texts["list_mcp_resources"])["resources"]] == ["a://1", "a://2"]
    assert json.loads(texts["read_mcp_resource"])["contents"][0]["text"] == "second"
