"""Text that is fit to be shown."""

import pytest

from interlock.surfaces.cli.output import Table, harmless, one_line, print_json, print_table, with_way_out
from interlock.vocabulary.errors import InvalidRequest, ServerFailed
from interlock.vocabulary.secret import Secret


def test_control_characters_do_not_reach_a_terminal() -> None:
    assert harmless("a\x1b]0;title\x07b\tc\nd") == "a\\x1b]0;title\\x07b\tc\nd"
    assert one_line("a\n  b\x1b") == "a b\\x1b"


def test_a_secret_in_a_document_is_masked(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"key": Secret("c4nary")})
    assert "c4nary" not in capsys.readouterr().out


def test_columns_are_aligned_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(Table(("a", "long heading"), [("1", "2"), ("three", "x\ny")]))
    assert capsys.readouterr().out == "A      LONG HEADING\n1      2\nthree  x y\n"


def test_an_empty_table_is_a_remark_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(Table(("a",), [], "nothing is there"))
    assert capsys.readouterr() == ("", "nothing is there\n")


def test_a_sentence_that_has_a_way_out_gets_no_second_one() -> None:
    assert with_way_out(ServerFailed("it is away", server="a")) == "it is away; `interlock mcp list` shows its state"
    assert with_way_out(ServerFailed("it is away; try again", server="a")) == "it is away; try again"
    assert with_way_out(InvalidRequest("no")) == "no"
