"""`interlock threads …` that change what is stored, or take it elsewhere.

Owns: what these commands do and print.
Never: starts a server: the past of a thread needs none.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import TextIO

import anyio.to_thread

from interlock.host.host import Host
from interlock.stores import open_store
from interlock.surfaces.cli.opening import STORE_FILE, home, read_configuration
from interlock.surfaces.cli.output import (
    Table,
    at_terminal,
    counted,
    one_line,
    print_json,
    print_table,
    print_text,
    say,
    time_text,
)
from interlock.surfaces.cli.stored_threads import find_thread, print_open
from interlock.threads.thread import Thread
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.event import ThreadRecord
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.memory import MemoryUse
from interlock.vocabulary.ports import Model
from interlock.vocabulary.thread import TurnState


async def resume(thread: str, interrupt: bool, as_json: bool, closing: AsyncExitStack) -> None:
    """Close what a killed host left open, and show it; the thread stays for `exec --thread`.

    A turn that waits for an answer goes on waiting, unless `interrupt` ends it.
    """
    host, record = await _open(thread, closing)
    resumed = await host.resume_thread(record.thread_id)
    if interrupt:
        await _interrupt(resumed)
    last = resumed.state.turns[-1] if resumed.state.turns else None
    left = last.turn_id if last is not None and last.status == "interrupted" else None
    waiting = None if resumed.running_turn is None else resumed.running_turn.id
    interrupted = [] if last is None or (left is None and waiting is None) else _interrupted(last)
    questions = resumed.state.open_questions
    if as_json:
        print_json(
            {
                "thread_id": record.thread_id,
                "interrupted_turn": left,
                "waiting_turn": waiting,
                "interrupted_calls": [item.id for item in interrupted],
                "open_questions": [question.id for question in questions],
            }
        )
        return
    turns = counted(len(resumed.state.turns), "turn")
    if left is None and waiting is None:
        say(f"thread {record.thread_id}, {turns}: the last one was not interrupted")
    else:
        what = "was interrupted" if waiting is None else "waits for an answer"
        say(f"thread {record.thread_id}, {turns}: the last one {what}")
        rows = [(item.id, item.server, item.tool, item.error.message if item.error else "") for item in interrupted]
        print_table(Table(("call", "server", "tool", "what is known"), rows, "no call was running"))
    print_open(questions)
    if waiting is not None:
        say(f"answer with: interlock exec --thread {record.thread_id}")
        say(f"or give the turn up with: interlock threads resume {record.thread_id} --interrupt")
    else:
        say(f"go on with: interlock exec --thread {record.thread_id} PROMPT")


async def fork(thread: str, turn: str | None, closing: AsyncExitStack) -> None:
    host, record = await _open(thread, closing)
    print_text((await host.fork_thread(record.thread_id, turn)).id)


async def rollback(thread: str, turns: int, closing: AsyncExitStack) -> None:
    resumed = await _resume(thread, closing)
    await _interrupt(resumed)
    await resumed.rollback(turns)
    say(f"thread {resumed.id} has {counted(len(resumed.state.turns), 'turn')} now")


async def compact(thread: str, model: str | None, config: Path | None, closing: AsyncExitStack) -> None:
    from interlock.surfaces.cli.execution import model_for

    chosen = model_for(read_configuration(config).model, model)
    host, record = await _open(thread, closing, chosen)
    print_text(await (await host.resume_thread(record.thread_id)).compact())


async def archive(thread: str, undo: bool, closing: AsyncExitStack) -> None:
    host, record = await _open(thread, closing)
    await host.archive_thread(record.thread_id, not undo)


async def delete(thread: str, sure: bool, closing: AsyncExitStack) -> int:
    host, record = await _open(thread, closing)
    about = record.name or record.preview
    if not sure and not at_terminal(sys.stdin):
        raise InvalidRequest(f"cannot ask whether thread {record.thread_id} shall be forgotten; use --yes")
    question = one_line(f"forget thread {record.thread_id} ({about}) for ever? [y/N] ")
    if not sure and not await anyio.to_thread.run_sync(_agreed, question, abandon_on_cancel=True):
        return 1
    await host.delete_thread(record.thread_id)
    return 0


async def export(thread: str, file: Path | None, closing: AsyncExitStack) -> None:
    """Lines of JSON on stdout, or in a new file."""
    host, record = await _open(thread, closing)
    out = sys.stdout if file is None else closing.enter_context(_new_file(file))
    async with aclosing(host.export_thread(record.thread_id)) as lines:
        async for line in lines:
            out.write(line + "\n")
    out.flush()


async def bring_in(file: Path, new: bool, closing: AsyncExitStack) -> None:
    """The id of the imported thread; `-` reads stdin."""
    host = await closing.enter_async_context(Host(store=home() / STORE_FILE))
    print_text(await host.import_thread(_lines(file), new=new))


async def show_memory_uses(limit: int, as_json: bool, closing: AsyncExitStack) -> None:
    if not (home() / STORE_FILE).exists():
        uses, names = tuple[MemoryUse, ...](), dict[str, str]()
    else:
        host = await closing.enter_async_context(Host(store=home() / STORE_FILE))
        uses = await host.memory_uses(limit=limit)
        names = {record.thread_id: record.name or record.preview for record in await host.threads(limit=1000)}
    if as_json:
        print_json({"uses": [{"thread_id": u.thread_id, "uses": u.uses, "last_used_at": u.last_used_at} for u in uses]})
        return
    rows = [(u.thread_id, str(u.uses), time_text(u.last_used_at), names.get(u.thread_id, "")) for u in uses]
    print_table(Table(("thread", "uses", "last used", "about"), rows, "no memory was cited yet"))


async def _interrupt(thread: Thread) -> None:
    """End the turn that waits for an answer; nothing else can run in a thread that has just been resumed here."""
    if thread.running_turn is not None:
        await thread.running_turn.interrupt()


def _interrupted(turn: TurnState) -> list[McpToolCallItem]:
    """The calls that were cut off, by a kill or in order."""
    calls = [item for item in turn.items if isinstance(item, McpToolCallItem)]
    return [item for item in calls if item.error is not None and item.error.code in ("interrupted", "cancelled")]


async def _open(thread: str, closing: AsyncExitStack, model: Model | None = None) -> tuple[Host, ThreadRecord]:
    """A host without servers over the store of the home folder, and the thread that is meant."""
    file = home() / STORE_FILE
    if not file.exists():
        raise InvalidRequest(f"there is no thread {thread!r}; nothing is stored yet")
    async with open_store(file) as store:
        record = await find_thread(store.threads, thread)
    return await closing.enter_async_context(Host(store=file, model=model)), record


async def _resume(thread: str, closing: AsyncExitStack) -> Thread:
    host, record = await _open(thread, closing)
    return await host.resume_thread(record.thread_id)


def _agreed(question: str) -> bool:
    return input(question).strip().lower() == "y"


def _new_file(file: Path) -> TextIO:
    try:
        return file.open("x", encoding="utf-8")
    except OSError as error:
        raise InvalidRequest(f"cannot write {file}: {(error.strerror or str(error)).lower()}; name another") from error


async def _lines(file: Path) -> AsyncIterator[str]:
    """The lines of a file, read one at a time: a long thread does not have to fit into memory."""
    try:
        with sys.stdin if str(file) == "-" else file.open(encoding="utf-8") as lines:
            for line in lines:
                yield line
    except OSError as error:
        raise InvalidRequest(
            f"cannot import {file}: {(error.strerror or str(error)).lower()}; check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"cannot import {file}: it is not UTF-8, so no export") from error
