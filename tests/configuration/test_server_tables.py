"""Edits of a user's TOML file: what is not edited stays as it was written."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.configuration.server_tables import add_servers, remove_server, set_enabled
from interlock.vocabulary.errors import InvalidRequest
from tests.manifest import requirement

WRITTEN = '''# my servers
model = "m" # the model

[mcp_servers.a] # first
command = "x" # run
args = [
  "one", # and
  "[mcp_servers.b]",
]

[mcp_servers.a.env]
TEXT = """
[mcp_servers.c]
# no comment
"""

# my favourite
[mcp_servers."b"]
command = "y"   # aligned
enabled = true  # for now

  [apps.drive]
  enabled = false'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "config.toml"
    file.write_text(WRITTEN, encoding="utf-8")
    return file


def test_a_server_is_added_at_the_end_and_everything_before_stays_byte_for_byte(file: Path) -> None:
    add_servers(file, {"new": {"command": "npx", "args": ["-y", "@x/y"], "env": {"T": {"env": "T"}, "U": "v"}}})
    text = file.read_text()
    assert text.startswith(WRITTEN)
    assert text.removeprefix(WRITTEN) == (
        '\n\n[mcp_servers.new]\ncommand = "npx"\nargs = ["-y", "@x/y"]\n'
        '\n[mcp_servers.new.env]\nU = "v"\nT = { env = "T" }\n'
    )


def test_a_new_file_and_its_folder_are_for_their_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "home" / "config.toml"
    add_servers(file, {"a": {"url": "https://h/mcp"}})
    assert file.read_text() == '[mcp_servers.a]\nurl = "https://h/mcp"\n'
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_server_that_is_there_is_replaced_only_on_demand(file: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"there is already a server 'b' in .*use --replace"):
        add_servers(file, {"b": {"command": "z"}})
    assert file.read_text() == WRITTEN
    add_servers(file, {"b": {"command": "z"}}, replace=True)
    assert tomllib.loads(file.read_text())["mcp_servers"]["b"] == {"command": "z"}
    assert "# my favourite" in file.read_text()


def test_a_removed_server_takes_its_own_lines_along_and_no_comment_between_tables(file: Path) -> None:
    remove_server(file, "a")
    assert file.read_text() == (
        '# my servers\nmodel = "m" # the model\n\n# my favourite\n[mcp_servers."b"]\ncommand = "y"   # aligned\n'
        "enabled = true  # for now\n\n  [apps.drive]\n  enabled = false"
    )


def test_switching_a_server_changes_one_line(file: Path) -> None:
    set_enabled(file, "b", False)
    assert file.read_text() == WRITTEN.replace("enabled = true  # for now", "enabled = false  # for now")
    set_enabled(file, "b", True)
    assert file.read_text() == WRITTEN
    set_enabled(file, "a", False)
    assert file.read_text() == WRITTEN.replace("]\n\n[mcp_servers.a.env]", "]\nenabled = false\n\n[mcp_servers.a.env]")


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { a = { command = "x" }, b.command = "y" } # inline\n',
        '[mcp_servers]\na.command = "x" # dotted\nb = { command = "y" }\n\n# next\n[apps]\n',
        '[mcp_servers.b]\ncommand = "y"\n[apps]\n# out of order\n[mcp_servers.a]\ncommand = "x"\n',
        '\ufeff[mcp_servers.a]\r\ncommand = "x" # of Windows\r\n[mcp_servers.b]\r\ncommand = "y"\r\n',
        "[mcp_servers.a]\ncommand = 'x'\n[mcp_servers.b]\ncommand = '''y'''\nargs = ['[', \"]\"]",
    ],
)
def test_other_layouts_are_edited_with_their_comments_kept(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(text.encode())
    add_servers(file, {"c": {"command": "z", "env": {"A": "b"}}})
    set_enabled(file, "a", False)
    remove_server(file, "b")
    edited = file.read_bytes().decode()
    assert [
        comment for line in text.splitlines() if (comment := line.partition("#")[2]) and comment not in edited
    ] == []
    assert tomllib.loads(edited.removeprefix("\ufeff"))["mcp_servers"] == {
        "a": {"command": "x", "enabled": False},
        "c": {"command": "z", "env": {"A": "b"}},
    }
    assert edited.startswith("\ufeff") == text.startswith("\ufeff")
    assert ("\r\n" in text) == (edited.count("\r\n") == edited.count("\n"))


@requirement("CFG-3")
@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("config.toml", "model = \n", "config.toml:1:9: "),
        ("config.toml", "mcp_servers = 1\n", "mcp_servers must be a table of tables"),
        ("config.toml", 'model = "x"\n', "there is no server 'a' in "),
        ("x.json", "{}", "only TOML files are edited; take a out of it by hand"),
    ],
)
def test_what_cannot_be_edited_is_left_alone_in_one_sentence(tmp_path: Path, name: str, text: str, part: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(InvalidRequest) as refused:
        remove_server(file, "a")
    assert part in refused.value.message
    assert "\n" not in refused.value.message
    assert file.read_text() == text
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


KEYS = st.text("abc", min_size=1, max_size=3)
SCALARS = st.one_of(st.text(max_size=8), st.booleans(), st.integers(-9, 9), st.lists(st.text("a]#['\"\n", max_size=4)))
TABLES = st.dictionaries(KEYS, st.one_of(SCALARS, st.dictionaries(KEYS, SCALARS, max_size=2)), max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(KEYS, TABLES, min_size=1, max_size=3), st.data())
def test_whatever_tables_say_an_edit_changes_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, tables: dict[str, dict[str, object]], data: st.DataObject
) -> None:
    file = tmp_path_factory.mktemp("edit") / "config.toml"
    add_servers(file, tables)
    assert tomllib.loads(file.read_text())["mcp_servers"] == tables
    name = data.draw(st.sampled_from(sorted(tables)))
    set_enabled(file, name, False)
    assert tomllib.loads(file.read_text())["mcp_servers"] == tables | {name: tables[name] | {"enabled": False}}
    remove_server(file, name)
    rest = {other: table for other, table in tables.items() if other != name}
    assert tomllib.loads(file.read_text()).get("mcp_servers", {}) == rest
