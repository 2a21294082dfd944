"""What an application asks servers itself: templates, prompts, completions, where a server has them."""

from collections.abc import Callable

import pytest

from interlock import InvalidRequest, ServerConfig, ServerFailed
from interlock.vocabulary.server import Offers
from tests.host.conftest import OpenHost
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

Servers = Callable[..., dict[str, ServerConfig]]

TEMPLATE = "docs://{chapter}{?page}"
DOCS = {
    "tools": [],
    "templates": [{"uriTemplate": TEMPLATE, "name": "page"}],
    "resources": [{"uri": "docs://a%2Fb?page=3", "name": "third", "text": "the third page"}],
    "prompts": [
        {
            "name": "review",
            "arguments": [{"name": "language"}],
            "messages": [{"role": "user", "content": {"type": "text", "text": "review it"}}],
        }
    ],
    "completions": {"review": {"language": ["python", "perl"]}, TEMPLATE: {"chapter": ["one", "two"]}},
}


@requirement("RES-11")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_templates_prompts_and_completions_are_there_where_the_server_has_them(
    open_host: OpenHost, servers: Servers, era: str
) -> None:
    async with open_host(servers(docs=DOCS | {"eras": [era]})) as host:
        requests = host.requests
        assert await requests.offers("docs") == Offers(tools=True, resources=True, prompts=True, completions=True)
        read = await requests.read_template("docs", TEMPLATE, {"chapter": "a/b", "page": "3"})
        assert read.contents[0].text == "the third page"
        assert (await requests.complete_template("docs", TEMPLATE, "chapter", "o")).values == ("one",)
        assert (await requests.complete_prompt("docs", "review", "language", "p")).values == ("python", "perl")
        (prompt,) = (await requests.list_prompts("docs")).entries
        assert (prompt.name, prompt.arguments) == ("review", ({"name": "language"},))
        assert (await requests.get_prompt("docs", "review", {"language": "perl"})).messages[0]["role"] == "user"


@requirement("RES-11")
async def test_a_server_that_lacks_them_says_so_and_each_request_fails_as_unsupported(
    open_host: OpenHost, servers: Servers
) -> None:
    async with open_host(servers(plain={"tools": [], "capabilities": {}})) as host:
        requests = host.requests
        assert await requests.offers("plain") == Offers(tools=True)
        for asked in (
            requests.list_prompts("plain"),
            requests.get_prompt("plain", "x"),
            requests.complete_prompt("plain", "x", "y"),
            requests.read_template("plain", "docs://{a}", {"a": "b"}),
        ):
            with pytest.raises(ServerFailed) as failed:
                await asked
            assert failed.value.kind == "unsupported"


@requirement("RES-11")
async def test_a_variable_that_the_template_lacks_is_refused_before_anything_is_started(
    open_host: OpenHost, servers: Servers
) -> None:
    async with open_host(servers(docs=DOCS)) as host:
        with pytest.raises(InvalidRequest, match="it has no variable 'pages'"):
            await host.requests.read_template("docs", TEMPLATE, {"pages": "3"})
        with pytest.raises(InvalidRequest, match="has no variable 'pages'; it has chapter, page"):
            await host.requests.complete_template("docs", TEMPLATE, "pages")
        assert [report.status.value for report in host.reports()] == ["not_started"]


@requirement("RES-11")
async def test_prompts_are_never_offered_to_the_model(open_host: OpenHost, servers: Servers) -> None:
    async with open_host(servers(docs=DOCS)) as host:
        thread = await host.start_thread()
        async with thread.step() as step:
            names = [tool.name for tool in step.tools]
    assert names == ["list_mcp_resource_templates", "list_mcp_resources", "read_mcp_resource"]
