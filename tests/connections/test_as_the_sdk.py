"""The official SDK is the measure of what is ours: versions, first requests, headers. At run time nobody needs it."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.connections import headers, protocol
from interlock.connections.dispatcher import Dispatcher
from interlock.connections.negotiation import negotiate
from interlock.vocabulary.json import JsonObject

pytestmark = pytest.mark.anyio

DISCOVERED = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}
INITIALIZED = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}


class Recorded:
    """Takes the requests of a negotiation and answers as a willing server, for us and for the SDK."""

    failure = None

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any, Mapping[str, str]]] = []

    async def send_raw_request(self, method: str, params: Any, opts: Any = None) -> dict[str, Any]:
        return await self.request(method, params, headers=(opts or {}).get("headers"))

    async def request(self, method: str, params: Any, **how: Any) -> dict[str, Any]:
        self.sent.append((method, params, dict(how["headers"] or {})))
        return dict(DISCOVERED if method == "server/discover" else INITIALIZED)

    async def notify(
        self, method: str, params: Any = None, opts: Any = None, *, headers: Any = None, deadline: Any = None
    ) -> None:
        self.sent.append((method, params, dict(headers or (opts or {}).get("headers") or {})))


async def by_the_sdk(version: str) -> Recorded:
    from mcp.client.session import ClientSession
    from mcp_types import Implementation

    recorded = Recorded()
    info = Implementation(name="interlock", version=protocol.client_version())
    session = ClientSession(dispatcher=recorded, client_info=info)  # type: ignore[arg-type] # all that is used of one
    if version in protocol.STATELESS_VERSIONS:
        await session.send_discover(version)
    else:
        await session.initialize()
    return recorded


@pytest.mark.parametrize("version", [protocol.HANDSHAKE_VERSIONS[-1], *protocol.STATELESS_VERSIONS])
async def test_the_first_requests_are_those_that_the_sdk_makes(version: str) -> None:
    ours: Any = Recorded()
    dispatcher: Dispatcher = ours
    await negotiate(dispatcher, server="s", capabilities={}, deadline=float("inf"), protocol=version)
    assert ours.sent == (await by_the_sdk(version)).sent


def test_the_versions_known_here_are_those_of_the_sdk() -> None:
    from mcp_types import version

    assert protocol.HANDSHAKE_VERSIONS == version.HANDSHAKE_PROTOCOL_VERSIONS
    assert protocol.STATELESS_VERSIONS == version.MODERN_PROTOCOL_VERSIONS


def test_the_headers_have_the_names_that_the_sdk_gives_them() -> None:
    from mcp.shared import inbound

    ours = (headers.PROTOCOL_VERSION, headers.METHOD, headers.NAME, headers.PARAMETER, dict(headers.NAMED_BY))
    assert ours == (
        inbound.MCP_PROTOCOL_VERSION_HEADER,
        inbound.MCP_METHOD_HEADER,
        inbound.MCP_NAME_HEADER,
        inbound.MCP_PARAM_HEADER_PREFIX,
        dict(inbound.NAME_BEARING_METHODS),
    )


@given(st.text() | st.sampled_from(["=?base64?YQ==?=", " a", "a ", "", "\t", "=?base64??="]))
def test_a_value_is_written_into_a_header_as_the_sdk_writes_it(value: str) -> None:
    from mcp.shared import inbound

    if "\ud800" <= max(value, default="") <= "\udfff":
        return
    assert headers.encoded(value) == inbound.encode_header_value(value)


NAMES = st.sampled_from(["a", "b", "properties", "items"])
ANNOTATIONS = st.sampled_from(["Region", "region", "a b", "", "X-1", 5, None])
TYPES = st.sampled_from(["string", "integer", "boolean", "number", "object", None, ["string"]])


def schemas() -> st.SearchStrategy[Any]:
    leaf = st.fixed_dictionaries(
        {"type": TYPES}, optional={"x-mcp-header": ANNOTATIONS, "default": st.just({"x-mcp-header": 1})}
    )
    return st.recursive(
        leaf | st.booleans(),
        lambda inner: st.fixed_dictionaries(
            {},
            optional={
                "type": TYPES,
                "x-mcp-header": ANNOTATIONS,
                "properties": st.dictionaries(NAMES, inner, max_size=3),
                "items": inner,
                "not": inner,
                "anyOf": st.lists(inner, max_size=2),
                "prefixItems": inner,
                "$defs": st.dictionaries(NAMES, inner, max_size=2),
                "enum": st.just([{"x-mcp-header": "data"}]),
            },
        ),
        max_leaves=6,
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.dictionaries(NAMES, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=5,
)


@given(schemas(), st.dictionaries(NAMES, VALUES, max_size=3))
def test_arguments_go_into_headers_as_with_the_sdk(schema: Any, arguments: JsonObject) -> None:
    from mcp.shared import inbound

    refused = headers.invalid_annotation(schema)
    assert (refused is None) == (inbound.find_invalid_x_mcp_header(schema) is None), refused
    if refused is None:
        ours, theirs = headers.header_map(schema), inbound.x_mcp_header_map(schema)
        assert ours == theirs
        assert headers.parameter_headers(ours, arguments) == inbound.mcp_param_headers(theirs, arguments)


def test_an_integer_beyond_all_writing_goes_into_no_header() -> None:
    assert headers.parameter_headers({("a",): "Size"}, {"a": 10**5000}) == {}


HOST_WITH_A_SERVER = """
import anyio, sys
from interlock import Host
from interlock.testing import scripted_server

async def main(folder):
    server = scripted_server("one", {"tools": [{"name": "look_up", "inputSchema": {"type": "object"}}]}, folder)
    async with Host({"one": server}, store=folder / "store.db", grace=30) as host:
        async with (await host.start_thread()).step() as step:
            assert any(spec.name == "mcp__one__look_up" for spec in step.tools)

from pathlib import Path
anyio.run(main, Path(sys.argv[1]))
print(sorted({"mcp", "mcp_types"} & set(sys.modules)))
"""


def test_a_host_with_a_server_does_not_import_the_sdk(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOST_WITH_A_SERVER, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
