"""Secrets are references, and their values stay inside."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from interlock.configuration import Configuration, load
from interlock.vocabulary.secret import reveal
from interlock.vocabulary.server import HttpTransport, StdioTransport
from tests.manifest import requirement

CANARY = "c4nary-value"


def read(folder: Path, text: str, **environment: str) -> Configuration:
    file = folder / "c.toml"
    file.write_text(text, encoding="utf-8")
    return load(file, environment=environment)


class FakeKeyring(ModuleType):
    """A keyring of one entry; `locked` makes it raise what a backend would."""

    locked = False

    def get_password(self, service: str, name: str) -> str | None:
        if self.locked:
            raise RuntimeError(f"locked, and here is a secret: {CANARY}")
        return CANARY if (service, name) == ("mcp/github", "ada") else None


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> FakeKeyring:
    module = FakeKeyring("keyring")
    monkeypatch.setitem(sys.modules, "keyring", module)
    return module


@requirement("CFG-4")
def test_every_text_setting_takes_a_reference_and_shows_no_value(tmp_path: Path, keyring: FakeKeyring) -> None:
    (tmp_path / "token").write_text(CANARY + "\n", encoding="utf-8")
    text = """
    [mcp_servers.a]
    command = { env = "V" }
    args = ["-k", { file = "token" }]
    env = { A = { keyring = "mcp/github/ada" }, env = "c4nary-value" }
    cwd = { env = "V" }
    [mcp_servers.b]
    url = { env = "U" }
    bearer_token_env_var = "V"
    http_headers = { X = { file = "token" }, Y = "c4nary-value" }
    oauth = { client_id = { env = "V" } }
    oauth_resource = { env = "V" }
    [mcp_servers.c]
    url = "https://ada:c4nary-value@h/mcp"
    [mcp_servers.d]
    url = "https://h/mcp?api_key=c4nary-value"
    """
    configuration = read(tmp_path, text, V=CANARY, U=f"http://{CANARY}/")

    assert configuration.problems == ()
    assert CANARY not in repr(configuration)
    assert CANARY not in str(configuration)
    a, b = configuration.servers["a"].transport, configuration.servers["b"].transport
    assert isinstance(a, StdioTransport)
    assert isinstance(b, HttpTransport)
    assert [reveal(text) for text in (a.command, *a.args, a.env["A"], a.env["env"])] == [
        CANARY,
        "-k",
        CANARY,
        CANARY,
        CANARY,
    ]
    assert reveal(b.url) == f"http://{CANARY}/"
    assert b.headers["Authorization"].reveal() == f"Bearer {CANARY}"


@requirement("CFG-4")
@pytest.mark.parametrize(
    ("locked", "entry", "part"),
    [
        (True, "mcp/github/ada", "the keyring did not give mcp/github/ada (RuntimeError); unlock it"),
        (False, "mcp/github/bob", "the keyring has no entry mcp/github/bob; add it with: keyring set mcp/github bob"),
    ],
)
def test_a_keyring_that_gives_nothing_is_a_problem_without_a_value(
    tmp_path: Path, keyring: FakeKeyring, locked: bool, entry: str, part: str
) -> None:
    keyring.locked = locked
    text = f'[mcp_servers.a]\ncommand = "x"\nenv = {{ A = {{ keyring = "{entry}" }} }}'
    problem = read(tmp_path, text).servers["a"].problem
    assert problem is not None
    assert part in problem
    assert CANARY not in problem


def test_without_the_package_the_keyring_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    text = '[mcp_servers.a]\ncommand = "x"\nenv = { A = { keyring = "s/n" } }'
    problem = read(tmp_path, text).servers["a"].problem
    assert problem is not None
    assert "run: pip install 'interlock[keyring]'" in problem


def test_a_keyring_is_not_asked_for_a_server_that_is_switched_off(tmp_path: Path, keyring: FakeKeyring) -> None:
    keyring.locked = True
    text = '[mcp_servers.a]\nenabled = false\ncommand = "x"\nenv = { A = { keyring = "s/n" } }'
    assert read(tmp_path, text).problems == ()


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * 70_000])
def test_a_file_that_is_no_secret_is_a_problem(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    problem = read(tmp_path, '[mcp_servers.a]\ncommand = { file = "token" }').servers["a"].problem
    assert problem is not None
    assert str(tmp_path / "token") in problem


@requirement("CFG-4")
def test_the_value_in_a_refused_setting_is_not_repeated(tmp_path: Path) -> None:
    text = '[mcp_servers.a]\nurl = { env = "V" }\nstartup_timeout_sec = "c4nary-value"'
    configuration = read(tmp_path, text, V=CANARY)
    assert configuration.servers["a"].problem is not None
    assert CANARY not in repr(configuration)
