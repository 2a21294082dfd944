"""tools: three plain functions, present exactly when there is a server to ask."""

import json

import pytest

from interlock.resources.tools import ResourceOutcome, resource_tools, run
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.server import ServerStatus
from tests.manifest import requirement
from tests.resources.recorded import Recorded, binding, offering, view

pytestmark = pytest.mark.anyio

NAMES = ["list_mcp_resource_templates", "list_mcp_resources", "read_mcp_resource"]


@requirement("RES-1")
async def test_there_is_no_tool_without_an_enabled_server() -> None:
    assert resource_tools({}) == {}


@requirement("RES-1")
@pytest.mark.parametrize("status", list(ServerStatus))
async def test_one_enabled_server_is_enough_whatever_its_state(status: ServerStatus) -> None:
    servers = {"s": view(Recorded("s", status=status), gated=True)}
    assert sorted(resource_tools(servers)) == NAMES


@requirement("RES-1")
async def test_schemas_are_closed_and_only_a_read_requires_anything() -> None:
    tools = resource_tools({"s": view(offering("s"))})
    for name, entry in tools.items():
        schema = entry.spec.input_schema
        assert (entry.public_name, entry.spec.name) == (name, name)
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        fields = ["server", "uri"] if name == "read_mcp_resource" else ["cursor", "server"]
        assert sorted(schema["properties"]) == fields
        assert all(each["type"] == "string" for each in schema["properties"].values())
        assert schema.get("required", []) == (fields if name == "read_mcp_resource" else [])


@requirement("RES-1")
async def test_descriptions_say_what_a_cursor_is_and_where_a_read_takes_its_server_and_uri_from() -> None:
    tools = resource_tools({"s": view(offering("s"))})
    for name in ("list_mcp_resources", "list_mcp_resource_templates"):
        assert "opaque" in tools[name].spec.input_schema["properties"]["cursor"]["description"].lower()
    properties = tools["read_mcp_resource"].spec.input_schema["properties"]
    assert "listing" in properties["server"]["description"]
    assert "listing" in properties["uri"]["description"]


@requirement("RES-1")
async def test_the_outcome_names_the_server_or_the_host() -> None:
    over = binding(offering("s", "s://1"))
    everything = await run(over, "list_mcp_resources", "")
    assert everything == ResourceOutcome(
        text='{"resources":[{"server":"s","uri":"s://1","name":"s://1"}]}', server="interlock"
    )
    one = await run(over, "list_mcp_resources", {"server": "s"})
    assert one.server == "s"
    read = await run(over, "read_mcp_resource", '{"server": " s ", "uri": " s://1 "}', timeout=1.0)
    assert json.loads(read.text)["contents"][0]["text"] == "s://1"
    assert read.server == "s"


@requirement("RES-3")
async def test_a_cursor_without_a_server_reaches_nobody() -> None:
    server = offering("s", "s://1")
    with pytest.raises(InvalidRequest):
        await run(binding(server), "list_mcp_resources", '{"cursor": "c"}')
    assert server.asked == []
