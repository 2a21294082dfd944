import io
import os
import pty
import re

import pytest

from interlock.demo.display import PlainDisplay, RichDisplay, open_display

LAST = "that was all"


def written_at_a_terminal() -> str:
    """What a display writes when its stream is a real terminal."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        display = open_display(stream)
        assert isinstance(display, RichDisplay)
        display.line("it worked", "good")
        display.table(("name", "state"), [("[bold]a[/bold]", "failed")])
        display.line(LAST)
        stream.flush()
        written = b""
        while LAST.encode() not in written:  # a terminal hands over what has arrived, be it a part
            written += os.read(ours, 65536)
    os.close(ours)
    return written.decode()


def test_a_terminal_gets_colours_and_no_text_is_taken_for_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    written = written_at_a_terminal()
    assert "\x1b[32mit worked" in written
    assert "[bold]a[/bold]" in written


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", written_at_a_terminal())


def test_a_pipe_and_a_dumb_terminal_get_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(open_display(io.StringIO()), PlainDisplay)
    monkeypatch.setenv("TERM", "dumb")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        assert isinstance(open_display(stream), PlainDisplay)
    os.close(ours)


def test_plain_tables_are_aligned() -> None:
    stream = io.StringIO()
    PlainDisplay(stream).table(("name", "of"), [("long name", "a"), ("b", "c")])
    assert stream.getvalue() == "  name       of\n  long name  a\n  b          c\n"


def test_a_reader_that_has_gone_ends_nothing() -> None:
    ours, theirs = os.pipe()
    with os.fdopen(theirs, "w") as stream:
        display = PlainDisplay(stream)
        display.line("read")
        os.close(ours)
        display.line("not read")
        display.line("not read either")
