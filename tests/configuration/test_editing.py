"""Writing an approval down: the user's file stays the user's."""

import tomllib
from pathlib import Path

import pytest

from interlock.configuration import load
from interlock.configuration.editing import set_approval_mode
from interlock.vocabulary.errors import InvalidRequest
from tests.manifest import requirement

COMMENTED = """\
# my servers
model = "m"   # the good one

[mcp_servers.git]   # version control
command = "git-server"
args = [
    "--verbose",  # noisy
]

[mcp_servers.web]
url = "https://example.com/"
"""


@requirement("APR-2")
def test_everything_that_was_there_stays_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(COMMENTED, encoding="utf-8")

    set_approval_mode(file, "git", "commit", "approve")
    set_approval_mode(file, "git", "push now", "approve")

    text = file.read_text(encoding="utf-8")
    assert [line for line in COMMENTED.splitlines() if line not in text.splitlines()] == []
    configuration = load(file, environment={})
    assert configuration.problems == ()
    git = configuration.servers["git"]
    assert (git.approval_mode("commit"), git.approval_mode("push now"), git.approval_mode("log")) == (
        "approve",
        "approve",
        "auto",
    )
    assert configuration.servers["web"].approval_mode("commit") == "auto"


@requirement("APR-2")
@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers]\ngit = { command = "x" }\n',
        'mcp_servers = { git = { command = "x" } }\n',
        'mcp_servers.git.command = "x"\n',
        '[mcp_servers.git]\ncommand = "x"\n[mcp_servers.git.tools.commit]\napproval_mode = "prompt" # careful\n',
        '[mcp_servers.git]\ncommand = "x"\ntools = { commit = { approval_mode = "prompt" } }\n',
        '[mcp_servers.git]\ncommand = "x"\n[mcp_servers.git.tools]\nlog = { approval_mode = "prompt" }\n',
        '[mcp_servers.git]\ncommand = "x"\n[mcp_servers.git.env]\nA = "b"\n[apps.x]\nenabled = true\n',
        '[mcp_servers.git]\r\ncommand = "x"\r\n',
    ],
)
def test_however_the_table_is_written_it_can_be_added_to(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(text.encode())
    before = tomllib.loads(text)

    set_approval_mode(file, "git", "commit", "approve")

    after = tomllib.loads(file.read_bytes().decode())
    assert after["mcp_servers"]["git"]["tools"]["commit"] == {"approval_mode": "approve"}
    assert after.get("apps") == before.get("apps")
    assert after["mcp_servers"]["git"]["command"] == "x"
    assert (b"\r\n" in file.read_bytes()) is ("\r\n" in text)


@pytest.mark.parametrize("text", ["", "[mcp_servers.other]\ncommand = 'x'\n", "mcp_servers = 3\n", "not toml"])
def test_a_file_that_cannot_take_it_stays_untouched(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)

    with pytest.raises(InvalidRequest, match="cannot write the approval"):
        set_approval_mode(file, "git", "commit", "approve")
    assert file.read_text() == text


@requirement("APR-2")
def test_only_a_users_own_toml_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(COMMENTED)
    (tmp_path / "c.json").write_text('{"mcpServers": {"other": {"command": "x"}}}')

    configuration = load(tmp_path / "c.json", home=tmp_path, environment={})

    assert configuration.editable == {name: str(tmp_path / "config.toml") for name in ("git", "web")}
