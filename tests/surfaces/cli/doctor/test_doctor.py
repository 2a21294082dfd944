"""The command as a whole: every finding with its fix, and an exit status."""

import json
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from interlock.surfaces.cli.doctor.server_check import examine_live
from interlock.vocabulary.resource import Listing
from interlock.vocabulary.server import ServerConfig, ServerReport, ServerStatus, StdioTransport
from interlock.vocabulary.snapshot import ServerView
from interlock.vocabulary.tool import Tool
from tests.manifest import requirement
from tests.surfaces.cli.shell import EXITS, OFF, SILENT, Shell, scripted

OBJECT = {"type": "object"}
ODD = {
    "eras": ["handshake"],
    "tools": [
        {"name": "good", "inputSchema": OBJECT},
        {"name": "good", "inputSchema": OBJECT},
        {"name": "needs.renaming", "inputSchema": OBJECT},
        {"name": "bad", "inputSchema": "none"},
        {"name": "kept_out", "inputSchema": OBJECT},
    ],
}
NOISE = "print('listening on stdout', flush=True); import interlock.testing.server as s, sys; s.main(sys.argv[1:])"


def found(document: dict[str, Any], subject: str) -> dict[str, dict[str, Any]]:
    return {f["kind"]: f for f in document["findings"] if f["subject"] == subject}


@pytest.fixture
def here(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.home.mkdir(mode=0o700)
    return shell


@requirement("CFG-3")
def test_everything_that_is_wrong_is_found_with_its_fix(here: Shell) -> None:
    odd = here.write("odd.json", json.dumps(ODD))
    noisy = json.dumps(["-c", NOISE, str(odd)])
    here.configure(
        scripted("odd", odd, 'on_bad_tool = "skip"\ndisabled_tools = ["kept_out", "needs.renamin"]'),
        scripted("refused", odd),
        f"[mcp_servers.noisy]\ncommand = {json.dumps(sys.executable)}\nargs = {noisy}\n"
        "env_vars = ['PYTHONPATH']\non_bad_tool = 'skip'\n",
        EXITS,
        SILENT,
        OFF,
        '[mcp_servers.unset]\ncommand = "x"\nenv = { A = { env = "NOT_SET" } }\nargz = []\n',
        '[mcp_servers.absent]\ncommand = "no-such-command"\n',
        "[mcp_servers.empty]\n",
        '[mcp_servers.web]\nurl = "http://127.0.0.1:1/mcp"\nstartup_timeout_sec = 20\n',
    )
    done = here.run("doctor", "--json")
    assert done.status == 1
    document = done.json
    assert document["ok"] is False
    odd_found = found(document, "odd")
    assert "protocol 2025-11-25 (handshake era)" in odd_found["ready"]["message"]
    assert odd_found["capabilities"]["message"] == "offers 4 tools; lacks resources, prompts, completions"
    assert "offered as mcp__odd__needs_renaming_" in odd_found["renamed"]["message"]
    assert odd_found["bad_tool"]["level"] == "warning"
    assert odd_found["duplicate"]["level"] == "warning"
    assert odd_found["filtered"]["message"].endswith(": kept_out")
    assert odd_found["unknown_tool"]["fix"] == "did you mean needs.renaming?"
    refused = found(document, "refused")["bad_tool"]
    assert refused["level"] == "error"
    assert 'on_bad_tool = "skip"' in refused["fix"]
    noise = "printed 1 line on stdout that is no message, the last: 'listening on stdout'"
    assert found(document, "noisy")["noise"]["message"] == noise
    assert "stderr" in found(document, "noisy")["noise"]["fix"]
    assert found(document, "exits")["cannot_start"]["message"] == "server 'exits' ended with exit code 1"
    assert "start it yourself: false" in found(document, "exits")["cannot_start"]["fix"]
    assert found(document, "silent")["cannot_start"]["message"] == "server 'silent' did not answer within 0.2 s"
    assert found(document, "off")["disabled"]["fix"] == "`interlock mcp enable off` enables it"
    assert "searched PATH" in found(document, "absent")["command_not_found"]["message"]
    assert "connection refused" in found(document, "web")["cannot_start"]["message"]
    unset = [f for f in document["findings"] if f["subject"] == "unset"]
    assert [(f["level"], f["fix"]) for f in unset] == [("warning", "did you mean `args`?"), ("error", "set it")]
    assert found(document, "empty")["configuration"]["fix"] == f"correct it in {here.home}/config.toml"
    assert [f for f in document["findings"] if f["level"] in ("error", "warning") and not f["fix"]] == []


def test_a_good_server_alone_is_fine(here: Shell) -> None:
    here.configure(scripted("good", here.write("good.json", json.dumps({"tools": []}))), EXITS)
    done = here.run("doctor", "good")
    assert done.status == 0
    assert done.output.splitlines()[:2] == ["configuration", f"  ok       read {here.home}/config.toml"]
    assert "\n  ok       ready after " in done.output
    assert "exits" not in done.output
    assert done.errors == "nothing is wrong\n"


class Late:
    """A connection that took a minute to be ready."""

    async def list_tools(self, *, timeout: float, held: bool) -> Listing[Tool]:
        return Listing(entries=())

    def report(self) -> ServerReport:
        return ServerReport(name="late", status=ServerStatus.READY, seconds_to_ready=60.0)


@pytest.mark.anyio
@pytest.mark.parametrize("required", [True, False])
async def test_only_a_server_that_nothing_waits_for_is_said_to_come_late(required: bool) -> None:
    config = ServerConfig(name="late", transport=StdioTransport(command="x"), required=required)
    kinds = [finding.kind for finding in await examine_live(ServerView(config=config, connection=cast(Any, Late())))]
    assert kinds == ["ready", "capabilities"] + ([] if required else ["slow_start"])


def test_a_projects_file_that_names_a_variable_holds_no_secret(here: Shell) -> None:
    here.configure("")
    file = here.write(".mcp.json", '{"mcpServers": {"s": {"command": "x", "env": {"A": "${NOT_SET_HERE}"}}}}')
    file.chmod(0o644)
    here.run("mcp", "trust", "--yes")
    assert found(here.run("doctor", "--json").json, "home").keys() == {"home"}


def test_from_an_empty_home_it_says_how_to_begin(here: Shell) -> None:
    done = here.run("doctor")
    assert done.status == 0
    assert "`interlock mcp add` makes one, `interlock mcp import` takes over" in done.output


def test_a_model_without_its_key_would_fail(here: Shell) -> None:
    here.configure('model = "m"\n')
    done = here.run("doctor", "--json")
    assert done.status == 1
    assert found(done.json, "model")["no_key"]["fix"] == "set it to the provider's key"


def test_labels_are_coloured_at_a_terminal_only_where_colours_are_wanted(here: Shell) -> None:
    here.configure(OFF)
    assert "\x1b[32mok" in here.run_at_terminal("doctor")
    assert "\x1b[3" not in here.run_at_terminal("doctor", NO_COLOR="1")


@requirement("CFG-2")
def test_a_server_in_two_files_is_named_with_both(here: Shell) -> None:
    here.configure(OFF)
    near = here.write("near.json", '{"mcpServers": {"off": {"command": "y", "disabled": true}}}')
    done = here.run("doctor", "off", "-c", "near.json", "--json")
    twice = found(done.json, "off")["written_twice"]
    assert done.status == 0
    assert f"is written in {here.home}/config.toml [mcp_servers.off], too" in twice["message"]
    assert f"{near.name} [mcpServers.off] is nearer" in twice["message"]


def test_a_malformed_file_is_one_sentence(here: Shell) -> None:
    here.configure("[mcp_servers.a\n")
    done = here.run("doctor")
    assert (done.status, done.errors.count("\n")) == (2, 1)
    assert "config.toml:1:15" in done.errors
