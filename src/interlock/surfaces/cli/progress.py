"""What a person sees while servers start.

Owns: one line on stderr, at a terminal, redrawn while servers start and wiped at the end.
Never: writes a byte where nobody watches, or where everything was ready at once.
"""

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

import anyio

from interlock.surfaces.cli.output import at_terminal, one_line
from interlock.vocabulary.server import ServerReport, ServerStatus

PATIENCE = 0.3
"""Seconds before the line appears: what is quicker needs no words."""
INTERVAL = 0.1
UNKNOWN = 80
"""Columns of a terminal that does not say how many it has."""
WIPE = "\r\x1b[2K"
WIDTH = 70
"""Columns that names may fill; fewer where the terminal is narrower, since `WIPE` wipes one of its lines only."""

Reports = Callable[[], Iterable[ServerReport]]


@asynccontextmanager
async def start_progress(reports: Reports) -> AsyncIterator[None]:
    """While the block runs, name the servers that are still starting; `reports` is asked again and again."""
    if not at_terminal(sys.stderr):
        yield
        return
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_redraw, reports)
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()
            _write(WIPE)


async def _redraw(reports: Reports) -> None:
    await anyio.sleep(PATIENCE)
    while True:
        waiting = sorted({report.name for report in reports() if report.status is ServerStatus.STARTING})
        _write(WIPE + (_line(waiting, _columns()) if waiting else ""))
        await anyio.sleep(INTERVAL)


def _line(names: Sequence[str], columns: int) -> str:
    frame = len("starting  …")
    return f"starting {one_line(', '.join(names))[: max(0, min(WIDTH, columns - frame - 1))]} …"


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or UNKNOWN
    except OSError:
        return UNKNOWN


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
