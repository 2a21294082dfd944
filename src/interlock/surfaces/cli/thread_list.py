"""`interlock threads list`: what is stored, the newest first.

Owns: the columns and the JSON of a stored thread.
Never: makes a store that is not there, or loads what reads one where there is none.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from interlock.surfaces.cli.opening import is_made, kept_in
from interlock.surfaces.cli.output import Table, print_json, print_table, time_text
from interlock.surfaces.cli.running import run

if TYPE_CHECKING:
    from interlock.vocabulary.event import ThreadRecord


def show(limit: int, as_json: bool) -> int:
    """Print at once where nothing was ever stored; the exit status."""
    if is_made(kept_in()):
        return run(partial(_show_stored, limit, as_json))
    _print((), as_json)
    return 0


async def _show_stored(limit: int, as_json: bool, closing: AsyncExitStack) -> None:
    from interlock.stores import open_store

    store = await closing.enter_async_context(open_store(kept_in()))
    _print(await store.threads(limit=limit), as_json)


def _print(records: "Sequence[ThreadRecord]", as_json: bool) -> None:
    if as_json:
        print_json({"threads": [asdict(record) for record in records]})
        return
    rows = [
        (
            record.thread_id,
            time_text(record.updated_at),
            str(record.turns),
            record.model or "-",
            f"{'(archived) ' if record.archived else ''}{record.name or record.preview}",
        )
        for record in records
    ]
    headings = ("id", "updated", "turns", "model", "about")
    print_table(Table(headings, rows, "no thread is stored yet", names=("id",)))
