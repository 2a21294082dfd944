"""Looking at servers and asking them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.manifest import requirement
from tests.surfaces.cli.shell import BROKEN, OFF, Shell, scripted

# ---- list


@requirement("CON-1", "CFG-3")
def test_the_list_shows_every_server_with_its_state_and_its_reason(mixed: Shell) -> None:
    done = mixed.run("mcp", "list", "--json")

    assert done.status == 0
    servers = {server["name"]: server for server in done.json["servers"]}
    assert list(servers) == ["broken", "exits", "good", "off", "silent"]
    good = servers["good"]
    assert (good["status"], good["tools"], good["era"], good["restarts"]) == ("ready", 3, "stateless", 0)
    assert good["seconds_to_ready"] > 0
    assert good["protocol_version"] == "2026-07-28"
    assert "belongs to HTTP servers" in servers["broken"]["reason"]
    assert (servers["off"]["status"], servers["off"]["reason"]) == ("disabled", None)
    assert (servers["exits"]["status"], servers["silent"]["status"]) == ("failed", "failed")
    assert servers["exits"]["reason"] == "server 'exits' ended with exit code 1"
    assert servers["silent"]["reason"].startswith("server 'silent' did not answer within 0.2 s; ")
    assert [(problem["table"], problem["key"]) for problem in done.json["problems"]] == [("mcp_servers.broken", "url")]


def test_in_a_pipe_the_list_is_plain_aligned_text(mixed: Shell) -> None:
    done = mixed.run("mcp", "list")

    heading, *lines = done.output.splitlines()
    assert heading.split()[:5] == ["NAME", "STATUS", "TRANSPORT", "PROTOCOL", "TOOLS"]
    assert len(lines) == 5
    good = next(line for line in lines if line.startswith("good"))
    assert good[heading.index("STATUS") :].startswith("connected")
    assert "\x1b" not in done.output + done.errors
    assert "starting" not in done.errors


def test_at_a_terminal_the_list_is_a_table_and_the_start_is_shown(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    slow = tmp_path / "slow.json"
    slow.write_text(json.dumps({"on": {"server/discover": [{"wait_for_file": "/nonexistent", "within": 0.8}]}}))
    shell.configure(scripted("slow", slow))

    seen = shell.run_at_terminal("mcp", "list")

    assert "starting slow …" in seen
    assert "\x1b[1m" in seen


def test_at_a_terminal_reasons_stand_below_the_table_and_idle_columns_are_left_out(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.configure(BROKEN, OFF)
    table, _, reasons = shell.run_at_terminal("mcp", "list").partition("error:")
    assert "belongs to HTTP servers" in reasons
    assert "name" in table
    assert [word for word in ("restarts", "diagnostics", "reason", "ready") if word in table] == []


def test_no_color_is_respected(mixed: Shell) -> None:
    seen = mixed.run_at_terminal("mcp", "read", "nobody", "docs://x", NO_COLOR="1")
    assert "error: there is no server 'nobody'" in seen
    assert "\x1b" not in seen
    assert "\x1b[31merror:" in mixed.run_at_terminal("mcp", "read", "nobody", "docs://x")


def test_without_servers_the_list_says_how_to_get_one(tmp_path: Path) -> None:
    done = Shell(tmp_path).run("mcp", "list")
    assert (done.status, done.output) == (0, "")
    assert "`interlock mcp add` adds one, `interlock mcp import` takes over those of other hosts" in done.errors
    assert "`interlock mcp add` adds one" in Shell(tmp_path).run("mcp", "tools").errors
    assert Shell(tmp_path).run("mcp", "list", "--json").json == {"servers": [], "problems": [], "files": []}


@pytest.mark.parametrize("words", [["mcp", "list"], ["threads", "list"]])
def test_an_empty_list_loads_neither_an_event_loop_nor_models_of_tables(tmp_path: Path, words: list[str]) -> None:
    code = (
        f"import sys\nfrom interlock.surfaces.cli.main import main\nsys.argv = ['interlock', *{words}]\n"
        "try: main()\nexcept SystemExit as end: assert end.code == 0\n"
        "heavy = ('mcp', 'interlock.connections', 'interlock.stores', 'asyncio', 'anyio', 'pydantic', 'rich')\n"
        "print([module for module in heavy if module in sys.modules])"
    )
    environment = Shell(tmp_path).environment()
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


# ---- tools, resources, templates


@requirement("CAT-8")
def test_tools_are_listed_under_the_names_that_a_model_sees(shell: Shell) -> None:
    tools = shell.run("mcp", "tools", "--json").json
    assert tools["errors"] == []
    assert [(tool["server"], tool["name"], tool["public_name"]) for tool in tools["tools"]] == [
        ("good", "echo", "mcp__good__echo"),
        ("good", "fail", "mcp__good__fail"),
    ]
    assert tools["tools"][0]["definition"]["annotations"] == {"readOnlyHint": True}
    text = shell.run("mcp", "tools", "good").output
    assert "read-only" in text
    assert "Says it again." in text
    assert "At length." not in text


@requirement("CAT-3")
def test_a_bad_tool_that_keeps_the_others_from_models_is_told_wherever_they_are_looked_at(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    tools = [{"name": "fine", "inputSchema": {"type": "object"}}, {"name": "odd", "inputSchema": "none"}]
    script = shell.write("bad.json", json.dumps({"tools": tools}))
    shell.configure(scripted("bad", script))
    told = "cannot take the tools of server 'bad': tool 'odd' cannot be used"

    (server,) = shell.run("mcp", "list", "--json").json["servers"]
    assert (server["status"], server["tools"]) == ("ready", None)
    assert server["reason"].startswith(told)
    assert shell.run("mcp", "tools").errors.startswith(f"error: {told}")
    listed = shell.run("mcp", "tools", "bad", "--json").json
    assert [(tool["name"], tool["visible_to_model"]) for tool in listed["tools"]] == [("fine", False)]
    assert listed["errors"][-1]["message"].startswith(told)

    shell.configure(scripted("bad", script, 'on_bad_tool = "skip"'))
    (server,) = shell.run("mcp", "list", "--json").json["servers"]
    assert (server["reason"], server["tools"]) == (None, 1)
    assert shell.run("mcp", "tools").errors == ""
    assert [tool["visible_to_model"] for tool in shell.run("mcp", "tools", "--json").json["tools"]] == [True]


@requirement("RES-6")
def test_a_failing_server_is_named_beside_what_the_others_list(mixed: Shell) -> None:
    done = mixed.run("mcp", "resources", "--json")
    assert done.status == 0
    assert [resource["uri"] for resource in done.json["resources"]] == ["docs://guide", "docs://bytes"]
    assert [error["server"] for error in done.json["errors"]] == ["broken", "exits", "silent"]


@requirement("RES-6")
def test_when_all_servers_fail_the_list_fails(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.configure(BROKEN)
    done = shell.run("mcp", "resources")
    assert (done.status, done.output) == (1, "")
    assert "belongs to HTTP servers" in done.errors


@requirement("RES-4")
def test_a_named_server_gives_one_page_and_its_cursor(shell: Shell) -> None:
    first = shell.run("mcp", "resources", "good", "--json").json
    assert [resource["uri"] for resource in first["resources"]] == ["docs://guide"]
    second = shell.run("mcp", "resources", "good", "--cursor", first["nextCursor"], "--json").json
    assert [resource["uri"] for resource in second["resources"]] == ["docs://bytes"]
    assert "nextCursor" not in second
    assert f"--cursor {first['nextCursor']}" in shell.run("mcp", "resources", "good").errors


def test_templates_are_listed(shell: Shell) -> None:
    assert [t["uriTemplate"] for t in shell.run("mcp", "templates", "--json").json["resourceTemplates"]] == [
        "docs://{page}"
    ]


# ---- read


def test_a_resource_goes_into_a_pipe_as_it_is(shell: Shell) -> None:
    assert shell.run("mcp", "read", "good", "docs://guide").output == "the guide\x1b[31m\n"
    assert shell.run("mcp", "read", "good", " docs://bytes ").output == "hello"
    document = shell.run("mcp", "read", "good", "docs://bytes", "--json").json
    assert document == {
        "server": "good",
        "uri": "docs://bytes",
        "contents": [{"uri": "docs://bytes", "mimeType": "image/png", "blob": "aGVsbG8="}],
    }


def test_a_resource_cannot_steer_a_terminal(shell: Shell) -> None:
    seen = shell.run_at_terminal("mcp", "read", "good", "docs://guide")
    assert "the guide\\x1b[31m" in seen
    assert "\x1b[31m" not in seen


# ---- call


def test_a_tool_is_called_with_the_arguments_given(shell: Shell) -> None:
    assert json.loads(shell.run("mcp", "call", "good", "echo", '{"a": 1}').output) == {"a": 1}
    done = shell.run("mcp", "call", "good", "echo", "-", "--json", stdin='{"b": [2]}')
    assert (done.status, done.json["isError"]) == (0, False)


@requirement("LIF-3")
def test_a_result_that_is_an_error_is_printed_and_fails_the_command(shell: Shell) -> None:
    done = shell.run("mcp", "call", "good", "fail")
    assert (done.status, done.output) == (1, "no such luck\n")
    assert done.errors == "error: tool 'fail' of server 'good' answered that it failed\n"


@requirement("LIF-3")
def test_a_call_that_is_cut_off_is_told_with_what_is_unknown(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    cut = {"name": "order", "inputSchema": {"type": "object"}, "do": [{"stderr": "no stock"}, {"exit": 3}]}
    refused = {"name": "refused", "inputSchema": {"type": "object"}, "do": [{"error": {"code": -1, "message": "no"}}]}
    script = shell.write("shop.json", json.dumps({"tools": [cut, refused]}))
    shell.configure(scripted("shop", script))
    done = shell.run("mcp", "call", "shop", "order")
    assert (done.status, done.output) == (1, "")
    assert done.errors.startswith("error: server 'shop' ended with exit code 3")
    assert "(whether the call took effect is unknown)" in done.errors
    assert "unknown" not in shell.run("mcp", "call", "shop", "refused").errors


@requirement("CAT-8")
def test_a_tool_that_is_filtered_out_cannot_be_called(shell: Shell) -> None:
    done = shell.run("mcp", "call", "good", "hidden")
    assert (done.status, done.output) == (1, "")
    assert "cannot call tool 'hidden' of server 'good'" in done.errors


# ---- what is wrong is said in one sentence


@pytest.mark.parametrize(
    ("status", "arguments", "parts"),
    [
        (2, ["mcp", "read", "zzzz", "docs://x"], ["there is no server 'zzzz'; there are broken, exits, good"]),
        (2, ["mcp", "read", "goood", "docs://x"], ["there is no server 'goood'; did you mean good?"]),
        (2, ["mcp", "read", "off", "docs://x"], ["server 'off' is disabled in"]),
        (2, ["mcp", "tools", "broken"], ["cannot use server 'broken'", "`url`"]),
        (1, ["mcp", "tools", "exits"], ["server 'exits' ended with exit code 1; `interlock mcp list`"]),
        (1, ["mcp", "tools", "silent"], ["server 'silent' did not answer within 0.2 s; raise"]),
        (2, ["mcp", "call", "good", "ecco"], ["server 'good' has no tool 'ecco'; did you mean echo?"]),
        (2, ["mcp", "call", "good", "echo", '{"a": '], ["the arguments", "line 1, column 7", "write a JSON object"]),
        (2, ["mcp", "call", "good", "echo", '{"a'], ["arguments: unterminated string at line 1, column 2; write"]),
        (2, ["mcp", "call", "good", "echo", "[1]"], ["the arguments: they must be a JSON object"]),
        (2, ["mcp", "resources", "--cursor", "x"], ["cannot use --cursor without a server", "name the SERVER"]),
        (2, ["mcp", "read", "good", "  "], ["without a URI", "`interlock mcp resources good` lists them"]),
        (1, ["mcp", "read", "good", "docs://no"], ["'good' refused", "docs://no", "`interlock mcp resources good`"]),
        (
            1,
            ["mcp", "read", "good", "docs://{page}"],
            ["'good' refused", "--set NAME=VALUE", "`interlock mcp templates"],
        ),
        (2, ["mcp", "list", "--config", "gone.toml"], ["gone.toml", "no such file", "check the path"]),
        (2, ["mcp", "list", "--config", "bad.toml"], ["cannot read bad.toml:2:11", "correct that line"]),
        (2, ["threads", "show", "nothing"], ["there is no thread 'nothing'; nothing is stored yet"]),
        (2, ["exec", " "], ["the prompt is blank", "write what"]),
        (2, ["exec", "hi"], ["none is named; use --model MODEL"]),
        (2, ["exec", "hi", "-m", "x"], ["variable OPENAI_API_KEY is not set; set it"]),
        (2, ["mcp", "trust"], ["there is nothing to trust in", ".mcp.json"]),
    ],
)
def test_what_is_wrong_is_one_sentence_with_a_way_out(
    mixed: Shell, status: int, arguments: list[str], parts: list[str]
) -> None:
    mixed.write("bad.toml", "[mcp_servers.a]\ncommand = = 1\n")
    done = mixed.run(*arguments)
    assert (done.status, done.output) == (status, "")
    assert done.errors.startswith("error: ")
    assert done.errors.count("\n") == 1
    assert [part for part in parts if part not in done.errors] == []


@pytest.mark.parametrize(
    ("arguments", "hint"), [(["lst"], "No such command"), (["mcp", "lst"], "Did you mean 'list'?")]
)
def test_an_unknown_command_is_refused_with_a_suggestion(tmp_path: Path, arguments: list[str], hint: str) -> None:
    done = Shell(tmp_path).run(*arguments)
    assert done.status == 2
    assert hint in done.errors


# ---- trust


@requirement("CFG-3")
def test_a_projects_servers_start_once_the_file_was_trusted(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    script = shell.write("script.json", "{}")
    command = {"command": "python", "args": ["-m", "interlock.testing.server", str(script)], "env": {"K": "s3cret"}}
    shell.write(".mcp.json", json.dumps({"mcpServers": {"here": command}}))

    before = shell.run("mcp", "list", "--json")
    assert before.json["servers"] == []
    assert "run `interlock mcp trust`" in before.errors
    trusted = shell.run("mcp", "trust")
    assert f"here: python -m interlock.testing.server {script}" in trusted.errors
    assert "s3cret" not in trusted.errors
    assert [server["name"] for server in shell.run("mcp", "list", "--json").json["servers"]] == ["here"]
    shell.write(".mcp.json", json.dumps({"mcpServers": {"other": command}}))
    assert shell.run("mcp", "list", "--json").json["servers"] == []
