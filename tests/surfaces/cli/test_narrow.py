"""Lists at terminals of all widths: no line break is put into what people copy."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from interlock import Host
from interlock.catalog.naming import public_name
from interlock.surfaces.cli import output
from interlock.surfaces.cli.output import Table, print_table
from interlock.testing import Say, ScriptedModel
from tests.surfaces.cli.shell import Shell, scripted

SERVER = "a_server_with_quite_a_name"
TOOL = "a-tool-whose-name-is-longer-than-forty-columns"
URI = "docs://a/resource/in/a/folder/in/a/folder"
SCRIPT = {
    "tools": [{"name": TOOL, "description": "It does what it does, and does it well. " * 3}],
    "resources": [{"uri": URI, "name": "deep", "text": "it"}],
    "templates": [{"uriTemplate": f"{URI}/{{page}}", "name": "page"}],
    "prompts": [{"name": TOOL, "description": "Asks.", "arguments": [{"name": "language"}], "messages": []}],
}
HEADINGS = ("server", "tool", "description")
ROWS = [(SERVER, "echo", "Says it again, at length. " * 3), ("s", TOOL, "-"), ("世界" * 6, "t", "x" * 90)]
NATURAL = 26 + 2 + 46 + 2 + 90
"""The columns of a terminal in which nothing of ROWS need be folded."""


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "at_terminal", lambda stream: True)
    monkeypatch.setenv("NO_COLOR", "1")


def printed(
    width: int, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(Table(HEADINGS, ROWS, names=names))
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


@pytest.mark.usefixtures("at_terminal")
@pytest.mark.parametrize("width", [*range(10, 120, 7), NATURAL - 1, NATURAL])
def test_names_are_whole_at_every_width(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(width, ("server", "tool"), monkeypatch, capsys)
    for name in (SERVER, TOOL, "世界" * 6):
        assert [line for line in lines if name in line.split()]


@pytest.mark.usefixtures("at_terminal")
def test_a_table_that_has_room_is_the_same_with_names_and_without(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(NATURAL, ("server", "tool"), monkeypatch, capsys)
    assert lines == printed(NATURAL, (), monkeypatch, capsys)
    assert [line.split()[0] for line in lines] == ["server", SERVER, "s", "世界" * 6]


@pytest.mark.usefixtures("at_terminal")
def test_without_room_for_names_each_row_is_a_block_of_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    room = 26 + 2 + 46 + 2 + len("description")
    assert printed(room, ("server", "tool"), monkeypatch, capsys)[0].split() == list(HEADINGS)
    assert printed(room - 1, ("server", "tool"), monkeypatch, capsys)[:8] == [
        f"server       {SERVER}",
        "tool         echo",
        "description  Says it again, at length. Says it again, at length. Says it again, at length.",
        "",
        "server       s",
        f"tool         {TOOL}",
        "description  -",
        "",
    ]


@pytest.fixture
def narrow(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.configure(scripted(SERVER, shell.write("script.json", json.dumps(SCRIPT))))
    return shell


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["mcp", "list"], [SERVER]),
        (["mcp", "get", SERVER], ["default_tools_approval_mode"]),
        (["mcp", "tools"], [SERVER, TOOL, public_name(SERVER, TOOL).text]),
        (["mcp", "resources"], [SERVER, URI]),
        (["mcp", "templates"], [SERVER, f"{URI}/{{page}}"]),
        (["mcp", "prompts"], [SERVER, TOOL]),
    ],
    ids=["list", "get", "tools", "resources", "templates", "prompts"],
)
def test_in_forty_columns_lists_have_names_that_can_be_copied(
    narrow: Shell, arguments: list[str], names: list[str]
) -> None:
    words = narrow.run_at_terminal(*arguments, COLUMNS="40", NO_COLOR="1").split()
    assert [name for name in names if name not in words] == []


def test_in_forty_columns_the_line_that_is_wiped_is_one_line(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    late = shell.write("late.json", json.dumps({"on": {"start": [{"wait_for_file": "/nonexistent", "within": 0.8}]}}))
    shell.configure(*(scripted(f"{SERVER}_{number}", late) for number in range(3)))
    seen = shell.run_at_terminal("mcp", "list", COLUMNS="40", NO_COLOR="1")
    drawn = [line for line in re.split(r"\r|\x1b\[2K", seen) if line.startswith("starting ")]
    assert drawn
    assert max(map(len, drawn)) < 40


def test_in_forty_columns_what_another_host_has_can_be_named(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    servers = {f"{SERVER}_that_is_not_ours": {"command": "x"}}
    file = shell.write("theirs.json", json.dumps({"mcpServers": servers}))
    seen = shell.run_at_terminal("mcp", "import", "--from", str(file), typed="\n", COLUMNS="40", NO_COLOR="1")
    assert f"{SERVER}_that_is_not_ours" in seen.split()


def test_in_forty_columns_the_ids_of_threads_can_be_copied(narrow: Shell) -> None:
    narrow.configure()

    async def made() -> str:
        async with Host(store=narrow.home / "interlock.db", model=ScriptedModel(Say("a"))) as host:
            thread = await host.start_thread(name="talk")
            await (await thread.start_turn("one")).finished()
            return thread.id

    thread_id = asyncio.run(made())
    assert thread_id in narrow.run_at_terminal("threads", "list", COLUMNS="40", NO_COLOR="1").split()
