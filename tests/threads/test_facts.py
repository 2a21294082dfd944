"""What an item says about the tool that is called."""

import pytest

from interlock.threads.facts import resource_item, tool_item
from interlock.threads.request import read_request
from interlock.vocabulary.item import McpToolCallItem
from tests.manifest import requirement
from tests.threads.fakes import config, entry, tool

META = {
    "connector_id": "drive",
    "connector_name": "Drive",
    "link_id": "link-1",
    "plugin_id": " ",
    "ui": {"resourceUri": "ui://drive"},
}


@requirement("LIF-2", "TYP-1")
def test_the_item_of_an_origin_granting_servers_tool_carries_its_connector_and_app() -> None:
    search = entry("codex_apps", tool("search", title="Search files", meta=META))

    item = tool_item("c1", {"q": 1}, search, config("codex_apps", grants_origins=True))

    assert item == McpToolCallItem(
        id="c1",
        server="codex_apps",
        tool="search",
        public_name="mcp__codex_apps__search",
        arguments={"q": 1},
        connector_id="drive",
        link_id="link-1",
        mcp_app_resource_uri="ui://drive",
        app_name="Drive",
        action_name="Search files",
        read_only_hint=True,
    )


@requirement("LIF-2")
def test_a_server_that_grants_no_origins_cannot_name_a_connector() -> None:
    item = tool_item("c1", {}, entry("other", tool("search", title="Search", meta=META)), config("other"))

    assert (item.connector_id, item.link_id, item.app_name, item.action_name) == (None, None, None, None)
    assert item.mcp_app_resource_uri == "ui://drive"


@requirement("LIF-2")
@pytest.mark.parametrize(
    ("arguments", "server"),
    [('{"server": " git "}', "git"), ('{"server": " "}', "interlock"), ("", "interlock"), ("{broken", "interlock")],
)
def test_a_resource_tools_item_names_the_server_of_its_arguments_and_nothing_of_an_app(
    arguments: str, server: str
) -> None:
    request = read_request("c1", "read_mcp_resource", arguments)

    item = resource_item(request, "read_mcp_resource")

    assert item == McpToolCallItem(
        id="c1",
        server=server,
        tool="read_mcp_resource",
        public_name="read_mcp_resource",
        arguments=request.arguments,
        read_only_hint=True,
    )


@pytest.mark.parametrize(
    ("meta", "uri"),
    [
        ({"ui": {"resourceUri": "ui://a"}, "ui/resourceUri": "ui://b"}, "ui://a"),
        ({"ui": {"resourceUri": " "}, "ui/resourceUri": "ui://b"}, "ui://b"),
        ({"ui": "odd", "openai/outputTemplate": "ui://c"}, "ui://c"),
        ({"ui/resourceUri": 7}, None),
        ({}, None),
    ],
)
def test_the_apps_resource_is_looked_for_in_three_places_and_blank_means_none(
    meta: dict[str, object], uri: str | None
) -> None:
    described = tool("show", meta=meta)
    assert tool_item("c1", {}, entry("weather", described), config("weather")).mcp_app_resource_uri == uri
