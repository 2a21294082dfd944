"""Files as other hosts write them: loaded as they are, and taken over into tables of ours."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from interlock.configuration import load
from interlock.configuration.importing import Found, distinct, servers_of
from interlock.configuration.other_hosts import HostFile, usual_places
from interlock.configuration.server_tables import add_servers
from interlock.vocabulary.errors import InvalidRequest
from tests.manifest import requirement

HOSTS = Path(__file__).parent / "hosts"
VARIABLES = {"HOME": "/home/ada", "SENTRY_TOKEN": "s3ntry", "DEPLOY_ENV": "test", "TEAM": "a", "USER": "ada"}
INPUT = {"INTERLOCK_INPUT_PERPLEXITY_KEY": "p3rplexity", "FIGMA_OAUTH_TOKEN": "f1gma"}


def a_machine(folder: Path) -> tuple[Path, Path]:
    """A user's home and a project in which four hosts have left their files."""
    user, project = folder / "user", folder / "project"
    for source, place in {
        "claude_desktop_config.json": user / ".config/Claude/claude_desktop_config.json",
        "codex_config.toml": user / ".codex/config.toml",
        "vscode_mcp.json": project / ".vscode/mcp.json",
        "dot_mcp.json": project / ".mcp.json",
    }.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOSTS / source, place)
    return user, project


def found_on(folder: Path, environment: dict[str, str] = VARIABLES) -> dict[str, Found]:
    user, project = a_machine(folder)
    places = usual_places(project, environment, user=user, platform="linux")
    found = [server for place in places if place.file.is_file() for server in servers_of(place, environment)]
    return {server.name: server for server in distinct(tuple(found))}


@requirement("CFG-1", "CFG-2")
@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("claude_desktop_config.json", {"filesystem", "github", "Brave Search", "memory"}),
        ("vscode_mcp.json", {"github", "perplexity", "fetch", "local"}),
        ("dot_mcp.json", {"postgres", "sentry", "events", "tools", "docs"}),
        ("codex_config.toml", {"context7", "figma", "github", "playwright"}),
    ],
)
def test_a_real_looking_file_of_each_host_loads_as_it_is(file: str, names: set[str]) -> None:
    configuration = load(HOSTS / file, environment=VARIABLES | INPUT)
    assert set(configuration.servers) == names
    fatal = {problem.table.partition(".")[2] for problem in configuration.problems if problem.fatal}
    assert fatal == names & {"Brave Search", "local"}
    assert "s3ntry" not in repr(configuration)
    assert "ghp_" not in repr(configuration)


@requirement("CFG-2")
def test_the_files_of_four_hosts_are_found_side_by_side(tmp_path: Path) -> None:
    found = found_on(tmp_path)
    assert {name: server.host.key for name, server in found.items()} == {
        "postgres": "project",
        "sentry": "project",
        "events": "project",
        "tools": "project",
        "docs": "project",
        "github": "workspace",
        "perplexity": "workspace",
        "fetch": "workspace",
        "local": "workspace",
        "filesystem": "claude",
        "github-claude": "claude",
        "Brave-Search": "claude",
        "memory": "claude",
        "context7": "codex",
        "figma": "codex",
        "github-codex": "codex",
        "playwright": "codex",
    }


@requirement("CFG-4")
def test_what_is_taken_over_names_variables_and_never_holds_their_values(tmp_path: Path) -> None:
    found = found_on(tmp_path)
    assert found["sentry"].table == {
        "url": "https://mcp.sentry.dev/mcp",
        "bearer_token_env_var": "SENTRY_TOKEN",
        "http_headers": {"X-Environment": {"env": "DEPLOY_ENV"}},
    }
    assert found["perplexity"].table == {
        "command": "npx",
        "args": ["-y", "server-perplexity-ask", "--region", "eu"],
        "env": {"PERPLEXITY_API_KEY": {"env": "INTERLOCK_INPUT_PERPLEXITY_KEY"}},
    }
    assert "s3ntry" not in repr(found)


@pytest.mark.parametrize(
    ("declared", "value", "table"),
    [
        ({"password": True}, "Bearer ${input:gh-token}", {"bearer_token_env_var": "INTERLOCK_INPUT_GH_TOKEN"}),
        (
            {"default": "x", "password": True},
            "Bearer ${input:gh-token}",
            {"bearer_token_env_var": "INTERLOCK_INPUT_GH_TOKEN"},
        ),
        ({"default": "x"}, "Bearer ${input:gh-token}", None),
        ({}, "Bearer ${input:other}", None),
        ({}, "Bearer ${env:TOKEN}", {"bearer_token_env_var": "TOKEN"}),
        ({}, "Bearer ${TOKEN:-x}", None),
    ],
)
def test_a_bearer_token_that_is_asked_for_becomes_a_variable(
    tmp_path: Path, declared: dict[str, Any], value: str, table: dict[str, Any] | None
) -> None:
    url = "https://api.example.org/mcp/"
    file = tmp_path / "mcp.json"
    server = {"type": "http", "url": url, "headers": {"Authorization": value}}
    document = {
        "inputs": [{"id": "gh-token", "type": "promptString", **declared}],
        "servers": {"github": server},
    }
    file.write_text(json.dumps(document))
    (found,) = servers_of(HostFile(host="VS Code", key="vscode", file=file), {})
    assert found.table == (None if table is None else {"url": url, **table})


def test_what_is_taken_over_starts_where_it_started_there(tmp_path: Path) -> None:
    found = found_on(tmp_path)
    project = str(tmp_path / "project")
    docs = {"command": "./scripts/docs-server", "args": ["--root", "/home/ada/docs"], "cwd": project}
    assert found["docs"].table == docs
    assert (found["fetch"].table or {})["command"] == f"{project}/.venv/bin/mcp-server-fetch"
    assert (found["events"].table or {})["legacy_sse"] is True
    assert (found["memory"].table or {})["enabled"] is False


@requirement("CFG-3")
def test_what_has_no_translation_is_said(tmp_path: Path) -> None:
    found = found_on(tmp_path)
    assert found["tools"].table is None
    assert "`args[3]`: mixes text with ${TEAM}" in (found["tools"].problem or "")
    assert "`envFile`: a file of variables cannot be read here" in (found["local"].problem or "")
    notes = {name: " ".join(server.notes) for name, server in found.items()}
    assert "`args[3]`: is always the default; the variable DATABASE_URL is not looked at" in notes["postgres"]
    assert "set the variable INTERLOCK_INPUT_PERPLEXITY_KEY" in notes["perplexity"]
    assert "`autoApprove`: approval is not taken from here" in notes["memory"]
    assert "is named Brave-Search here" in notes["Brave-Search"]
    assert "has another github" in notes["github-claude"]
    assert "`environment_id`: this key of Codex has no effect here" in notes["playwright"]


def test_a_variable_that_is_set_wins_over_its_default(tmp_path: Path) -> None:
    postgres = found_on(tmp_path, VARIABLES | {"DATABASE_URL": "postgres://secret@h/x"})["postgres"]
    assert (postgres.table or {})["args"][-1] == {"env": "DATABASE_URL"}
    assert "secret" not in repr(postgres)


def test_everything_that_was_taken_over_loads_without_a_problem(tmp_path: Path) -> None:
    found = found_on(tmp_path)
    file = tmp_path / "home" / "config.toml"
    add_servers(file, {name: server.table for name, server in found.items() if server.table is not None})
    configuration = load(file, environment=VARIABLES | INPUT | {"GITHUB_PERSONAL_ACCESS_TOKEN": "t"})
    assert configuration.problems == ()
    assert len(configuration.servers) == len(found) - 2


def test_an_equal_server_in_two_files_is_found_once(tmp_path: Path) -> None:
    user, project = a_machine(tmp_path)
    shutil.copy(project / ".mcp.json", user / ".claude.json")
    places = usual_places(project, VARIABLES, user=user, platform="linux")
    found = [server for place in places if place.file.is_file() for server in servers_of(place, VARIABLES)]
    names = [server.name for server in distinct(tuple(found))]
    assert names.count("sentry") == 1
    assert "docs-claude-code" in names  # another folder than the project's


def test_servers_of_one_project_in_a_file_of_all_projects_are_found(tmp_path: Path) -> None:
    project = tmp_path / "project"
    projects = {str(project): {"mcpServers": {"a": {"command": "./x"}}}, "/b": {"mcpServers": {}}}
    (tmp_path / ".claude.json").write_text(json.dumps({"numStartups": 9, "projects": projects}))
    places = usual_places(project, {}, user=tmp_path, platform="darwin")
    found = [server for place in places if place.file.is_file() for server in servers_of(place, {})]
    assert [(server.name, server.table) for server in found] == [("a", {"command": "./x", "cwd": str(project)})]


@pytest.mark.parametrize("text", ["{", '{"mcpServers": }', "[]"])
def test_a_malformed_file_is_named_with_its_place(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)
    with pytest.raises(InvalidRequest, match=r"cannot read .*mcp.json:1:\d+: "):
        servers_of(HostFile(host="x", key="x", file=file), os.environ)


def test_a_file_of_our_own_keeps_its_references_from_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text('[mcp_servers.a]\ncommand = "x"\nenv.T = { file = "token" }\n[mcp_servers.b]\nbearer_token = "x"\n')
    a, b = servers_of(HostFile(host="x", key="x", file=file), {})
    assert a.table == {"command": "x", "env": {"T": {"file": str(tmp_path / "token")}}}
    assert (b.table, "belong into a file" in (b.problem or "")) == (None, True)
