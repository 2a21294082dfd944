"""Where the demonstration writes: a terminal with rich, or plain lines in a pipe.

Owns: tables, lines and their marks, in both forms.
Never: colours where NO_COLOR is set or nobody watches, or lets a server's text steer the terminal.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, TextIO

Style = Literal["plain", "heading", "good", "bad", "dim", "strong"]
Row = tuple[str, ...]


class Display(Protocol):
    """What `run` needs to show something."""

    def line(self, text: str = "", style: Style = "plain") -> None: ...

    def table(self, headings: Row, rows: Sequence[Row]) -> None: ...


def open_display(stream: TextIO | None = None) -> Display:
    """rich at a terminal where it is installed (extra `cli`), else plain text."""
    stream = stream or sys.stdout
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        return PlainDisplay(stream)
    try:
        return RichDisplay(stream)
    except ImportError:
        return PlainDisplay(stream)


class PlainDisplay:
    """Aligned text, readable in a log."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def line(self, text: str = "", style: Style = "plain") -> None:
        try:
            self._stream.write(f"\n{text}\n" if style == "heading" else f"{text}\n")
            self._stream.flush()
        except BrokenPipeError:  # the reader has gone (`| head`): the turn still ends in order
            with Path(os.devnull).open("w") as nowhere:
                os.dup2(nowhere.fileno(), self._stream.fileno())

    def table(self, headings: Row, rows: Sequence[Row]) -> None:
        lines = [headings, *rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
        for row in lines:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.line("  " + "  ".join(cells).rstrip())


class RichDisplay:
    """The same in colour; long cells wrap."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._console = Console(file=stream, highlight=False)

    def line(self, text: str = "", style: Style = "plain") -> None:
        from rich.text import Text

        if style == "heading":
            self._console.print()
        self._console.print(Text(text, style=_STYLES[style]))

    def table(self, headings: Row, rows: Sequence[Row]) -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
        table.add_column("")
        for heading in headings:
            table.add_column(heading, overflow="fold")
        for row in rows:
            table.add_row("", *(Text(cell, style=_cell_style(cell)) for cell in row))
        self._console.print(table)


_STYLES = {"plain": "", "heading": "bold", "good": "green", "bad": "red", "dim": "dim", "strong": "bold cyan"}


def _cell_style(cell: str) -> str:
    return {"ready": "green", "failed": "red", "destroys": "red", "changes": "yellow"}.get(cell, "")


def one_line(text: str, limit: int = 110) -> str:
    """A server's text as one line without control characters, cut at `limit` characters."""
    line = "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"
