"""The command as a whole: every finding with its fix, and an exit status."""

import json
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from interlock.configuration import TrustStore
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


MALFORMED: dict[str, tuple[str | bytes, str, str]] = {
    "syntax": ("a = 1\n[mcp_servers.a\n", ":2:15: expected ']' at the end of a table declaration", "correct that line"),
    "twice": ("[a]\n[a]\n", ":2:3: [a] is written before", "correct that line"),
    "encoding": (b'model = "\xfc"\n', ":1:10: this is not UTF-8", "correct that line"),
}


@requirement("CFG-3")
@pytest.mark.parametrize(("content", "message", "fix"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_file_is_a_finding_beside_all_others(
    here: Shell, content: str | bytes, message: str, fix: str
) -> None:
    file = here.home / "config.toml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    file.chmod(0o666)
    near = here.write("near.toml", "\n".join([scripted("good", here.write("good.json", '{"tools": []}')), EXITS]))
    done = here.run("doctor", "-c", str(near), "--json")
    assert (done.status, done.json["ok"]) == (1, False)
    unreadable = found(done.json, "configuration")["unreadable"]
    assert (unreadable["level"], unreadable["message"]) == ("error", f"cannot read {file}{message}")
    assert unreadable["fix"] == fix
    assert found(done.json, "configuration")["file"]["message"] == f"read {near}"
    assert found(done.json, "good")["ready"]["level"] == "ok"
    assert "cannot_start" in found(done.json, "exits")
    assert found(done.json, "home").keys() == {"home", "others_write"}
    assert found(done.json, "model").keys() == {"not_examined"}
    assert [f for f in done.json["findings"] if f["level"] in ("error", "warning") and not f["fix"]] == []


def test_a_folder_in_the_place_of_a_file_is_a_finding(here: Shell) -> None:
    (here.home / "config.toml").mkdir()
    done = here.run("doctor")
    assert (done.status, done.errors) == (1, "1 error, 0 warnings\n")
    assert f"config.toml: is a directory\n{' ' * 11}fix: check the path\n" in done.output
    assert "there is no configuration file yet" not in done.output


def test_a_malformed_file_of_the_project_leaves_the_users_servers_examined(here: Shell) -> None:
    here.configure(OFF)
    text = '{"mcpServers": {x}}'
    TrustStore(here.home).trust(here.write(".mcp.json", text), text.encode())
    done = here.run("doctor", "--json")
    assert ".mcp.json:1:17: " in found(done.json, "configuration")["unreadable"]["message"]
    assert found(done.json, "off").keys() == {"disabled"}


def test_a_server_that_may_stand_in_the_malformed_file_is_not_said_to_be_none(here: Shell) -> None:
    here.configure("[mcp_servers.a\n")
    done = here.run("doctor", "a", "--json")
    assert done.status == 1
    unknown = found(done.json, "a")["unknown_server"]
    assert unknown["message"] == "no file that can be read has a server 'a'"
    assert unknown["fix"] == f"mend {here.home}/config.toml, then run `interlock doctor a` again"


def test_a_home_that_cannot_be_looked_into_is_a_finding_and_not_taken_for_absent(here: Shell) -> None:
    home = f"/{'x' * 300}"  # as a folder of root's is for others
    done = here.run("doctor", INTERLOCK_HOME=home)
    assert (done.status, done.errors) == (1, "2 errors, 0 warnings\n")
    assert "config.toml: file name too long" in done.output
    assert f"{home} cannot be looked into: file name too long" in done.output
    assert "does not exist" not in done.output
