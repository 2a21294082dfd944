"""Whatever a server says of its secrets, nobody reads them."""

import json
import sys
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from interlock.connections.connection import SupervisedConnection
from interlock.connections.http import HttpChannel
from interlock.connections.masking import mask_of, masked_json
from interlock.connections.process import start_process
from interlock.connections.session import SessionHandlers, open_session
from interlock.connections.supervisor import Supervisor
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.secret import MASK, Secret
from interlock.vocabulary.server import HttpTransport, ServerConfig, StdioTransport
from tests.connections.http_driver import Reply, Request, configured, serving, talking
from tests.connections.servers import PATIENCE, SCRIPTED
from tests.manifest import requirement

TOKENS = ("env-value-1", "arg-value-2")
SAID = " ".join(TOKENS)


def telling(script: Mapping[str, Any]) -> ServerConfig:
    """A server that was given secrets by environment and argument, and repeats them as `script` says."""
    transport = StdioTransport(
        command=sys.executable,
        args=("-I", "-S", str(SCRIPTED), json.dumps(script), Secret(TOKENS[1], "file key")),
        env={"TOKEN": Secret(TOKENS[0], "environment variable TOKEN")},
    )
    return ServerConfig(name="animal", transport=transport)


def everything(error: ServerFailed) -> str:
    """All that can be seen of an error, its causes included."""
    return f"{error!r} {error.facts} {error.rpc_data!r} {''.join(traceback.format_exception(error))}"


def hidden(text: str) -> bool:
    return MASK in text and not any(token in text for token in TOKENS)


@requirement("CFG-4")
@pytest.mark.anyio
async def test_the_refusal_of_a_call_shows_no_secret_in_message_data_or_facts() -> None:
    refusal = {"code": -32000, "message": f"wrong {SAID}", "data": {SAID: [{"token": SAID}]}}
    async with open_session(telling({"tools/call": [{"error": refusal}]}), timeout=PATIENCE) as session:
        with pytest.raises(ServerFailed) as caught:
            await session.request("tools/call", {"name": "x"}, timeout=PATIENCE)
    assert hidden(everything(caught.value))
    assert caught.value.rpc_code == -32000


@requirement("CFG-4")
@pytest.mark.anyio
async def test_a_failed_start_shows_no_secret() -> None:
    refusal = {"stderr": f"with {SAID}\n"}, {"error": {"code": -1, "message": f"bad {SAID}"}}
    with pytest.raises(ServerFailed) as caught:
        async with open_session(telling({"@start": refusal[:1], "initialize": refusal[1:]}), timeout=PATIENCE):
            pass
    assert hidden(everything(caught.value))


@requirement("CFG-4")
@pytest.mark.anyio
async def test_the_last_words_of_a_process_show_no_secret() -> None:
    steps = [{"stderr": f"giving up with {SAID}\n"}, {"exit": 3}]
    async with open_session(telling({"tools/call": steps}), timeout=PATIENCE) as session:
        with pytest.raises(ServerFailed) as caught:
            await session.request("tools/call", {"name": "x"}, timeout=PATIENCE)
        assert hidden(everything(caught.value))
        assert hidden(session.standard_error)


@requirement("CFG-4", "CON-8")
@pytest.mark.anyio
async def test_the_examples_of_odd_messages_show_no_secret() -> None:
    odd = [
        {"raw": f"noise {SAID}\n"},
        {"raw": json.dumps({"jsonrpc": "2.0", "id": f"x{SAID}", "result": {}}) + "\n"},
        {"raw": json.dumps({"jsonrpc": "2.0", "id": "y", "error": {"code": 1, "message": "z" * 150 + SAID}}) + "\n"},
        {"raw": json.dumps([SAID]) + "\n"},
        {"send": {"jsonrpc": "2.0", "id": "$id", "result": {}}},
    ]
    async with open_session(telling({"tools/call": odd}), timeout=PATIENCE) as session:
        await session.request("tools/call", {"name": "x"}, timeout=PATIENCE)
        seen = session.diagnostics()
    assert {entry.kind for entry in seen} == {"noise", "unknown_id"}
    assert not any(token[:4] in repr(seen) for token in TOKENS)


@requirement("CFG-4", "CAT-3")
@pytest.mark.anyio
async def test_bad_entries_of_a_listing_are_named_without_secrets() -> None:
    listed = {"tools": [{"name": f"tool of {SAID}", "inputSchema": 7}]}
    supervisor = Supervisor(telling({"tools/list": [{"result": listed}]}), handlers=SessionHandlers())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(supervisor.run)
        listing = await SupervisedConnection(supervisor).list_tools(timeout=PATIENCE)
        supervisor.close()
    assert listing.entries == ()
    assert hidden(repr(listing.bad))


@requirement("CFG-4")
@pytest.mark.anyio
async def test_a_command_that_is_secret_is_not_in_the_cause_of_the_failure_either(tmp_path: Path) -> None:
    for transport in (
        StdioTransport(command=Secret("/opt/arg-value-2/server")),
        StdioTransport(command="/no/such", cwd=Secret(str(tmp_path))),
    ):
        with pytest.raises(ServerFailed) as caught:
            start_process("animal", transport)
        assert "arg-value-2" not in everything(caught.value)
        assert str(tmp_path) not in everything(caught.value)


@requirement("CFG-4")
@pytest.mark.anyio
async def test_an_address_that_is_secret_is_not_shown_when_it_refuses_or_cannot_be_reached() -> None:
    async def echo(request: Request, reply: Reply) -> None:
        await reply.respond(418, f"no {request.target} {request.headers['x-key']}", Location="/arg-value-2/moved")

    async with serving(echo) as server:
        url = server.url.replace("/mcp", "/arg-value-2/mcp?key=env-value-1")
        config = replace(
            configured(url), transport=HttpTransport(url=Secret(url), headers={"X-Key": Secret(TOKENS[0])})
        )
        async with talking(HttpChannel(config)) as far:
            refused = await far.fails()
    async with talking(HttpChannel(config)) as far:
        unreachable = await far.fails()
    assert hidden(everything(refused))
    assert hidden(everything(unreachable))
    assert server.url.split("/")[2] not in everything(unreachable)


@requirement("CFG-4")
@pytest.mark.parametrize(
    "shown",
    ["t0k/en \"'ä", "t0k/en \\\"'ä", "t0k/en \\\"'\\u00e4", repr("t0k/en \"'ä")[1:-1], "t0k%2Fen%20%22%27%C3%A4"],
)
def test_a_secret_is_known_in_the_forms_in_which_it_comes_back(shown: str) -> None:
    mask = mask_of(StdioTransport(command="x", env={"TOKEN": Secret("t0k/en \"'ä")}))
    assert mask(f"<{shown}>") == f"<{MASK}>"


@requirement("CFG-4")
def test_the_credential_of_a_header_is_a_secret_without_its_scheme_word_too() -> None:
    url = "http://ada:lovelace@127.0.0.1/mcp?key=hidden&v=1"
    mask = mask_of(HttpTransport(url=url, headers={"Authorization": Secret("Bearer token-1")}))
    assert mask("token-1 lovelace hidden YWRhOmxvdmVsYWNl v=1 /mcp") == f"{MASK} {MASK} {MASK} {MASK} v=1 /mcp"


def test_what_lies_too_deep_to_be_looked_through_is_not_shown_at_all() -> None:
    value: Any = "secret"
    for _ in range(2000):
        value = [value]
    assert "secret" not in repr(masked_json(value, lambda text: text))
    assert masked_json({"a": [1, None, "secret"]}, lambda text: text[::-1]) == {"a": [1, None, "terces"]}


@requirement("CFG-4")
def test_a_secret_of_four_characters_is_hidden_and_a_shorter_one_is_a_word() -> None:
    mask = mask_of(StdioTransport(command="x", env={"A": Secret("k9z!", "a"), "B": Secret("yes", "b")}))
    assert mask("k9z! and yes") == f"{MASK} and yes"
