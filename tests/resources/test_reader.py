"""reader: exactly the named server, or all of them side by side; no failure is an empty success."""

import json
from typing import Any

import anyio
import pytest

from interlock.resources.payload import NAMED_BAD_ENTRIES
from interlock.resources.reader import RESOURCES, TEMPLATES, list_all, list_one, read_one
from interlock.vocabulary.errors import InvalidRequest, NotPermitted, ServerFailed
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.server import ServerStatus
from interlock.vocabulary.snapshot import Binding
from tests.manifest import requirement
from tests.resources.recorded import Recorded, binding, listed, offering, view

pytestmark = pytest.mark.anyio

CLOSED = Policy(orchestrator_mcp_enabled=False)


async def everything(over: Binding) -> Any:
    return json.loads(await list_all(over, RESOURCES, None))


def servers_of(answer: Any) -> list[str]:
    return [entry["server"] for entry in answer["resources"]]


def errors_of(answer: Any) -> dict[str, str]:
    return {error["server"]: error["message"] for error in answer.get("errors", [])}


def failed(server: str, reason: str = "it ended") -> Recorded:
    return Recorded(server, status=ServerStatus.FAILED, reason=reason)


def starting(server: str) -> Recorded:
    return offering(server, f"{server}://1", status=ServerStatus.STARTING, gate=anyio.Event())


# ---- one server


@requirement("RES-4")
async def test_only_the_named_server_is_asked() -> None:
    alpha, beta = offering("alpha", "a://1"), offering("beta", "b://1")
    answer = json.loads(await list_one(binding(alpha, beta), RESOURCES, "beta", None, None))
    assert answer == {"server": "beta", "resources": [{"server": "beta", "uri": "b://1", "name": "b://1"}]}
    assert alpha.asked == []


@requirement("RES-4")
@pytest.mark.parametrize("cursor", ["c1", " odd é ", ""])
async def test_a_servers_own_cursor_passes_through_untouched(cursor: str) -> None:
    server = Recorded("s", {"resources/list": [listed("s://1", cursor="from", following=cursor)]})
    answer = json.loads(await list_one(binding(server), RESOURCES, "s", "from", None))
    assert answer["nextCursor"] == cursor
    assert server.asked == [("resources/list", "from")]


@requirement("RES-4")
async def test_the_servers_label_wins_over_a_server_member_of_its_own() -> None:
    page = {"for": None, "result": {"resources": [{"uri": "s://1", "name": "n", "server": "other"}]}}
    answer = json.loads(await list_one(binding(Recorded("s", {"resources/list": [page]})), RESOURCES, "s", None, None))
    assert answer["resources"][0]["server"] == "s"


@requirement("RES-6")
async def test_an_entry_that_cannot_be_decoded_falls_alone_and_is_named() -> None:
    page = {"for": None, "result": {"resources": [{"uri": "s://1", "name": "n"}, {"name": "no uri"}]}}
    server = Recorded("s", {"resources/list": [page]})
    for answer in (
        json.loads(await list_one(binding(server), RESOURCES, "s", None, None)),
        await everything(binding(server)),
    ):
        assert [entry["uri"] for entry in answer["resources"]] == ["s://1"]
        assert "#2" in errors_of(answer)["s"]


@requirement("RES-6")
async def test_many_bad_entries_are_counted_after_the_first_few() -> None:
    page = {"for": None, "result": {"resources": [{"name": "no uri"}] * 50}}
    answer = await everything(binding(Recorded("s", {"resources/list": [page]})))
    assert len(answer["errors"]) == NAMED_BAD_ENTRIES + 1
    assert "30 more" in answer["errors"][-1]["message"]


@requirement("RES-6")
async def test_metadata_too_deep_to_be_written_takes_only_its_entry() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    page = {
        "for": None,
        "result": {"resources": [{"uri": "s://1", "name": "deep", "_meta": deep}, {"uri": "u", "name": "n"}]},
    }
    answer = await everything(binding(Recorded("s", {"resources/list": [page]})))
    assert [entry["name"] for entry in answer["resources"]] == ["n"]
    assert "'deep'" in errors_of(answer)["s"]


async def test_an_unknown_server_is_refused_with_the_names_that_exist() -> None:
    over = binding(offering("alpha"), offering("beta"), view(offering("secret"), gated=True), policy=CLOSED)
    for call in (list_one(over, RESOURCES, "nope", None, None), read_one(over, "nope", "a://1", None)):
        with pytest.raises(InvalidRequest) as caught:
            await call
        assert "'nope'" in caught.value.message
        assert "'alpha', 'beta'" in caught.value.message
        assert "secret" not in caught.value.message


async def test_a_disabled_server_is_refused_with_the_setting() -> None:
    over = binding(offering("on"), disabled=frozenset({"off"}))
    for call in (list_one(over, RESOURCES, "off", None, None), read_one(over, "off", "o://1", None)):
        with pytest.raises(NotPermitted, match=r"'off'.*enabled = true in \[mcp_servers\.off\]"):
            await call


async def test_a_call_has_its_servers_own_deadline_unless_the_caller_sets_one() -> None:
    server = offering("s", "s://1")
    over = binding(view(server, tool_timeout=12.0))
    await list_one(over, RESOURCES, "s", None, None)
    await read_one(over, "s", "s://1", 3.0)
    await list_all(over, RESOURCES, None)
    assert server.timeouts == [12.0, 3.0, 12.0]


async def test_a_named_server_that_is_still_starting_is_waited_for() -> None:
    server = starting("slow")
    over = binding(server, pending=("slow",))
    answers: list[str] = []

    async def call() -> None:
        answers.append(await list_one(over, RESOURCES, "slow", None, None))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        with anyio.fail_after(60):
            await server.reached.wait()
        assert answers == []
        assert server.gate is not None
        server.gate.set()
    assert servers_of(json.loads(answers[0])) == ["slow"]


# ---- reading


@requirement("RES-7")
@pytest.mark.parametrize("named", ["alpha", "beta", "gamma"])
async def test_a_read_goes_to_exactly_the_named_server_with_the_uri_as_it_is(named: str) -> None:
    uri = "a://{x}?q=%7B é"  # neither expanded nor encoded
    servers = [offering(name, uri) for name in ("alpha", "beta", "gamma")]
    answer = json.loads(await read_one(binding(*servers), named, uri, None))
    assert answer == {"server": named, "uri": uri, "contents": [{"uri": uri, "text": uri}]}
    assert [server.server for server in servers if server.asked] == [named]
    assert [server.asked for server in servers if server.asked] == [[("resources/read", uri)]]


@requirement("RES-7")
@pytest.mark.parametrize(
    "content",
    [
        {"uri": "s://1", "mimeType": "image/png", "blob": "AAE="},
        {"uri": "s://1", "text": ""},
        {"uri": "s://other", "mimeType": "text/plain", "text": "héllo\n\u2028", "_meta": {"z": 1}},
    ],
)
async def test_text_and_blob_are_kept_as_they_came(content: dict[str, Any]) -> None:
    server = Recorded("s", {"resources/read": [{"for": "s://1", "result": {"contents": [content]}}]})
    text = await read_one(binding(server), "s", "s://1", None)
    assert json.loads(text)["contents"] == [content]
    assert "\\u00e9" not in text  # non-ASCII as it is


@requirement("RES-7")
async def test_a_content_with_neither_text_nor_blob_fails_the_read() -> None:
    contents = [{"uri": "s://1", "text": "fine"}, {"uri": "s://2"}]
    server = Recorded("s", {"resources/read": [{"for": "s://1", "result": {"contents": contents}}]})
    with pytest.raises(ServerFailed, match="neither text nor blob") as caught:
        await read_one(binding(server), "s", "s://1", None)
    assert caught.value.kind == "protocol"


@requirement("RES-7")
async def test_an_empty_read_is_an_empty_list_of_contents() -> None:
    server = Recorded("s", {"resources/read": [{"for": "s://1", "result": {"contents": []}}]})
    assert json.loads(await read_one(binding(server), "s", "s://1", None))["contents"] == []


# ---- all servers


@requirement("RES-5")
async def test_servers_are_sorted_by_name_and_their_own_order_is_kept() -> None:
    over = binding(offering("beta", "b://1"), offering("Zeta", "z://2", "z://1"), offering("alpha", "a://1"))
    answer = await everything(over)
    assert [entry["uri"] for entry in answer["resources"]] == ["z://2", "z://1", "a://1", "b://1"]
    assert "nextCursor" not in answer
    assert "errors" not in answer


@requirement("RES-5")
async def test_every_page_of_every_server_is_read() -> None:
    pages = [listed("s://1", following="c"), listed("s://2", cursor="c")]
    answer = await everything(binding(Recorded("s", {"resources/list": pages})))
    assert [entry["uri"] for entry in answer["resources"]] == ["s://1", "s://2"]


@requirement("RES-5")
async def test_servers_are_asked_side_by_side() -> None:
    gate = anyio.Event()
    slow, other = offering("a", "a://1", gate=gate), offering("b", "b://1", gate=gate)
    answers: list[Any] = []

    async def call() -> None:
        answers.append(await everything(binding(slow, other)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        with anyio.fail_after(60):  # both wait at the gate at the same time
            await slow.reached.wait()
            await other.reached.wait()
        gate.set()
    assert servers_of(answers[0]) == ["a", "b"]


@requirement("RES-6")
async def test_a_failing_server_takes_away_only_itself_and_the_answer_says_so() -> None:
    answer = await everything(binding(offering("good", "g://1"), failed("bad", "its command was not found")))
    assert servers_of(answer) == ["good"]
    assert "its command was not found" in errors_of(answer)["bad"]


@requirement("RES-6")
async def test_a_server_that_fails_on_a_later_page_gives_nothing_half_taken() -> None:
    half = Recorded("half", {"resources/list": [listed("h://1", following="gone")]})
    half.answers["resources/list"].append({"for": "gone", "error": {"code": -32000, "message": "boom"}})
    answer = await everything(binding(offering("good", "g://1"), half))
    assert servers_of(answer) == ["good"]
    assert "boom" in errors_of(answer)["half"]


@requirement("RES-6")
async def test_a_server_that_is_still_starting_is_named_and_not_waited_for() -> None:
    slow = starting("slow")
    unstarted = offering("next", "n://1", status=ServerStatus.NOT_STARTED)
    answer = await everything(binding(offering("good", "g://1"), slow, unstarted, pending=("slow", "next")))
    assert servers_of(answer) == ["good"]
    assert errors_of(answer) == {"next": "still starting", "slow": "still starting"}
    assert slow.asked == unstarted.asked == []


@requirement("RES-6")
async def test_a_server_without_resources_contributes_nothing_and_no_error() -> None:
    tools_only = Recorded("tools", capabilities={"tools": {}})
    knows_no_method = Recorded("old")
    answer = await everything(binding(offering("good", "g://1"), tools_only, knows_no_method))
    assert servers_of(answer) == ["good"]
    assert "errors" not in answer
    assert await everything(binding(tools_only, knows_no_method)) == {"resources": []}


@requirement("RES-6")
async def test_when_all_that_were_asked_failed_the_call_fails_and_names_them() -> None:
    tools_only = Recorded("tools", capabilities={"tools": {}})
    over = binding(failed("one", "it ended"), starting("two"), tools_only, pending=("two",))
    with pytest.raises(ServerFailed) as caught:
        await everything(over)
    assert "one: failed: it ended" in caught.value.message
    assert "two: still starting" in caught.value.message
    assert "tools" not in caught.value.message
    assert caught.value.effect == "none"


@requirement("RES-6")
async def test_a_server_with_nothing_to_list_succeeded() -> None:
    answer = await everything(binding(offering("empty"), failed("bad")))
    assert answer["resources"] == []
    assert list(errors_of(answer)) == ["bad"]


@requirement("RES-6")
async def test_templates_follow_the_same_rules() -> None:
    one = {"for": None, "result": {"resourceTemplates": [{"uriTemplate": "t://{x}", "name": "t"}]}}
    over = binding(Recorded("s", {"resources/templates/list": [one]}), offering("none", "n://1"), failed("bad"))
    answer = json.loads(await list_all(over, TEMPLATES, None))
    assert answer["resourceTemplates"] == [{"server": "s", "uriTemplate": "t://{x}", "name": "t"}]
    assert list(errors_of(answer)) == ["bad"]


@requirement("RES-5")
async def test_cancelling_an_aggregate_cancels_every_server() -> None:
    waiting = [offering(name, gate=anyio.Event()) for name in ("a", "b")]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(everything, binding(*waiting))
        with anyio.fail_after(60):
            for server in waiting:
                await server.reached.wait()
        tasks.cancel_scope.cancel()
    assert tasks.cancel_scope.cancelled_caught


# ---- the gate


@requirement("RES-8")
async def test_a_gated_server_is_left_out_of_an_aggregate_and_refused_when_named() -> None:
    gated = offering("codex_apps", "c://1")
    over = binding(view(gated, gated=True), offering("open", "o://1"), policy=CLOSED)
    answer = await everything(over)
    assert servers_of(answer) == ["open"]
    assert "errors" not in answer
    for call in (
        list_one(over, RESOURCES, "codex_apps", None, None),
        list_one(over, TEMPLATES, "codex_apps", None, None),
        read_one(over, "codex_apps", "c://1", None),
    ):
        with pytest.raises(NotPermitted, match=r"orchestrator\.mcp\.enabled"):
            await call
    assert gated.asked == []


@requirement("RES-8")
async def test_an_open_gate_changes_nothing() -> None:
    over = binding(view(offering("codex_apps", "c://1"), gated=True), offering("open", "o://1"))
    assert servers_of(await everything(over)) == ["codex_apps", "open"]
    assert json.loads(await read_one(over, "codex_apps", "c://1", None))["server"] == "codex_apps"


@requirement("RES-8")
async def test_with_every_server_gated_nobody_was_asked_and_the_list_is_empty() -> None:
    over = binding(view(offering("codex_apps", "c://1"), gated=True), policy=CLOSED)
    assert await everything(over) == {"resources": []}
