"""Adding, showing, switching, removing and taking over servers."""

import json
import shutil
import signal
import tomllib
from pathlib import Path

import pytest

from tests.configuration.test_importing import a_machine
from tests.manifest import requirement
from tests.surfaces.cli.shell import Shell


@pytest.fixture
def here(tmp_path: Path) -> Shell:
    """A folder with an empty home folder and no server."""
    return Shell(tmp_path)


def config(shell: Shell) -> dict[str, object]:
    servers: dict[str, object] = tomllib.loads((shell.home / "config.toml").read_text())["mcp_servers"]
    return servers


def test_a_server_is_added_shown_switched_and_removed(here: Shell) -> None:
    added = here.run("mcp", "add", "time", "-e", "TZ=UTC", "-e", "HOME", "--required", "--", "python", "-m", "x", "-v")
    assert (added.status, added.output) == (0, "")
    assert f"added time to {here.home}/config.toml" in added.errors
    assert config(here) == {
        "time": {
            "command": "python",
            "args": ["-m", "x", "-v"],
            "env_vars": ["HOME"],
            "env": {"TZ": "UTC"},
            "required": True,
        }
    }
    settings = {s["key"]: s for s in here.run("mcp", "get", "time", "--json").json["settings"]}
    assert settings["args"]["value"] == ["-m", "x", "-v"]
    assert settings["args"]["from"] == str(here.home / "config.toml")
    assert settings["env"]["value"] == {"TZ": "********"}
    assert (settings["tool_timeout_sec"]["value"], settings["tool_timeout_sec"]["from"]) == (300.0, "default")
    assert here.run("mcp", "disable", "time").status == 0
    assert here.run("mcp", "list", "--json").json["servers"][0]["status"] == "disabled"
    assert here.run("mcp", "enable", "time").status == 0
    assert here.run("mcp", "remove", "time").status == 0
    assert here.run("mcp", "list", "--json").json["servers"] == []


def test_paths_that_are_typed_in_one_folder_hold_in_all(here: Shell) -> None:
    program = here.write("server", "#!/bin/sh\n")
    (here.folder / "data").mkdir()
    tool = here.write("data/tool", "#!/bin/sh\n")
    assert here.run("mcp", "add", "here", "--secret", "A=file:token", "--", "./server", "./server").status == 0
    assert here.run("mcp", "add", "there", "--cwd", "data", "--", "./tool").status == 0
    assert here.run("mcp", "add", "named", "--", "server").status == 0
    assert here.run("mcp", "add", "own", "-c", "own.toml", "--", "./server").status == 0
    assert config(here) == {
        "here": {
            "command": str(program),
            "args": ["./server"],
            "env": {"A": {"file": str(here.folder / "token")}},
        },
        "there": {"command": str(tool), "cwd": str(here.folder / "data")},
        "named": {"command": "server"},
    }
    assert 'command = "./server"' in (here.folder / "own.toml").read_text()


@requirement("CFG-4")
def test_secrets_are_written_as_references_and_shown_masked(here: Shell) -> None:
    done = here.run(
        "mcp", "add", "web", "--url", "https://h/mcp?key=abcd", "-H", "X-Token: abcdefgh",
        "--secret", "Authorization=env:AUTH", "--json",
    )  # fmt: skip
    assert done.status == 0
    assert "the value of X-Token stands in" in done.errors
    assert "the environment variable AUTH is not set" in done.errors
    assert config(here)["web"] == {
        "url": "https://h/mcp?key=abcd",
        "http_headers": {"X-Token": "abcdefgh", "Authorization": {"env": "AUTH"}},
    }
    shown = here.run("mcp", "get", "web")
    assert "abcd" not in done.output + done.errors + shown.output + shown.errors
    assert "(env AUTH)" in shown.output


@requirement("CFG-4")
@pytest.mark.parametrize(
    ("backend", "part"),
    [
        ("keyring.backends.fail.Keyring", "the keyring did not give github/token (NoKeyringError); unlock it or use"),
        ("keyring.backends.null.Keyring", "the keyring has no entry github/token; add it with: keyring set github"),
    ],
)
def test_a_keyring_that_is_locked_or_empty_stops_its_server_only(here: Shell, backend: str, part: str) -> None:
    command = ["mcp", "add", "a", "--secret", "T=keyring:github/token", "--", "x"]
    added = here.run(*command, PYTHON_KEYRING_BACKEND=backend)
    assert (added.status, added.errors.count("\n")) == (0, 2)
    assert part in added.errors
    listed = here.run("mcp", "list", "--json", PYTHON_KEYRING_BACKEND=backend).json["servers"][0]
    assert (listed["status"], part in listed["reason"]) == ("failed", True)


@requirement("CFG-3")
@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["a"], "give either --url URL or, after --, the command"),
        (["a", "--url", "https://h", "--", "x"], "give either --url URL or"),
        (["a b", "--", "x"], "may hold only letters, digits, _ and -"),
        (["a", "--url", "h"], "must be a complete URL"),
        (["a", "--url", "https://h", "-e", "A=b"], "cannot use --env with --url"),
        (["a", "-H", "A: b", "--", "x"], "cannot use --header for a command"),
        (["a", "--url", "https://h", "-H", "A"], "write it as 'Name: value'"),
        (["a", "--secret", "K=vault:x", "--", "x"], "NAME=keyring:SERVICE/NAME"),
        (["a", "-e", "=b", "--", "x"], "is no name of an environment variable"),
    ],
)
def test_what_cannot_be_added_is_said_in_one_sentence_and_nothing_is_written(
    here: Shell, arguments: list[str], part: str
) -> None:
    done = here.run("mcp", "add", *arguments)
    assert (done.status, done.output) == (2, "")
    assert part in done.errors
    assert done.errors.count("\n") == 1
    assert not here.home.exists()


def test_an_option_of_the_servers_command_is_pointed_to_its_place(here: Shell) -> None:
    done = here.run("mcp", "add", "a", "npx", "-y", "x")
    assert done.status == 2
    assert "write -- before that: interlock mcp add NAME -- COMMAND" in done.errors


def test_a_projects_file_is_edited_where_the_server_stands_and_stays_trusted(here: Shell) -> None:
    here.run("mcp", "add", "a", "--", "home")
    file = here.folder / ".interlock.toml"
    assert here.run("mcp", "add", "a", "-c", ".interlock.toml", "--", "project").status == 0
    settings = {s["key"]: s for s in here.run("mcp", "get", "a", "--json").json["settings"]}
    assert settings["command"] == {"key": "command", "value": "project", "from": str(file)}
    assert here.run("mcp", "disable", "a").status == 0
    assert tomllib.loads(file.read_text())["mcp_servers"]["a"]["enabled"] is False
    removed = here.run("mcp", "remove", "a")
    assert "config.toml [mcp_servers.a] has a server of this name, too; that one counts now" in removed.errors
    assert config(here) == {"a": {"command": "home"}}


def test_a_server_in_a_json_file_is_not_edited_and_the_way_out_is_named(here: Shell) -> None:
    file = here.write("x.json", '{"mcpServers": {"a": {"command": "x"}}}')
    done = here.run("mcp", "remove", "a", "-c", "x.json")
    assert done.status == 2
    assert "only TOML files are edited; take a out of it by hand" in done.errors
    assert 'write "disabled": true into a by hand' in here.run("mcp", "disable", "a", "-c", "x.json").errors
    assert file.read_text() == '{"mcpServers": {"a": {"command": "x"}}}'


# ---- import


def machine(shell: Shell) -> dict[str, str]:
    user, project = a_machine(shell.folder)
    for name in (".mcp.json", ".vscode"):
        shutil.move(project / name, shell.folder / name)
    return {"HOME": str(user)}


@requirement("CFG-2")
def test_without_a_choice_an_import_shows_what_there_is_and_changes_nothing(here: Shell) -> None:
    home = machine(here)
    done = here.run("mcp", "import", **home)
    assert done.status == 0
    for host in ("Claude Code (project)", "VS Code (workspace)", "Claude Desktop", "Codex"):
        assert host in done.output
    assert "cannot take over server 'tools' of" in done.errors
    assert "`interlock mcp import NAME...` or --all takes them over" in done.errors
    assert not here.home.exists()
    assert "ghp_" not in done.output + done.errors + here.run("mcp", "import", "--json", **home).output


def test_the_named_servers_are_taken_over_once(here: Shell) -> None:
    home = machine(here)
    done = here.run("mcp", "import", "sentry", "github-claude", **home)
    assert done.status == 0
    assert set(config(here)) == {"sentry", "github-claude"}
    assert "server 'sentry' cannot start yet" in done.errors
    assert "the value of GITHUB_PERSONAL_ACCESS_TOKEN stands in" in done.errors
    again = here.run("mcp", "import", "sentry", "--json", **home)
    states = {server["name"]: server["state"] for server in again.json["found"]}
    assert (states["sentry"], states["docs"], states["tools"]) == ("there_already", "new", "cannot_be_taken_over")
    assert again.json["taken_over"] == []
    (here.home / "config.toml").write_text("[mcp_servers.sentry]\ncommand = 'x'\n")
    refused = here.run("mcp", "import", "sentry", **home)
    assert refused.status == 1
    assert "--replace puts this one in its place" in refused.errors
    assert here.run("mcp", "import", "sentry", "--replace", **home).status == 0
    assert "url" in json.dumps(config(here)["sentry"])


def test_all_are_taken_over_and_what_cannot_be_is_named(here: Shell) -> None:
    done = here.run("mcp", "import", "--all", **machine(here))
    assert done.status == 1
    assert [done.errors.count(f"cannot take over server '{name}' of") for name in ("tools", "local", "docs")] == [
        1,
        1,
        0,
    ]
    assert {"context7", "docs", "perplexity", "Brave-Search"} < set(config(here))


@requirement("CFG-2", "CFG-3")
def test_bad_files_are_named_and_the_others_still_count(here: Shell) -> None:
    home = machine(here)
    here.write(".mcp.json", '{"mcpServers": {"a": {"command": "x" "args": []}}}')
    done = here.run("mcp", "import", **home)
    assert done.status == 0
    assert f"cannot read {here.folder}/.mcp.json:1:38: expecting ',' delimiter; correct that line" in done.errors
    assert "Codex" in done.output
    assert here.run("mcp", "import", "--from", ".mcp.json").status == 2
    assert "there is no such file" in here.run("mcp", "import", "--from", "absent.json").errors


def test_where_nothing_is_found_the_places_are_named(here: Shell) -> None:
    done = here.run("mcp", "import", HOME=str(here.folder))
    assert (done.status, done.output) == (0, "")
    assert "nothing was found; looked at" in done.errors
    assert "claude_desktop_config.json" in done.errors


@pytest.mark.parametrize("end", [signal.SIGINT, "\x04"], ids=["ctrl-c", "ctrl-d"])
def test_an_import_that_is_given_up_changes_nothing_and_says_nothing_odd(
    here: Shell, end: str | signal.Signals
) -> None:
    seen = here.run_at_terminal("mcp", "import", after=("nothing for none)", end), **machine(here))
    assert "broke inside" not in seen
    assert not (here.home / "config.toml").exists()


def test_at_a_terminal_an_import_asks(here: Shell) -> None:
    home = machine(here)
    seen = here.run_at_terminal("mcp", "import", typed="sentry, docs\n", **home)
    assert "Which ones?" in seen
    assert set(config(here)) == {"sentry", "docs"}
