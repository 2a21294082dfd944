"""Which era is found, for honest servers and odd ones."""

import sys
from typing import Any

import anyio
import pytest

from interlock.connections.dispatcher import Dispatcher
from interlock.connections.negotiation import negotiate, read_info
from interlock.connections.session import Session, SessionHandlers, open_session
from interlock.connections.stdio import StdioChannel
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.server import Era, ServerConfig, ServerInfo, StdioTransport
from tests.connections.servers import PATIENCE, nothing_left_behind, scripted
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

REAL_SERVER = StdioTransport(command=sys.executable, args=("-m", "mcp_server_time"))
DISCOVERED: dict[str, Any] = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "instructions": "be kind",
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "2"}},
}
UNSUPPORTED = -32022


async def opened(config: ServerConfig, **how: Any) -> tuple[Session, list[Any]]:
    """Open and close; the session as it was, and the messages that the server got, without their ids and versions."""
    async with nothing_left_behind(), open_session(config, **{"timeout": PATIENCE} | how) as session:
        seen = (await session.request("test/seen", {}, timeout=PATIENCE))["seen"]
    return session, seen[:-1]


def methods(seen: list[Any]) -> list[str]:
    return [message["method"] for message in seen]


async def refusal(config: ServerConfig, **how: Any) -> ServerFailed:
    async with nothing_left_behind():
        with pytest.raises(ServerFailed) as caught:
            async with open_session(config, **{"timeout": PATIENCE} | how):
                raise AssertionError("it opened")
    assert caught.value.effect == "none"
    return caught.value


# ---------------------------------------------------------------- a real server, both eras


@requirement("CON-4")
@pytest.mark.parametrize(
    ("protocol", "era", "version"),
    [
        ("auto", "stateless", "2026-07-28"),
        ("2026-07-28", "stateless", "2026-07-28"),
        ("2025-11-25", "handshake", "2025-11-25"),
        ("2024-11-05", "handshake", "2024-11-05"),
    ],
)
async def test_a_real_server_is_spoken_to_in_the_era_that_is_found_or_pinned(
    protocol: str, era: Era, version: str
) -> None:
    config = ServerConfig(name="time", transport=REAL_SERVER, protocol=protocol)
    async with open_session(config, timeout=60, probe_timeout=50) as session:
        assert (session.era, session.protocol_version) == (era, version)
        assert session.info is not None
        assert session.info.name == "mcp-time"
        arguments = {"timezone": "Etc/UTC"}
        result = await session.request(
            "tools/call", {"name": "get_current_time", "arguments": arguments}, timeout=PATIENCE
        )
        assert "Etc/UTC" in result["content"][0]["text"]
        assert session.diagnostics() == ()


# ---------------------------------------------------------------- evidence


@requirement("CON-4")
async def test_an_older_server_is_probed_once_and_then_initialized() -> None:
    session, seen = await opened(scripted())
    assert methods(seen) == ["server/discover", "initialize", "notifications/initialized"]
    assert (session.era, session.protocol_version) == ("handshake", "2025-11-25")
    assert session.info == ServerInfo(name="scripted", version="1")
    assert session.capabilities == {"tools": {}}
    initialize = seen[1]["params"]
    assert initialize["clientInfo"]["name"] == "interlock"
    assert initialize["capabilities"] == {}


@requirement("CON-4")
async def test_a_stateless_server_is_taken_at_its_word() -> None:
    session, seen = await opened(scripted({"server/discover": [{"result": DISCOVERED}]}))
    assert methods(seen) == ["server/discover"]
    assert (session.era, session.protocol_version) == ("stateless", "2026-07-28")
    assert session.info == ServerInfo(name="modern", version="2")
    assert session.instructions == "be kind"


@requirement("CON-4")
@pytest.mark.parametrize(
    "step",
    [
        {"result": {"ok": True, "methods": ["a"]}},
        {"result": {"supportedVersions": []}},
        {"result": {"supportedVersions": "2026-07-28"}},
        {"result": {"supportedVersions": ["2025-11-25"]}},
        {"result": None},
        {"error": {"code": -32602, "message": "initialize first"}},
        {"error": {"code": -32002, "message": "Server not initialized", "data": None}},
        {"error": "what?"},
        {"error": {"code": UNSUPPORTED, "message": "no", "data": {"supported": ["2025-11-25"]}}},
        {"error": {"code": UNSUPPORTED, "message": "no", "data": "odd"}},
    ],
)
async def test_anything_but_evidence_of_the_new_era_leads_to_initialize(step: dict[str, Any]) -> None:
    session, seen = await opened(scripted({"server/discover": [step]}))
    assert session.era == "handshake"
    assert methods(seen) == ["server/discover", "initialize", "notifications/initialized"]


@requirement("CON-4")
async def test_a_server_that_is_silent_on_the_probe_is_initialized_after_a_short_wait() -> None:
    session, seen = await opened(scripted({"server/discover": []}), probe_timeout=0.1)
    assert session.era == "handshake"
    assert methods(seen) == ["server/discover", "initialize", "notifications/initialized"]


@requirement("CON-4")
async def test_a_server_that_dies_on_the_probe_is_started_again_and_initialized() -> None:
    session, seen = await opened(scripted({"server/discover": [{"exit": 1}]}))
    assert session.era == "handshake"
    assert methods(seen) == ["initialize", "notifications/initialized"]


async def test_a_server_that_dies_on_everything_says_so_at_once() -> None:
    error = await refusal(scripted({"@start": [{"stderr": "no licence\n"}, {"exit": 0}]}))
    assert error.kind == "lost"
    assert error.facts["exit_code"] == 0
    assert "no licence" in error.message


LOCKED = {"error": {"code": UNSUPPORTED, "message": "locked", "data": {"supported": ["2026-07-28"]}}}
OLD = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}}


@requirement("CON-4")
@pytest.mark.parametrize(("to_initialize", "era"), [(OLD, None), (LOCKED, None), (None, None), (LOCKED, "stateless")])
async def test_a_server_that_reads_its_probe_late_is_still_taken_at_its_word(
    to_initialize: dict[str, Any] | None, era: Era | None
) -> None:
    """A launcher may install a server first. It reads the probe first all the same, however late."""
    script = {
        "server/discover": [{"until": "initialize"}, {"result": DISCOVERED}],
        "initialize": [] if to_initialize is None else [to_initialize],
    }
    how = {"probe_timeout": 0.1} if era is None else {"timeout": 8.0}
    session, seen = await opened(scripted(script), era=era, **how)
    assert (session.era, session.protocol_version) == ("stateless", "2026-07-28")
    assert session.info == ServerInfo(name="modern", version="2")
    assert methods(seen) == ["server/discover", "initialize"]
    assert session.diagnostics() == ()


@requirement("CON-4")
async def test_a_late_word_that_only_another_stateless_version_will_do_is_followed() -> None:
    error = {"code": UNSUPPORTED, "message": "no", "data": {"supported": ["2026-07-28"]}}
    script = {
        "server/discover": [{"until": "initialize"}, {"error": error}],
        "initialize": [LOCKED],
    }
    failed = await refusal(scripted(script), probe_timeout=0.1)
    assert failed.rpc_code == UNSUPPORTED
    assert "server/discover" in failed.message


@requirement("CON-4")
@pytest.mark.parametrize(
    "late",
    [
        {"error": {"code": -32601, "message": "Method not found"}},
        {"error": {"code": UNSUPPORTED, "message": "no", "data": {"supported": ["2025-11-25"]}}},
        {"result": {"supportedVersions": ["2025-11-25"]}},
        {"result": None},
    ],
)
async def test_an_older_server_that_reads_its_probe_late_is_initialized_and_nothing_odd(late: dict[str, Any]) -> None:
    session, seen = await opened(scripted({"server/discover": [{"until": "initialize"}, late]}), probe_timeout=0.1)
    assert session.era == "handshake"
    assert methods(seen) == ["server/discover", "initialize", "notifications/initialized"]
    assert session.diagnostics() == ()


@requirement("CON-4")
async def test_an_answer_to_the_probe_behind_the_one_to_initialize_changes_nothing_and_is_nothing_odd() -> None:
    """Both eras are served then, and the handshake is done."""
    script: dict[str, Any] = {
        "server/discover": [],
        "notifications/initialized": [{"send": {"jsonrpc": "2.0", "id": 1, "result": DISCOVERED}}],
    }
    session, _ = await opened(scripted(script), probe_timeout=0.1)
    assert session.era == "handshake"
    assert session.diagnostics() == ()


@requirement("CON-4")
async def test_a_second_late_answer_is_odd() -> None:
    refused = {"error": {"code": -32601, "message": "Method not found"}}
    script: dict[str, Any] = {"server/discover": [{"until": "initialize"}, refused, refused]}
    session, _ = await opened(scripted(script), probe_timeout=0.1)
    assert [(entry.kind, entry.count) for entry in session.diagnostics()] == [("late_or_repeated_answer", 1)]


@requirement("CON-4")
async def test_a_server_that_reads_its_probe_late_and_dies_on_it_is_started_again_and_initialized() -> None:
    script = {"server/discover": [{"until": "initialize"}, {"exit": 1}]}
    session, seen = await opened(scripted(script), probe_timeout=0.1)
    assert session.era == "handshake"
    assert methods(seen) == ["initialize", "notifications/initialized"]


@requirement("CON-4")
async def test_a_server_that_is_silent_on_its_probe_and_refuses_initialize_is_probed_again() -> None:
    answers: dict[str, list[Any]] = {
        "server/discover": [ServerFailed("silent", server="animal", kind="deadline"), DISCOVERED],
        "initialize": [ServerFailed("locked", server="animal", kind="rejected", rpc_code=UNSUPPORTED)],
    }

    class Scripted(Dispatcher):
        async def request(self, method: str, params: JsonObject | None = None, **options: Any) -> JsonObject:
            answer = answers[method].pop(0)
            if isinstance(answer, ServerFailed):
                raise answer
            return dict(answer)

    dispatcher = Scripted(StdioChannel(scripted()), server="animal")
    found = await negotiate(dispatcher, server="animal", capabilities={}, deadline=anyio.current_time() + PATIENCE)
    assert found.era == "stateless"
    assert answers == {"server/discover": [], "initialize": []}


async def test_a_slow_server_that_dies_each_time_is_told_by_its_end_and_not_by_the_time_that_was_left() -> None:
    script = {
        "server/discover": [{"until": "initialize"}, {"stderr": "no licence\n"}, {"exit": 3}],
        "initialize": [],
    }
    failed = await refusal(scripted(script), probe_timeout=0.1, timeout=5.0)
    assert failed.facts["exit_code"] == 3
    assert "no licence" in failed.message


@requirement("CON-4")
async def test_a_version_that_the_server_names_is_tried_once_more_and_not_for_ever() -> None:
    error = {"code": UNSUPPORTED, "message": "no", "data": {"supported": ["2026-07-28"]}}
    failed = await refusal(scripted({"server/discover": [{"error": error}], "initialize": [{"error": error}]}))
    assert failed.rpc_code == UNSUPPORTED


async def test_a_stateless_server_of_other_versions_only_is_refused_with_both_lists() -> None:
    error = {"code": UNSUPPORTED, "message": "no", "data": {"supported": ["2030-01-01"]}}
    failed = await refusal(scripted({"server/discover": [{"error": error}]}))
    assert failed.kind == "unsupported"
    assert "2030-01-01" in failed.message
    assert "2026-07-28" in failed.message


async def test_a_stateless_server_that_wants_a_capability_is_not_initialized() -> None:
    error = {"code": -32021, "message": "Missing required client capability: sampling"}
    failed = await refusal(scripted({"server/discover": [{"error": error}]}))
    assert failed.rpc_code == -32021
    assert "sampling" in failed.message


# ---------------------------------------------------------------- what is remembered and pinned


@requirement("CON-4")
async def test_a_remembered_era_spares_the_probe() -> None:
    session, seen = await opened(scripted(), era="handshake")
    assert session.era == "handshake"
    assert methods(seen) == ["initialize", "notifications/initialized"]


@requirement("CON-4")
@pytest.mark.parametrize("remembered", ["handshake", "stateless"])
async def test_a_remembered_era_that_fails_is_found_out_again(remembered: Era) -> None:
    modern = {"server/discover": [{"result": DISCOVERED}], "initialize": [{"error": {"code": -32601, "message": "?"}}]}
    session, _ = await opened(scripted(modern if remembered == "handshake" else {}), era=remembered)
    assert session.era == ("stateless" if remembered == "handshake" else "handshake")


@requirement("CON-4")
async def test_a_pinned_handshake_version_is_proposed_without_a_probe() -> None:
    session, seen = await opened(scripted(protocol="2025-06-18"))
    assert methods(seen) == ["initialize", "notifications/initialized"]
    assert seen[0]["params"]["protocolVersion"] == session.protocol_version == "2025-06-18"


async def test_a_pinned_stateless_version_does_not_fall_back() -> None:
    error = await refusal(scripted(protocol="2026-07-28"))
    assert error.rpc_code == -32601


async def test_an_unknown_pin_is_refused() -> None:
    error = await refusal(scripted(protocol="1999-01-01"))
    assert error.kind == "unsupported"
    assert "1999-01-01" in error.message


# ---------------------------------------------------------------- odd answers to initialize


@pytest.mark.parametrize(
    ("result", "info", "capabilities"),
    [
        ({"protocolVersion": "2025-06-18"}, None, {}),
        ({"protocolVersion": "2025-06-18", "capabilities": None, "serverInfo": "x"}, None, {}),
        (
            {"protocolVersion": "2024-11-05", "capabilities": {"zoo": 1}, "serverInfo": {"name": "n"}, "zoo": 1},
            ServerInfo(name="n", version=""),
            {"zoo": 1},
        ),
    ],
)
async def test_members_that_nobody_needs_may_be_missing_or_odd(
    result: dict[str, Any], info: ServerInfo | None, capabilities: JsonObject
) -> None:
    session, _ = await opened(scripted({"initialize": [{"result": result}]}))
    assert session.protocol_version == result["protocolVersion"]
    assert (session.info, session.capabilities) == (info, capabilities)


@pytest.mark.parametrize("version", ["2024-10-07", 20250618, None, ["2025-11-25"]])
async def test_a_version_that_nobody_knows_is_named(version: Any) -> None:
    error = await refusal(scripted({"initialize": [{"result": {"protocolVersion": version}}]}))
    assert error.kind == "unsupported"
    assert repr(version) in error.message


@pytest.mark.parametrize("supported", [["2024-11-05", "2099-01-01"], ["2025-11-25"], [], "2024-11-05", None])
async def test_a_server_that_refuses_every_version_is_asked_no_more_than_twice(supported: Any) -> None:
    data = {"supported": supported, "requested": "2025-11-25"}
    refused = {"code": -32602, "message": "Unsupported protocol version", "data": data}
    error = await refusal(scripted({"initialize": [{"error": refused}]}))
    assert (error.kind, error.rpc_code) == ("rejected", -32602)
    assert "Unsupported protocol version" in error.message


async def test_a_server_that_refuses_initialize_is_quoted() -> None:
    locked = {"code": -32603, "message": "database is locked"}
    error = await refusal(scripted({"initialize": [{"stderr": "pid 7 holds it\n"}, {"error": locked}]}))
    assert "database is locked" in error.message
    assert "pid 7 holds it" in error.message
    assert error.kind == "rejected"


async def test_an_answer_that_comes_twice_counts_once() -> None:
    answer = {"result": {"protocolVersion": "2025-11-25"}}
    session, _ = await opened(scripted({"initialize": [answer, answer]}))
    assert [entry.kind for entry in session.diagnostics()] == ["late_or_repeated_answer"]


async def test_what_comes_before_the_answer_to_initialize_does_no_harm() -> None:
    heard: list[str] = []
    script = {
        "initialize": [
            {"send": {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}},
            {"send": {"jsonrpc": "2.0", "id": "p1", "method": "ping"}},
            {"send": {"jsonrpc": "2.0", "id": "r1", "method": "roots/list"}},
            {"result": {"protocolVersion": "2025-11-25"}},
        ]
    }
    handlers = SessionHandlers(on_notification=lambda method, params: heard.append(method))
    _, seen = await opened(scripted(script), handlers=handlers)
    answers = {message["id"]: message for message in seen if "method" not in message}
    assert answers["p1"]["result"] == {}
    assert answers["r1"]["error"]["code"] == -32601
    assert "notifications/tools/list_changed" in heard


async def test_a_server_that_never_answers_fails_within_the_start_up_deadline() -> None:
    began = anyio.current_time()
    error = await refusal(scripted({"server/discover": [], "initialize": []}), timeout=0.6)
    assert error.kind == "deadline"
    assert anyio.current_time() - began < PATIENCE


# ---------------------------------------------------------------- what is advertised


@requirement("CON-12", "CON-13")
async def test_capabilities_are_those_with_a_handler_and_extensions_pass_whole() -> None:
    async def answer(params: JsonObject) -> JsonObject:
        return {"action": "decline"}

    settings = {"mimeTypes": ["text/html;profile=mcp-app"], "deep": {"a": [1, None, {"b": True}]}}
    handlers = SessionHandlers(
        on_request={"elicitation/create": answer},
        extensions={"openai/standard-form-input": {"x": 1}, "io.modelcontextprotocol/ui": settings},
    )
    advertised = {
        "elicitation": {"form": {}, "url": {}},
        "extensions": {"io.modelcontextprotocol/ui": settings},
    }
    assert handlers.capabilities() == advertised
    _, seen = await opened(scripted(), handlers=handlers)
    assert seen[1]["params"]["capabilities"] == advertised
    _, seen = await opened(scripted({"server/discover": [{"result": DISCOVERED}]}), handlers=handlers)
    assert seen[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] == advertised


@requirement("CON-12")
async def test_without_handlers_nothing_is_advertised() -> None:
    assert SessionHandlers().capabilities() == {}
    only_theirs = SessionHandlers(extensions={"openai/standard-form-input": {}})
    assert only_theirs.capabilities() == {}


@pytest.mark.parametrize("value", [None, 5, "name", [], {}, {"name": 5}])
def test_an_implementation_without_a_name_is_none(value: Any) -> None:
    assert read_info(value) is None


def test_what_an_implementation_says_of_itself_is_kept() -> None:
    value = {
        "name": "n",
        "version": "1",
        "title": "T",
        "description": "D",
        "websiteUrl": "https://example.org",
        "icons": [{"src": "data:,"}, 7],
    }
    icons = ({"src": "data:,"},)
    assert read_info(value) == ServerInfo(
        name="n", version="1", title="T", description="D", website_url="https://example.org", icons=icons
    )
