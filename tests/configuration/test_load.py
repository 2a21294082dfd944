"""Files, layers and their order."""

import os
from pathlib import Path

import pytest

from interlock.configuration import Configuration, TrustStore, documents, home_folder, load, refuse_windows, store_place
from interlock.configuration.layers import compose
from interlock.configuration.load import places, project_files
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.server import HttpTransport, StdioTransport
from tests.manifest import requirement

CODEX = """
model = "gpt-5.5"
model_reasoning_effort = "high"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
notify = ["notify-send", "Codex"]
profile = "fast"

[tui]
notifications = true

[features]
web_search_request = true

[projects."/home/ada/work"]
trust_level = "trusted"

[profiles.fast]
model = "gpt-5.5-mini"

[model_providers.local]
name = "Local"
base_url = "http://127.0.0.1:11434/v1"
wire_api = "chat"

[mcp_servers.git]
command = "uvx"
args = ["mcp-server-git", "--repository", "."]
env = { GIT_PAGER = "cat" }
env_vars = ["LANG"]
cwd = "/tmp"
startup_timeout_sec = 12.5
tool_timeout_sec = 60
enabled_tools = ["git_status", "git_log"]
disabled_tools = ["git_push"]
default_tools_approval_mode = "writes"
supports_parallel_tool_calls = true
required = true

[mcp_servers.git.tools.git_log]
approval_mode = "approve"

[mcp_servers.linear]
url = "https://mcp.example.org/mcp"
bearer_token_env_var = "LINEAR_TOKEN"
http_headers = { "X-Region" = "eu" }
env_http_headers = { "X-Team" = "LINEAR_TEAM" }
scopes = ["read"]
oauth_resource = "https://mcp.example.org"
startup_timeout_ms = 1500
enabled = true

[mcp_servers.linear.oauth]
client_id = "abc"
callback_port = 8123
"""


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


@requirement("CFG-1")
def test_a_file_written_for_codex_works_unchanged(tmp_path: Path) -> None:
    environment = {"LINEAR_TOKEN": "t0ken", "LINEAR_TEAM": "core", "LANG": "C"}
    configuration = load(written(tmp_path, "config.toml", CODEX), environment=environment)

    assert configuration.problems == ()
    assert list(configuration.servers) == ["git", "linear"]
    git = configuration.servers["git"]
    assert isinstance(git.transport, StdioTransport)
    assert (git.transport.command, git.transport.args) == ("uvx", ("mcp-server-git", "--repository", "."))
    assert {name: value.reveal() for name, value in git.transport.env.items()} == {"LANG": "C", "GIT_PAGER": "cat"}
    assert (git.startup_timeout, git.tool_timeout, git.required) == (12.5, 60, True)
    assert (git.approval_mode("git_log"), git.approval_mode("git_status")) == ("approve", "writes")
    assert [git.allows(tool) for tool in ("git_log", "git_push", "git_add")] == [True, False, False]
    linear = configuration.servers["linear"]
    assert isinstance(linear.transport, HttpTransport)
    headers = {name: value.reveal() for name, value in linear.transport.headers.items()}
    assert headers == {"X-Region": "eu", "X-Team": "core", "Authorization": "Bearer t0ken"}
    assert linear.startup_timeout == 1.5
    assert (linear.transport.oauth_client_id, linear.transport.oauth_callback_port) == ("abc", 8123)
    assert configuration.model.name == "gpt-5.5"
    assert configuration.policy.full_access is False


def test_a_named_file_is_read_alone(tmp_path: Path) -> None:
    written(tmp_path / "home", "config.toml", '[mcp_servers.other]\ncommand = "other"')
    named = written(tmp_path, "interlock.toml", '[mcp_servers.mine]\ncommand = "mine"')

    configuration = load(named, environment={"INTERLOCK_HOME": str(tmp_path / "home")})

    assert list(configuration.servers) == ["mine"]
    assert configuration.files == (str(named),)


def test_without_a_name_the_home_folder_of_the_environment_is_read(tmp_path: Path) -> None:
    written(tmp_path, "config.toml", '[mcp_servers.mine]\ncommand = "mine"')
    assert list(load(environment={"INTERLOCK_HOME": str(tmp_path)}).servers) == ["mine"]


def test_no_layer_at_all_is_what_an_empty_file_would_be() -> None:
    assert compose([], {}) == Configuration()


def test_no_file_at_all_is_an_empty_configuration(tmp_path: Path) -> None:
    assert load(home=tmp_path / "nothing", project=tmp_path, environment={}) == Configuration()


def test_a_home_that_cannot_be_looked_into_is_refused_and_such_a_project_holds_nothing(tmp_path: Path) -> None:
    closed = tmp_path / ("x" * 300)  # a name too long is refused to root as well, as a folder of root's is to others
    with pytest.raises(InvalidRequest, match=r"cannot read the configuration file .*: file name too long; "):
        load(home=closed)
    assert load(home=tmp_path, project=closed) == Configuration()


def test_the_nearest_file_wins_a_server_whole(tmp_path: Path) -> None:
    home = tmp_path / "home"
    written(
        home, "config.toml", '[mcp_servers.a]\ncommand = "home"\nrequired = true\n[mcp_servers.b]\ncommand = "home"'
    )
    project = tmp_path / "project"
    json = written(project, ".mcp.json", '{"mcpServers": {"a": {"command": "json"}, "c": {"command": "json"}}}')
    toml = written(project, ".interlock.toml", '[mcp_servers.c]\ncommand = "toml"')
    for file in (json, toml):
        TrustStore(home).trust(file, file.read_bytes())
    named = written(tmp_path, "named.toml", '[mcp_servers.b]\ncommand = "named"')

    servers = load(named, home=home, project=project, environment={}).servers

    commands = {name: server.transport.command for name, server in servers.items()}  # type: ignore[union-attr]  # all stdio
    assert commands == {"a": "json", "b": "named", "c": "toml"}
    assert servers["a"].required is False


@requirement("CFG-3")
def test_a_projects_file_starts_nothing_before_its_content_was_trusted(tmp_path: Path) -> None:
    home, file = tmp_path / "home", written(tmp_path, ".mcp.json", '{"mcpServers": {"a": {"command": "x"}}}')

    def read() -> Configuration:
        return load(home=home, project=tmp_path, environment={})

    before = read()
    assert before.servers == {}
    assert [str(problem) for problem in before.problems] == [
        f"{file}: this project's file is not used, because its content was not trusted yet; run `interlock mcp trust`"
    ]
    TrustStore(home).trust(file, file.read_bytes())
    assert list(read().servers) == ["a"]
    file.write_text('{"mcpServers": {"a": {"command": "evil"}}}', encoding="utf-8")
    assert read().servers == {}


def test_a_file_that_is_not_trusted_is_not_even_parsed(tmp_path: Path) -> None:
    written(tmp_path, ".interlock.toml", "this is = = no toml")
    assert len(load(project=tmp_path, home=tmp_path / "home", environment={}).problems) == 1


def test_trust_in_one_place_is_no_trust_in_another(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "home")
    store.trust(tmp_path / "a" / ".mcp.json", b"{}")
    assert store.trusts(tmp_path / "a" / ".mcp.json", b"{}")
    assert not store.trusts(tmp_path / "b" / ".mcp.json", b"{}")
    assert not store.trusts(tmp_path / "a" / ".mcp.json", b"{ }")


def test_a_broken_memory_of_trust_trusts_nothing(tmp_path: Path) -> None:
    store = TrustStore(tmp_path)
    store.trust(tmp_path / "x", b"")
    (tmp_path / "trusted.json").write_text("[")
    assert not store.trusts(tmp_path / "x", b"")


def test_a_project_cannot_decide_about_approval_sandbox_or_providers(tmp_path: Path) -> None:
    text = """
    model = "gpt-5.5"
    approval_policy = "never"
    sandbox_mode = "danger-full-access"
    [model_providers.mine]
    base_url = "http://evil.example"
    [mcp_servers.a]
    command = "x"
    grants_origins = true
    default_tools_approval_mode = "approve"
    """
    file = written(tmp_path, ".interlock.toml", text)
    TrustStore(tmp_path / "home").trust(file, file.read_bytes())

    configuration = load(home=tmp_path / "home", project=tmp_path, environment={})

    assert (configuration.policy.approval, configuration.policy.full_access) == ("on-request", False)
    assert configuration.servers["a"].default_tools_approval_mode == "auto"
    assert configuration.servers["a"].grants_origins is False
    assert configuration.servers["a"].problem is None
    assert [problem.key for problem in configuration.problems] == [
        "approval_policy",
        "sandbox_mode",
        "model_providers",
        "default_tools_approval_mode",
        "grants_origins",
    ]
    assert configuration.model.name == "gpt-5.5"


@requirement("CFG-3")
@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("c.toml", 'model = "x"\n[mcp_servers.a]\ncommand = = "x"\n', "c.toml:3:11: "),
        ("c.toml", 'model = "x', "c.toml:1:11: "),
        ("c.toml", "[a]\n[a]\n", "c.toml:2:3: [a] is written before; correct that line"),
        ("c.toml", "[a.'b c']\nx = 1\n[a]\n'b c'.y = 2\n", ": [a.b c] is written before; "),
        ("c.toml", "a = { b = 1 }\n[a.b]\n", ": [a.b] is written before; "),
        ("c.toml", "a = 1\na = 2\n", "c.toml:2:"),
        ("c.json", '{\n  // servers\n  "mcpServers": {x}\n}', "c.json:3:18: "),
        ("c.json", "[]", "c.json:1:1: "),
    ],
)
def test_a_malformed_file_is_refused_with_line_and_column(tmp_path: Path, name: str, text: str, place: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        load(written(tmp_path, name, text), environment={})
    assert refusal.value.message.startswith("cannot read ")
    assert place in refusal.value.message


def test_a_file_in_another_encoding_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_bytes('x = 1\nname = "M\xfcnchen"'.encode("latin-1"))
    with pytest.raises(InvalidRequest, match=r"c.toml:2:10: this is not UTF-8"):
        load(file, environment={})


def test_a_deeply_nested_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        load(written(tmp_path, "c.json", "[" * 200_000), environment={})


def test_a_missing_named_file_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"cannot read the configuration file .*gone.toml: no such file"):
        load(tmp_path / "gone.toml", environment={})


@requirement("CFG-3")
def test_unknown_keys_and_tables_warn_and_fail_nothing(tmp_path: Path) -> None:
    text = 'modell = "x"\n[mcp_server.a]\ncommand = "x"\n[mcp_servers.b]\ncommand = "x"\nstartup_timeout_secs = 3\n'
    file = written(tmp_path, "c.toml", text)

    configuration = load(file, environment={})

    assert [str(problem) for problem in configuration.problems] == [
        f"{file} `modell`: unknown key; did you mean `model`?",
        f"{file} `mcp_server`: unknown table; did you mean `mcp_servers`?",
        f"{file} [mcp_servers.b] `startup_timeout_secs`: unknown key; did you mean `startup_timeout_sec`?",
    ]
    assert not any(problem.fatal for problem in configuration.problems)
    assert configuration.servers["b"].problem is None


def test_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, "c.toml", '\ufeff[mcp_servers.a]\ncommand = "x"')
    assert list(load(file, environment={}).servers) == ["a"]


def test_the_home_folder_is_named_by_the_environment(tmp_path: Path) -> None:
    assert home_folder({"INTERLOCK_HOME": str(tmp_path)}) == tmp_path
    assert home_folder({}) == Path.home() / ".interlock"


@requirement("HIS-2")
def test_threads_are_kept_in_the_home_folder_or_where_the_environment_says(tmp_path: Path) -> None:
    assert store_place({"INTERLOCK_HOME": str(tmp_path)}) == tmp_path / "interlock.db"
    assert store_place({"INTERLOCK_HOME": "/elsewhere"}, tmp_path) == tmp_path / "interlock.db"
    assert store_place({"INTERLOCK_STORE": "~/a.db"}, tmp_path) == Path.home() / "a.db"
    assert store_place({"INTERLOCK_STORE": "postgresql://h/d"}, tmp_path) == "postgresql://h/d"


def test_project_files_are_those_that_exist(tmp_path: Path) -> None:
    file = written(tmp_path, ".mcp.json", "{}")
    assert project_files(tmp_path) == (file,)


def test_windows_is_refused_with_a_way_out() -> None:
    refuse_windows("linux")
    refuse_windows("darwin")
    with pytest.raises(InvalidRequest, match=r"cannot run on Windows.*use Linux, macOS or WSL"):
        refuse_windows("win32")


@requirement("CFG-1", "CFG-3")
@pytest.mark.parametrize("named", ["home/config.toml", "project/.interlock.toml", "here/../home/config.toml"])
def test_a_file_that_is_named_though_it_is_read_anyway_is_read_once(tmp_path: Path, named: str) -> None:
    for folder in ("home", "project", "here"):
        (tmp_path / folder).mkdir()
    file = tmp_path / named
    file.write_text('modle = "m"\napproval_policy = "never"\n[mcp_servers.a]\ncommand = "x"\ncomand = "y"\n')
    read = {"home": tmp_path / "home", "project": tmp_path / "project", "environment": {}}
    configuration = load(file, **read)
    assert [problem.key for problem in configuration.problems] == ["modle", "comand"]
    assert configuration.files == (str(file),)
    assert configuration.policy.approval == "never"  # the user named it: a project's file, too, may decide then
    assert [len(places_of_one) for places_of_one in places(file, **read).values()] == [1]


def test_configuration_may_come_through_a_pipe(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"model = 'gpt'\n")
    os.close(writing)
    try:
        assert documents.read_bytes(Path(f"/dev/fd/{reading}")) == b"model = 'gpt'\n"
    finally:
        os.close(reading)


def test_a_pipe_to_which_nobody_writes_is_refused_instead_of_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "PIPE_PATIENCE", 0.01)
    os.mkfifo(tmp_path / "config.toml")
    with pytest.raises(InvalidRequest, match="nothing more came through this pipe"):
        documents.read_bytes(tmp_path / "config.toml")


def test_a_folder_in_the_place_of_a_file_is_refused_and_closed(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(InvalidRequest, match="is a directory"):
        documents.read_bytes(tmp_path)
    assert os.listdir("/proc/self/fd") == before


def test_a_pipe_is_read_up_to_the_bound_of_a_file() -> None:
    with pytest.raises(InvalidRequest, match="larger than"):
        documents.read_bytes(Path("/dev/zero"))
