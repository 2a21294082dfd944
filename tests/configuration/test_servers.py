"""What one server's table may say, and what happens when it says something else."""

from pathlib import Path

import pytest

from interlock.configuration import Configuration, load
from interlock.vocabulary.server import HttpTransport, StdioTransport
from tests.manifest import requirement

CANARY = "c4nary-value"


def read(folder: Path, text: str, **environment: str) -> Configuration:
    file = folder / "c.toml"
    file.write_text(text, encoding="utf-8")
    return load(file, environment=environment)


@requirement("CFG-3")
@pytest.mark.parametrize(
    ("table", "key", "part"),
    [
        ('command = "x"\nurl = "http://h"', "url", "belongs to HTTP servers"),
        ('command = "x"\nhttp_headers = { A = "b" }', "http_headers", "belongs to HTTP servers"),
        ('command = "x"\nbearer_token_env_var = "T"', "bearer_token_env_var", "belongs to HTTP servers"),
        ('url = "http://h"\nargs = []', "args", "belongs to stdio servers"),
        ('url = "http://h"\ncwd = "/"', "cwd", "belongs to stdio servers"),
        ('url = "http://h"\nenv = { A = "b" }', "env", "belongs to stdio servers"),
        ('args = ["x"]', None, "needs `command` (a stdio server) or `url`"),
        ('url = "http://h"\nbearer_token = "c4nary-value"', "bearer_token", 'write bearer_token_env_var = "NAME"'),
        ('url = "c4nary-value"', "url", "must be a complete URL"),
        ('url = "http://h:c4nary-value/"', "url", "must be a complete URL"),
        ('url = "http://h"\nbearer_token_env_var = "T"', "bearer_token_env_var", "variable T is not set"),
        ('url = "http://h"\nhttp_headers = { "a b" = "c4nary-value" }', "http_headers.a b", "no name of an HTTP"),
        ('url = "http://h"\nhttp_headers = { A = "c4nary-value\\n" }', "http_headers.A", "line break"),
        ('command = ""', "command", "must not be blank"),
        ("command = 5", "command", "must be a text, or { env = "),
        ('command = "x"\nargs = ["c4nary-value", 1]', "args[1]", "must be a text"),
        ('command = "x"\nargs = "c4nary-value"', "args", "must be a list"),
        ('command = "x"\nenv = { A = { env = "T" } }', "env.A", "variable T is not set; set it"),
        ('command = "x"\nenv = { A = { file = "gone" } }', "env.A", "cannot be read"),
        ('command = "x"\nenv = { A = { keyring = "gone" } }', "env.A", 'write keyring = "service/name"'),
        ('command = "x"\nenv = { A = { envv = "T" } }', "env.A", "must be a text, or { env = "),
        ('command = "x"\nenv = { "A=B" = "c4nary-value" }', "env.A=B", "no name of an environment variable"),
        ('command = "x"\nenv_vars = [{ name = "A", source = "moon" }]', "env_vars[0].source", "must be 'local' or"),
        ('command = "x"\ntool_timeout_sec = 0', "tool_timeout_sec", "must be greater than 0"),
        ('command = "x"\nstartup_timeout_sec = nan', "startup_timeout_sec", "must be"),
        ('command = "x"\nenabled = "yes"', "enabled", "must be true or false"),
        ('command = "x"\nprotocol = "2025"', "protocol", 'must be "auto" or one of 2024-11-05'),
        ('command = "x"\nrestart = "never ever"', "restart", "must be 'always' or 'never'"),
        ('command = "x"\nline_limit = 2000000000', "line_limit", "must be less than or equal to"),
        ('command = "x"\ndefault_tools_approval_mode = "yolo"', "default_tools_approval_mode", "must be 'auto'"),
        ('command = "x"\ntools = { t = { approval_mode = "yolo" } }', "tools.t.approval_mode", "must be 'auto'"),
    ],
)
def test_a_wrong_table_stops_only_its_server(tmp_path: Path, table: str, key: str | None, part: str) -> None:
    configuration = read(tmp_path, f'[mcp_servers.good]\ncommand = "x"\n[mcp_servers.bad]\n{table}\n')

    assert configuration.servers["good"].problem is None
    fatal = [problem for problem in configuration.problems if problem.fatal]
    assert [(problem.table, problem.key) for problem in fatal] == [("mcp_servers.bad", key)]
    assert part in fatal[0].sentence
    assert configuration.servers["bad"].problem == str(fatal[0])
    assert str(tmp_path / "c.toml") in str(fatal[0])
    assert CANARY not in repr(configuration)


@requirement("CFG-3")
@pytest.mark.parametrize("name", ["bad name", "bäd", "a.b", "", "a/b", "x\\u001b[31m"])
def test_a_bad_name_is_reported_and_the_others_stay(tmp_path: Path, name: str) -> None:
    configuration = read(tmp_path, f'[mcp_servers.good]\ncommand = "x"\n[mcp_servers."{name}"]\ncommand = "x"')
    assert configuration.servers["good"].problem is None
    assert len(configuration.servers) == 2
    (problem,) = configuration.problems
    assert "may hold only letters, digits, _ and -" in problem.sentence
    assert str(problem).isprintable()


def test_everything_wrong_with_a_table_is_said_at_once(tmp_path: Path) -> None:
    problem = read(tmp_path, '[mcp_servers.a]\ncommand = 5\nenabled = "x"\nargs = 1').servers["a"].problem
    assert problem is not None
    assert all(f"`{key}`" in problem for key in ("command", "enabled", "args"))


@requirement("CFG-3")
def test_what_is_forwarded_but_unset_is_reported_and_left_out(tmp_path: Path) -> None:
    text = (
        '[mcp_servers.a]\ncommand = "x"\nenv_vars = ["GONE", "HERE"]\n'
        '[mcp_servers.b]\nurl = "http://h"\nenv_http_headers = { X = "GONE" }'
    )
    configuration = read(tmp_path, text, HERE="yes")
    a, b = (configuration.servers[name] for name in "ab")
    assert isinstance(a.transport, StdioTransport)
    assert isinstance(b.transport, HttpTransport)
    assert list(a.transport.env) == ["HERE"]
    assert b.transport.headers == {}
    assert (a.problem, b.problem) == (None, None)
    assert [problem.key for problem in configuration.problems] == ["env_vars[0]", "env_http_headers.X"]


def test_a_required_server_stays_required_when_its_table_is_wrong(tmp_path: Path) -> None:
    server = read(tmp_path, "[mcp_servers.a]\nrequired = true\ncommand = 5").servers["a"]
    assert server.required
    assert server.problem is not None


def test_a_server_that_is_switched_off_has_no_missing_values(tmp_path: Path) -> None:
    text = '[mcp_servers.a]\nenabled = false\nurl = "http://h"\nbearer_token_env_var = "GONE"'
    configuration = read(tmp_path, text)
    assert configuration.servers["a"].enabled is False
    assert configuration.servers["a"].problem is None
    assert configuration.problems == ()


def test_keys_that_only_codex_has_are_named(tmp_path: Path) -> None:
    text = '[mcp_servers.a]\nurl = "http://h"\nhttp_headers_helper = "x"\nname = "A"'
    (problem,) = read(tmp_path, text).problems
    assert (problem.key, problem.fatal) == ("http_headers_helper", False)


def test_only_codex_apps_grants_origins_and_is_gated_by_default(tmp_path: Path) -> None:
    text = '[mcp_servers.codex_apps]\ncommand = "x"\n[mcp_servers.a]\ncommand = "x"\n[mcp_servers.b]\ncommand = "x"\n'
    servers = read(tmp_path, text + "grants_origins = true\ngated = true").servers
    assert [(name, s.grants_origins, s.gated) for name, s in servers.items()] == [
        ("a", False, False),
        ("b", True, True),
        ("codex_apps", True, True),
    ]


def test_our_own_keys_are_read(tmp_path: Path) -> None:
    text = (
        '[mcp_servers.a]\ncommand = "x"\nprotocol = "2025-11-25"\non_bad_tool = "skip"\nrestart = "never"\n'
        "line_limit = 1048576\nshared = false\n"
    )
    server = read(tmp_path, text).servers["a"]
    assert (server.protocol, server.on_bad_tool, server.restart) == ("2025-11-25", "skip", "never")
    assert (server.line_limit, server.shared) == (1048576, False)


def test_an_explicit_variable_replaces_a_forwarded_one(tmp_path: Path) -> None:
    text = '[mcp_servers.a]\ncommand = "x"\nenv_vars = ["A"]\nenv = { A = "mine" }'
    transport = read(tmp_path, text, A="theirs").servers["a"].transport
    assert isinstance(transport, StdioTransport)
    assert transport.env["A"].reveal() == "mine"
