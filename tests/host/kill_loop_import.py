"""Imports that kill themselves: python kill_loop_import.py LINES PLACE...

Import number N brings LINES, four events a page, into the N-th place and is killed by SIGKILL after its N-th write,
before it hears of it. The last one lives to its end. Forked from one process, which pays for the imports once. Prints
how many of the places were used.
"""

import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio

from interlock import Host
from interlock.host import arriving
from interlock.stores.postgres import PostgresStore
from interlock.stores.sqlite import SqliteStore

PAGE = 4
"""Events of a page."""
WRITES = ("append", "store_unlisted", "list_thread", "delete_thread")


def kill_after(writes: int, store: type[Any]) -> None:
    """Let this process be killed when it has written so many times."""
    done = 0

    def counted(write: Any) -> Any:
        async def counting(*values: Any, **named: Any) -> Any:
            nonlocal done
            result = await write(*values, **named)
            done += 1
            if done == writes:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return counting

    for name in WRITES:
        setattr(store, name, counted(getattr(store, name)))


async def bring_in(lines: list[str], place: str) -> None:
    async def given() -> AsyncIterator[str]:
        for line in lines:
            yield line

    async with Host(store=place) as host:
        await host.import_thread(given())


def main(lines: list[str], places: list[str]) -> None:
    arriving.MAXIMUM_TOGETHER = PAGE
    for number, place in enumerate(places, 1):
        child = os.fork()
        if child == 0:
            kill_after(number, PostgresStore if "://" in place else SqliteStore)
            anyio.run(bring_in, lines, place)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            sys.stdout.write(f"{number}\n")
            sys.exit(os.WEXITSTATUS(status))
    sys.exit("the import never came to its end")


main(Path(sys.argv[1]).read_text().splitlines(), sys.argv[2:])
