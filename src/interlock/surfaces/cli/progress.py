"""What a person sees while servers start.

Owns: one line on stderr, at a terminal, redrawn while servers start and wiped at the end.
Never: writes a byte where nobody watches, or where everything was ready at once.
"""

import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import anyio

from interlock.surfaces.cli.output import at_terminal, one_line
from interlock.vocabulary.server import ServerReport, ServerStatus

PATIENCE = 0.3
"""Seconds before the line appears: what is quicker needs no words."""
INTERVAL = 0.1
WIPE = "\r\x1b[2K"
WIDTH = 70

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
        _write(WIPE + (f"starting {one_line(', '.join(waiting))[:WIDTH]} …" if waiting else ""))
        await anyio.sleep(INTERVAL)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
