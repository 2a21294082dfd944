"""Text that is fit to be shown."""

import importlib
from typing import Any

import pytest
import typer

from interlock.surfaces.cli.command_table import COMMANDS
from interlock.surfaces.cli.output import Table, harmless, one_line, print_json, print_table, with_way_out
from interlock.vocabulary.errors import InvalidRequest, ServerFailed
from interlock.vocabulary.secret import Secret
from tests.surfaces.cli.shell import Shell


def test_control_characters_do_not_reach_a_terminal() -> None:
    assert harmless("a\x1b]0;title\x07b\tc\nd") == "a\\x1b]0;title\\x07b\tc\nd"
    assert one_line("a\n  b\x1b") == "a b\\x1b"


def test_a_secret_in_a_document_is_masked(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"key": Secret("c4nary")})
    assert "c4nary" not in capsys.readouterr().out


def test_columns_are_aligned_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(Table(("a", "long heading"), [("1", "2"), ("three", "x\ny")], names=("a",)))
    assert capsys.readouterr().out == "A      LONG HEADING\n1      2\nthree  x y\n"


def test_an_empty_table_is_a_remark_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(Table(("a",), [], "nothing is there", names=()))
    assert capsys.readouterr() == ("", "nothing is there\n")


def test_a_sentence_that_has_a_way_out_gets_no_second_one() -> None:
    assert with_way_out(ServerFailed("it is away", server="a")) == "it is away; `interlock mcp list` shows its state"
    assert with_way_out(ServerFailed("it is away; try again", server="a")) == "it is away; try again"
    assert with_way_out(InvalidRequest("no")) == "no"


def test_every_command_takes_json_but_those_that_the_readme_names() -> None:
    without: set[str] = set()
    seen = 0
    for name, place in COMMANDS.items():
        loaded: Any = typer.main.get_command(importlib.import_module(f"interlock.surfaces.cli.{place.module}").app)
        for command in getattr(loaded, "commands", {name: loaded}).values():
            seen += 1
            if not any("--json" in parameter.opts for parameter in command.params):
                without.add(name)
    assert seen > 25
    assert without == {"demo", "app-server"}


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["mcp", "get", "absent"], 2, "invalid_request"),
        (["mcp", "tools", "broken"], 1, "server_failed"),
        (["mcp", "call", "broken", "tool", "{"], 2, "invalid_request"),
        (["mcp", "get"], 2, "usage"),
        (["mcp", "absent"], 2, "usage"),
        (["mcp", "list", "--absent"], 2, "usage"),
        (["threads", "fork", "absent"], 2, "invalid_request"),
        (["exec", "hello"], 2, "invalid_request"),
        (["doctor", "--config", "absent.toml"], 2, "invalid_request"),
    ],
)
def test_a_failure_is_json_where_json_was_asked_for(shell: Shell, arguments: list[str], status: int, code: str) -> None:
    shell.configure("[mcp_servers.broken]\ncommand = 'no-such-program'")
    done = shell.run(*arguments, "--json")
    assert (done.status, done.json["error"]["code"]) == (status, code)
    assert " ".join(done.json["error"]["message"].split()) in done.errors
    assert (shell.run(*arguments).output, "--json" in done.errors) == ("", False)


def test_what_comes_after_two_dashes_asks_for_no_json(shell: Shell) -> None:
    shell.configure("[mcp_servers.there]\ncommand = 'x'")
    assert shell.run("mcp", "add", "there", "--", "server", "--json").output == ""
