"""Hosts that kill themselves, each one stored event later: python kill_loop.py FOLDER

Host number N works on FOLDER/N/interlock.db and is killed by SIGKILL as soon as its N-th append is committed, before
anybody is told. The last one lives to the end. Forked from one process, which pays for the imports once.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from interlock import Host
from interlock.stores.sqlite import SqliteStore
from interlock.testing import Call, Say, ScriptedModel, scripted_server
from interlock.vocabulary.event import Event, StoredEvent

LIMIT = 60
"""More appends than the work below makes."""

CITED = "done<oai-mem-citation><thread_ids>\nold\n</thread_ids></oai-mem-citation>"


def kill_after(appends: int) -> None:
    """Let this process be killed when it has stored so many batches."""
    append, done = SqliteStore.append, 0

    async def counted(
        store: SqliteStore, thread_id: str, events: Sequence[Event], **place: Any
    ) -> tuple[StoredEvent, ...]:
        nonlocal done
        stored = await append(store, thread_id, events, **place)
        done += 1
        if done == appends:
            os.kill(os.getpid(), signal.SIGKILL)
        return stored

    SqliteStore.append = counted  # type: ignore[method-assign] # the one place where a kill can be timed


async def work(folder: Path) -> None:
    """Two turns with calls side by side, a compaction and a rollback."""
    quick = {"name": "quick", "annotations": {"readOnlyHint": True}, "do": [{"text": "answer"}]}
    script = {"tools": [quick], "resources": [{"uri": "doc://a", "name": "a", "text": "hello"}]}
    model = ScriptedModel(
        [Call("mcp__a__quick"), Call("read_mcp_resource", {"server": "a", "uri": "doc://a"})],
        Say(CITED),
        Say("in short"),
        Say("second"),
    )
    server = scripted_server("a", script, folder)
    async with Host({"a": server}, store=folder / "interlock.db", model=model, grace=20.0) as host:
        thread = await host.start_thread(name="killed")
        await (await thread.start_turn("go")).finished()
        await thread.compact(as_turn="summary")
        await (await thread.start_turn("again")).finished()
        await thread.rollback(1)


def main(folder: Path) -> None:
    for appends in range(1, LIMIT):
        place = folder / str(appends)
        place.mkdir()
        child = os.fork()
        if child == 0:
            kill_after(appends)
            anyio.run(work, place)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            sys.exit(os.WEXITSTATUS(status))
    sys.exit("the work never came to its end")


main(Path(sys.argv[1]))
