"""Policy, model and providers."""

from pathlib import Path

import pytest

from interlock.configuration import Configuration, load
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.policy import AppPolicy
from tests.manifest import requirement


def read(folder: Path, text: str, **environment: str) -> Configuration:
    file = folder / "c.toml"
    file.write_text(text, encoding="utf-8")
    return load(file, environment=environment)


@pytest.mark.parametrize(
    ("value", "approval", "elicitations"),
    [
        ('"on-request"', "on-request", True),
        ('"untrusted"', "on-request", True),
        ('"never"', "never", True),
        ("{ granular = { mcp_elicitations = false, rules = true } }", "on-request", False),
        ("{ granular = { sandbox_approval = true } }", "on-request", True),
    ],
)
def test_codex_approval_policies_are_understood(tmp_path: Path, value: str, approval: str, elicitations: bool) -> None:
    configuration = read(tmp_path, f"approval_policy = {value}")
    assert (configuration.policy.approval, configuration.policy.mcp_elicitations) == (approval, elicitations)
    assert configuration.problems == ()


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        ('approval_policy = "nevr"', ("on-request", True, False, True)),
        ('approval_policy = { granular = { mcp_elicitations = "no" } }', ("on-request", False, False, True)),
        ('sandbox_mode = "full"', ("on-request", True, False, True)),
        ('orchestrator = { mcp = { enabled = "no" } }', ("on-request", True, False, False)),
        ("orchestrator = 3", ("on-request", True, False, False)),
    ],
)
def test_a_limit_that_cannot_be_read_counts_as_its_strictest(
    tmp_path: Path, text: str, strict: tuple[str, bool, bool, bool]
) -> None:
    configuration = read(tmp_path, text)
    policy = configuration.policy
    assert (policy.approval, policy.mcp_elicitations, policy.full_access, policy.orchestrator_mcp_enabled) == strict
    assert len(configuration.problems) == 1


def test_full_access_the_gate_and_apps_are_read(tmp_path: Path) -> None:
    text = """
    sandbox_mode = "danger-full-access"
    [orchestrator.mcp]
    enabled = false
    [apps._default]
    enabled = false
    [apps.drive]
    enabled = true
    [apps.broken]
    enabled = "maybe"
    """
    policy = read(tmp_path, text).policy
    assert (policy.full_access, policy.orchestrator_mcp_enabled) == (True, False)
    assert policy.app("drive") == AppPolicy(enabled=True)
    assert policy.app("broken") == policy.app("other") == AppPolicy(enabled=False)


def test_the_builtin_provider_needs_its_key_only_when_a_model_is_used(tmp_path: Path) -> None:
    provider = read(tmp_path, 'model = "gpt-5.5"').model.provider
    assert (provider.base_url, provider.wire_api) == ("https://api.openai.com/v1", "responses")
    with pytest.raises(InvalidRequest, match=r"provider openai: the environment variable OPENAI_API_KEY is not set"):
        provider.api_key({})
    key = provider.api_key({"OPENAI_API_KEY": "sk-c4nary"})
    assert key is not None
    assert key.reveal() == "sk-c4nary"
    assert "c4nary" not in repr(key)


@requirement("CFG-1", "CFG-4")
def test_a_provider_of_the_users_is_read(tmp_path: Path) -> None:
    text = """
    model = "qwen"
    model_provider = "local"
    tool_output_token_limit = 4000
    [model_providers.local]
    name = "Local"
    base_url = "http://127.0.0.1:1/v1"
    env_key = "LOCAL_KEY"
    wire_api = "chat"
    http_headers = { A = "c4nary" }
    env_http_headers = { B = "LOCAL_HEADER", C = "GONE" }
    query_params = { version = "1" }
    request_max_retries = 1
    stream_max_retries = 2
    stream_idle_timeout_ms = 1500
    requires_openai_auth = false
    """
    configuration = read(tmp_path, text, LOCAL_HEADER="c4nary")
    provider = configuration.model.provider
    assert (configuration.model.name, configuration.model.tool_output_token_limit) == ("qwen", 4000)
    assert (provider.key, provider.name, provider.wire_api) == ("local", "Local", "chat")
    assert {name: value.reveal() for name, value in provider.http_headers.items()} == {"A": "c4nary", "B": "c4nary"}
    assert provider.query_params == {"version": "1"}
    limits = (provider.request_max_retries, provider.stream_max_retries, provider.stream_idle_timeout)
    assert limits == (1, 2, 1.5)
    assert [problem.key for problem in configuration.problems] == ["requires_openai_auth", "env_http_headers.C"]
    assert "c4nary" not in repr(configuration)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('model_provider = "gone"', "there is no table [model_providers.gone]"),
        ('model_provider = "a"\n[model_providers.a]\nname = "A"', "`base_url`: is missing"),
        ('model_provider = "a"\n[model_providers.a]\nbase_url = { env = "GONE" }', "variable GONE is not set"),
        ('model_provider = "a"\n[model_providers.a]\nbase_url = "http://h"\nwire_api = "grpc"', "`wire_api`: must be"),
        ('model_provider = "a"\nmodel_providers = { a = 3 }', "must be a table"),
    ],
)
def test_a_broken_provider_fails_only_who_uses_a_model(tmp_path: Path, text: str, part: str) -> None:
    configuration = read(tmp_path, text + '\n[mcp_servers.s]\ncommand = "x"')
    assert configuration.servers["s"].problem is None
    with pytest.raises(InvalidRequest) as refusal:
        configuration.model.provider.api_key({})
    assert part in refusal.value.message


def test_a_provider_that_is_not_in_use_is_left_alone(tmp_path: Path) -> None:
    assert read(tmp_path, '[model_providers.a]\nbase_url = { env = "GONE" }').problems == ()


def test_nearer_files_replace_single_settings(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(
        'model = "a"\nmodel_provider = "p"\n[model_providers.p]\nbase_url = "http://home"\n[apps.x]\nenabled = false'
    )
    (tmp_path / "c.toml").write_text('model = "b"\n[apps.y]\nenabled = false')
    configuration = load(tmp_path / "c.toml", home=tmp_path / "home", environment={})
    assert (configuration.model.name, configuration.model.provider.base_url) == ("b", "http://home")
    assert sorted(configuration.policy.apps) == ["x", "y"]


def test_a_bad_token_limit_is_named_and_the_default_used(tmp_path: Path) -> None:
    configuration = read(tmp_path, "tool_output_token_limit = -1")
    assert configuration.model.tool_output_token_limit == 10_000
    assert [problem.key for problem in configuration.problems] == ["tool_output_token_limit"]
