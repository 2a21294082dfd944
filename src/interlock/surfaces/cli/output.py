"""What a command prints.

Owns: tables at a terminal, a block of lines for each row where a table would break names; aligned text in a pipe, JSON
for programs, sentences on stderr.
Never: lets a server's text steer the terminal, or loads rich where nobody would see it.
"""

import json
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TextIO

from interlock.vocabulary.errors import InterlockError, ServerFailed, ServerFailure
from interlock.vocabulary.secret import Secret

GAP = 2
"""Columns of a terminal between two columns of a table."""

FOLDED = 10
"""Columns of a terminal that a column whose cells may be folded needs at least, or those of its heading."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts under headings. `empty` is the sentence (on stderr) when there are no rows.

    `names`: the headings of what people copy into their next command; no line break is put into these.
    """

    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    empty: str = ""
    names: Collection[str] = field(kw_only=True)


def print_json(document: Any) -> None:
    """One document on one line; what JSON cannot carry is written as text, what stdout cannot carry as JSON escapes."""
    escaped = (sys.stdout.encoding or "").lower().replace("_", "-") not in {"utf-8", "utf8"}
    _write(sys.stdout, json.dumps(document, ensure_ascii=escaped, separators=(",", ":"), default=_plain_value))


def print_failure(code: str, message: str, **facts: str) -> None:
    """Why there is no result, for a program that asked for JSON: `{"error": {"code", "message", …}}`.

    `code` is that of the InterlockError, or "usage" for a command line that is none, or "internal".
    """
    if wants_json():
        print_json({"error": {"code": code, "message": message, **facts}})


def wants_json() -> bool:
    """Whether `--json` stands on the command line; what comes after `--` belongs to a server."""
    ours = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    return "--json" in ours


def print_table(table: Table) -> None:
    if not table.rows:
        say(table.empty)
    elif at_terminal(sys.stdout):
        _print_rich(table)
    else:
        _print_aligned(table)


def print_text(text: str) -> None:
    """A server's or model's text: as it is in a pipe, harmless at a terminal."""
    _write(sys.stdout, harmless(text) if at_terminal(sys.stdout) else text)


def print_line(line: str) -> None:
    """A line of our own, whose colours are meant."""
    _write(sys.stdout, line)


def complain(sentence: str) -> None:
    """An error: one line on stderr."""
    _note("error", sentence, "31")


WAYS_OUT: Mapping[ServerFailure, str] = {
    "unavailable": "`interlock mcp list` shows its state",
    "deadline": "a longer startup_timeout_sec or tool_timeout_sec gives it more time",
    "lost": "`interlock mcp list` shows its state",
    "authentication": "give it credentials: bearer_token_env_var or http_headers",
}
"""What a person at the command line can do about a server; the library's own sentences stop where that begins."""


def with_way_out(error: InterlockError) -> str:
    """The error's sentence, with what to do where it does not say that itself."""
    hint = WAYS_OUT.get(error.kind) if isinstance(error, ServerFailed) else None
    return error.message if hint is None or ";" in error.message else f"{error.message}; {hint}"


def own_reason(error: ServerFailed) -> str:
    """Why a server is not there, without the words that say only that it is not, where the reason names it too."""
    reason = error.message.removeprefix(f"server {error.server!r} is not available: ")
    return reason if error.server in reason else error.message


def warn(sentence: str) -> None:
    _note("warning", sentence, "33")


def say(sentence: str) -> None:
    """A remark that is no result: on stderr, so that a pipe holds results only."""
    if sentence:
        _write(sys.stderr, one_line(sentence))


def counted(number: int, noun: str) -> str:
    """ "1 turn", "2 turns"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def time_text(milliseconds: int) -> str:
    """A moment since the Unix epoch, in the time of this machine."""
    return datetime.fromtimestamp(milliseconds / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def at_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


def coloured(stream: TextIO) -> bool:
    """NO_COLOR (https://no-color.org) wins over everything when it is not empty."""
    return at_terminal(stream) and not os.environ.get("NO_COLOR")


def one_line(text: str) -> str:
    return harmless(" ".join(text.split()))


def harmless(text: str) -> str:
    """Without escape sequences and other control characters, line breaks and tabs apart."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def _write(stream: TextIO, text: str) -> None:
    stream.write(f"{text}\n")
    stream.flush()


def _note(kind: str, sentence: str, colour: str) -> None:
    label = f"\x1b[{colour}m{kind}:\x1b[0m" if coloured(sys.stderr) else f"{kind}:"
    _write(sys.stderr, f"{label} {one_line(sentence)}")


def _print_aligned(table: Table) -> None:
    lines = [tuple(heading.upper() for heading in table.headings), *(_cells(row) for row in table.rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.headings))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        _write(sys.stdout, "  ".join(cells).rstrip())


def _print_rich(table: Table) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(no_color=not coloured(sys.stdout), highlight=False)
    rows = [_cells(row) for row in table.rows]
    needed = GAP * (len(table.headings) - 1)
    for heading, cells in zip(table.headings, zip(*rows, strict=True), strict=True):
        whole = max(map(cell_len, (heading, *cells)))
        needed += whole if heading in table.names else min(whole, max(FOLDED, len(heading)))
    if needed > console.width:
        return _print_blocks(table.headings, rows)
    grid = RichTable(box=None, header_style="bold", pad_edge=False)
    for heading in table.headings:
        grid.add_column(heading, overflow="fold", no_wrap=heading in table.names)
    for row in rows:
        grid.add_row(*map(Text, row))
    return console.print(grid)


def _print_blocks(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """A line for each cell. The terminal breaks a long one by itself, and gives it back whole when it is copied."""
    width = max(map(len, headings))
    start, end = ("\x1b[1m", "\x1b[0m") if coloured(sys.stdout) else ("", "")
    for number, row in enumerate(rows):
        if number:
            _write(sys.stdout, "")
        for heading, cell in zip(headings, row, strict=True):
            _write(sys.stdout, f"{start}{heading.ljust(width)}{end}  {cell}".rstrip())


def _cells(row: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one_line(cell) for cell in row)


def _plain_value(value: Any) -> Any:
    return str(value) if isinstance(value, Secret) else repr(value)
