"""Other programs' JSON files."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.configuration import Configuration, load
from interlock.vocabulary.secret import reveal
from interlock.vocabulary.server import HttpTransport, StdioTransport
from tests.manifest import requirement


def read(folder: Path, document: str | dict[str, Any], name: str = ".mcp.json", **environment: str) -> Configuration:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return load(file, environment=environment)


def stdio(configuration: Configuration, name: str) -> StdioTransport:
    transport = configuration.servers[name].transport
    assert isinstance(transport, StdioTransport)
    return transport


CLAUDE = """\ufeff{
  // servers of this project
  "mcpServers": {
    "files": {
      "type": "stdio",
      "command": "${TOOLS:-/usr/bin}/files", /* with a default */
      "args": ["--root", "${HOME}/work", "// no comment", "a, ]"],
      "env": {"TOKEN": "${TOKEN}", "PORT": 8080, "DEBUG": false, "NONE": null},
    },
    "web": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
    "old": {"type": "sse", "url": "https://h/sse"},
    "off": {"command": "x", "args": ["${GONE}"], "disabled": true}, // trailing comma next
  },
}
"""


@requirement("CFG-2")
def test_a_file_of_claude_loads_with_comments_defaults_and_variables(tmp_path: Path) -> None:
    configuration = read(tmp_path, CLAUDE, HOME="/home/ada", TOKEN="t0ken")

    assert configuration.problems == ()
    files = stdio(configuration, "files")
    assert [reveal(text) for text in (files.command, *files.args)] == [
        "/usr/bin/files",
        "--root",
        "/home/ada/work",
        "// no comment",
        "a, ]",
    ]
    assert {name: v.reveal() for name, v in files.env.items()} == {"TOKEN": "t0ken", "PORT": "8080", "DEBUG": "false"}
    web, old = configuration.servers["web"].transport, configuration.servers["old"].transport
    assert isinstance(web, HttpTransport)
    assert isinstance(old, HttpTransport)
    assert web.headers["Authorization"].reveal() == "Bearer t0ken"
    assert (web.legacy_sse, old.legacy_sse) == (None, True)
    assert configuration.servers["off"].enabled is False
    assert "t0ken" not in repr(configuration)


@requirement("CFG-2")
def test_a_file_of_vs_code_loads_with_places_and_inputs(tmp_path: Path) -> None:
    document = {
        "inputs": [
            {"type": "promptString", "id": "api-key", "password": True},
            {"type": "promptString", "id": "region", "default": "eu"},
        ],
        "servers": {
            "a": {
                "command": "${workspaceFolder}/bin/${workspaceFolderBasename}",
                "args": ["${env:REGION}", "${input:region}"],
                "env": {"KEY": "${input:api-key}"},
            }
        },
    }
    configuration = read(tmp_path, document, ".vscode/mcp.json", REGION="north", INTERLOCK_INPUT_API_KEY="k3y")
    a = stdio(configuration, "a")
    assert configuration.problems == ()
    assert [reveal(text) for text in (a.command, *a.args)] == [f"{tmp_path}/bin/{tmp_path.name}", "north", "eu"]
    assert a.env["KEY"].reveal() == "k3y"


@requirement("CFG-2", "CFG-3")
@pytest.mark.parametrize(
    ("entry", "key", "part"),
    [
        ({"command": "x", "args": ["${GONE}"]}, "args[0]", "variable GONE is not set; set it, or write ${GONE:-"),
        ({"command": "x", "env": {"A": "${env:GONE}"}}, "env.A", "variable GONE is not set"),
        ({"command": "x", "env": {"A": "${input:key}"}}, "env.A", "set the environment variable INTERLOCK_INPUT_KEY"),
        ({"command": "x", "args": ["${config:a.b}"]}, "args[0]", "${config:a.b} has no meaning here"),
        ({"command": "x", "args": ["${command:pick}"]}, "args[0]", "has no meaning here"),
        ({"command": "x", "envFile": "${workspaceFolder}/.env"}, "envFile", "write the variables into `env`"),
        ({"type": "ws", "url": "ws://h"}, "type", 'use "stdio", "http" or "sse"'),
        ({"url": "http://h", "args": ["x"]}, "args", "belongs to stdio servers"),
        ({"command": ["x"]}, "command", "must be a text"),
        ("x", None, "must be a table"),
    ],
)
def test_what_has_no_translation_stops_only_its_server(tmp_path: Path, entry: Any, key: str | None, part: str) -> None:
    document = {"inputs": [{"id": "key"}], "servers": {"good": {"command": "x"}, "bad": entry}}
    configuration = read(tmp_path, document)
    assert configuration.servers["good"].problem is None
    (problem,) = [problem for problem in configuration.problems if problem.fatal]
    assert (problem.table, problem.key) == ("servers.bad", key)
    assert part in problem.sentence
    assert configuration.servers["bad"].problem == str(problem)


@requirement("CFG-3")
def test_unknown_keys_of_json_files_warn(tmp_path: Path) -> None:
    document = {"globalShortcut": "x", "mcpServers": {"a": {"command": "x", "alwaysAllow": ["t"], "colour": 1}}}
    configuration = read(tmp_path, document)
    assert [(problem.table, problem.key) for problem in configuration.problems] == [
        ("", "globalShortcut"),
        ("mcpServers.a", "alwaysAllow"),
        ("mcpServers.a", "colour"),
    ]
    assert configuration.servers["a"].problem is None


def test_a_server_that_a_file_has_twice_is_told_of(tmp_path: Path) -> None:
    twice = '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "z"}, "a": {"command": "y"}}}'
    configuration = read(tmp_path, twice)
    assert stdio(configuration, "a").command == "y"
    (problem,) = configuration.problems
    assert (problem.key, problem.fatal) == ("mcpServers.a", False)
    assert "is written more than once" in problem.sentence


def test_a_json_file_without_servers_says_so(tmp_path: Path) -> None:
    (problem,) = read(tmp_path, "{}").problems
    assert "holds no servers" in problem.sentence


def test_an_empty_variable_takes_the_default_as_in_a_shell(tmp_path: Path) -> None:
    document = {"mcpServers": {"a": {"command": "${A:-d}", "args": ["${A}x"]}}}
    a = stdio(read(tmp_path, document, A=""), "a")
    assert [reveal(text) for text in (a.command, *a.args)] == ["d", "x"]


def test_hostile_comments_do_not_take_long(tmp_path: Path) -> None:
    text = '{"mcpServers": {"a": {"command": "x",' + "//" * 50_000 + '\n"args": []}}}'
    assert list(read(tmp_path, text).servers) == ["a"]
