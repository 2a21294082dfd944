"""approvals explain: which rule or setting decides on a call, thought of or recorded."""

import json
from functools import partial

import anyio.to_thread
import pytest

from interlock.testing import Call, Say, ScriptedEndpoint
from tests.manifest import requirement
from tests.surfaces.cli.shell import Done, Shell
from tests.surfaces.cli.test_exec import use

pytestmark = pytest.mark.anyio

RULES = """
[[approval_rules]]
action = "deny"
tool = "fail"
arguments = { path = { within = "/etc" } }
reason = "hands off"

[[approval_rules]]
action = "allow"
tool = "fail"
arguments = { path = { within = "/tmp" } }
"""


@pytest.fixture
def ruled(shell: Shell) -> Shell:
    config = shell.home / "config.toml"
    config.write_text(RULES + config.read_text(encoding="utf-8"), encoding="utf-8")
    return shell


async def run(shell: Shell, *arguments: str, stdin: str = "") -> Done:
    return await anyio.to_thread.run_sync(partial(shell.run, *arguments, stdin=stdin, MODEL_KEY="k3y"))


@requirement("APR-4")
async def test_a_call_that_somebody_thinks_of_is_explained_with_every_rule(ruled: Shell) -> None:
    done = await run(ruled, "approvals", "explain", "good", "fail", '{"path": "/tmp/x"}', "--offline")

    assert done.status == 0
    assert done.output.splitlines() == [
        "good fail: allowed without asking",
        f"  because approval rule 2 ({ruled.home / 'config.toml'} [[approval_rules]] 2) says allow",
        "  rule 1 (deny) does not match: argument path is not what the rule wants",
        "  rule 2 (allow) matches",
    ]


@requirement("APR-4")
@pytest.mark.parametrize(
    ("tool", "arguments", "decision", "basis"),
    [
        ("fail", {"path": "/tmp/../etc/x"}, "deny", "rule"),
        ("fail", {}, "ask", "mode"),
        ("echo", {}, "allow", "mode"),
    ],
)
async def test_annotations_come_from_the_running_server(
    ruled: Shell, tool: str, arguments: dict[str, str], decision: str, basis: str
) -> None:
    done = await run(ruled, "approvals", "explain", "good", tool, "-", "--json", stdin=json.dumps(arguments))

    (call,) = done.json["calls"]
    assert (call["decision"], call["basis"], call["approvalMode"]) == (decision, basis, "auto")


@requirement("APR-4")
async def test_recorded_calls_are_explained_under_the_configuration_of_today(ruled: Shell) -> None:
    calls = [Call("mcp__good__fail", {"path": "/etc/x"}, call_id="a"), Call("mcp__good__echo", call_id="b")]
    async with ScriptedEndpoint(calls, Say("done")) as endpoint:
        use(ruled, endpoint)
        await run(ruled, "exec", "go", "--allow-tools")
    (thread,) = (await run(ruled, "threads", "list", "--json")).json["threads"]
    explained = await run(ruled, "approvals", "explain", "--thread", thread["thread_id"], "--json")
    one = await run(ruled, "approvals", "explain", "--thread", thread["thread_id"], "--call", "b")

    decisions = {call["callId"]: call["decision"] for call in explained.json["calls"]}
    assert decisions == {"a": "deny", "b": "allow"}
    assert "good echo: allowed without asking" in one.output
    assert len(one.output.splitlines()) >= 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("none", "fail"), "there is no server 'none'"),
        (("good", "gone"), "has no tool 'gone'"),
        (("good",), "name a SERVER and a TOOL"),
        (("good", "fail", "{"), "cannot read the arguments"),
        (("--thread", "0"), "there is no thread '0'"),
    ],
)
async def test_what_cannot_be_explained_is_said_in_words(ruled: Shell, arguments: tuple[str, ...], words: str) -> None:
    done = await run(ruled, "approvals", "explain", *arguments)

    assert done.status == 2
    assert words in done.errors
