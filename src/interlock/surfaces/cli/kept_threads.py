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

from interlock.history.clip import token_budget
from interlock.history.journal import Journal
from interlock.host.clock import SystemClock
from interlock.host.host import Host
from interlock.origins.store import Origins
from interlock.stores import open_store
from interlock.surfaces.cli.opening import is_made, kept_in, read_configuration
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
from interlock.surfaces.cli.stored_threads import ANSWERED, WAITS, find_thread, print_open
from interlock.threads.recovery import close_what_was_left_open, going_on
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.event import ThreadRecord
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.memory import MemoryUse
from interlock.vocabulary.ports import Model
from interlock.vocabulary.thread import ThreadState, TurnState


async def resume(thread: str, interrupt: bool, as_json: bool, closing: AsyncExitStack) -> None:
    """Close what a killed host left open, and show it; the thread stays for `exec --thread`.

    A turn that waits for an answer goes on waiting, unless `interrupt` ends it.
    """
    state = await _with_ends(thread, interrupt=interrupt)
    last = state.turns[-1] if state.turns else None
    left = last.turn_id if last is not None and last.status == "interrupted" else None
    waiting = state.open_turn
    interrupted = [] if last is None or (left is None and waiting is None) else _interrupted(last)
    if as_json:
        print_json(
            {
                "thread_id": state.thread_id,
                "interrupted_turn": left,
                "waiting_turn": waiting,
                "interrupted_calls": [item.id for item in interrupted],
                "open_questions": [question.id for question in state.open_questions],
            }
        )
        return
    turns = counted(len(state.turns), "turn")
    if left is None and waiting is None:
        say(f"thread {state.thread_id}, {turns}: the last one was not interrupted")
    else:
        what = "was interrupted" if waiting is None else WAITS if state.open_questions else ANSWERED
        say(f"thread {state.thread_id}, {turns}: the last one {what}")
        rows = [(item.id, item.server, item.tool, item.error.message if item.error else "") for item in interrupted]
        headings = ("call", "server", "tool", "what is known")
        print_table(Table(headings, rows, "no call was running", names=headings[:3]))
    print_open(state.open_questions)
    if waiting is not None:
        how = "answer" if state.open_questions else "go on"
        say(f"{how} with: interlock exec --thread {state.thread_id}")
        say(f"or give the turn up with: interlock threads resume {state.thread_id} --interrupt")
    else:
        say(f"go on with: interlock exec --thread {state.thread_id} PROMPT")


async def fork(thread: str, turn: str | None, as_json: bool, closing: AsyncExitStack) -> None:
    host, record = await _open(thread, closing)
    made = (await host.fork_thread(record.thread_id, turn)).id
    print_json({"thread_id": made}) if as_json else print_text(made)


async def rollback(thread: str, turns: int, as_json: bool, closing: AsyncExitStack) -> None:
    ended = await _with_ends(thread, interrupt=True)
    host, _ = await _open(ended.thread_id, closing)
    resumed = await host.resume_thread(ended.thread_id)
    await resumed.rollback(turns)
    left = len(resumed.state.turns)
    say(f"thread {resumed.id} has {counted(left, 'turn')} now")
    if as_json:
        print_json({"thread_id": resumed.id, "turns": left})


async def compact(thread: str, model: str | None, config: Path | None, as_json: bool, closing: AsyncExitStack) -> None:
    from interlock.surfaces.cli.execution import model_for

    chosen = model_for(read_configuration(config).model, model)
    host, record = await _open(thread, closing, chosen)
    if going_on(await host.read_thread(record.thread_id)):
        raise InvalidRequest(
            f"cannot compact thread {record.thread_id}: its last turn waits for an answer; answer with "
            f"`interlock exec --thread {record.thread_id}`, or give the turn up with "
            f"`interlock threads resume {record.thread_id} --interrupt`"
        )
    summary = await (await host.resume_thread(record.thread_id)).compact()
    print_json({"thread_id": record.thread_id, "summary": summary}) if as_json else print_text(summary)


async def archive(thread: str, undo: bool, as_json: bool, closing: AsyncExitStack) -> None:
    host, record = await _open(thread, closing)
    await host.archive_thread(record.thread_id, not undo)
    if as_json:
        print_json({"thread_id": record.thread_id, "archived": not undo})


async def delete(thread: str, sure: bool, as_json: bool, closing: AsyncExitStack) -> int:
    host, record = await _open(thread, closing)
    about = record.name or record.preview
    if not sure and not at_terminal(sys.stdin):
        raise InvalidRequest(f"cannot ask whether thread {record.thread_id} shall be forgotten; use --yes")
    question = one_line(f"forget thread {record.thread_id} ({about}) for ever? [y/N] ")
    if not sure and not await anyio.to_thread.run_sync(_agreed, question, abandon_on_cancel=True):
        if as_json:
            print_json({"thread_id": record.thread_id, "deleted": False})
        return 1
    await host.delete_thread(record.thread_id)
    if as_json:
        print_json({"thread_id": record.thread_id, "deleted": True})
    return 0


async def export(thread: str, file: Path | None, as_json: bool, closing: AsyncExitStack) -> None:
    """Lines of JSON on stdout, or in a new file, which `as_json` names."""
    host, record = await _open(thread, closing)
    out = sys.stdout if file is None else closing.enter_context(_new_file(file))
    async with aclosing(host.export_thread(record.thread_id)) as lines:
        async for line in lines:
            out.write(line + "\n")
    out.flush()
    if as_json and file is not None:
        print_json({"thread_id": record.thread_id, "file": str(file)})


async def bring_in(file: Path, new: bool, as_json: bool, closing: AsyncExitStack) -> None:
    """The id of the imported thread; `-` reads stdin."""
    host = await closing.enter_async_context(Host(store=kept_in()))
    stored = await host.import_thread(_lines(file), new=new)
    print_json({"thread_id": stored}) if as_json else print_text(stored)


async def show_memory_uses(limit: int, as_json: bool, closing: AsyncExitStack) -> None:
    if not is_made(kept_in()):
        uses, names = tuple[MemoryUse, ...](), dict[str, str]()
    else:
        host = await closing.enter_async_context(Host(store=kept_in()))
        uses = await host.memory_uses(limit=limit)
        names = {record.thread_id: record.name or record.preview for record in await host.threads(limit=1000)}
    if as_json:
        print_json({"uses": [{"thread_id": u.thread_id, "uses": u.uses, "last_used_at": u.last_used_at} for u in uses]})
        return
    rows = [(u.thread_id, str(u.uses), time_text(u.last_used_at), names.get(u.thread_id, "")) for u in uses]
    headings = ("thread", "uses", "last used", "about")
    print_table(Table(headings, rows, "no memory was cited yet", names=("thread",)))


async def _with_ends(thread: str, *, interrupt: bool) -> ThreadState:
    """The thread, once all that a killed host left open has its end; a turn that waits for people: if `interrupt`.

    It is not loaded: where all answers are known, its turn would go on at once, and there are no servers here.
    """
    async with open_store(_place_of(thread)) as store:
        record = await find_thread(store.threads, thread)
        async with Journal.open(
            store, record.thread_id, SystemClock(), followers={"origins": Origins()}, checkpoints=store
        ) as journal:
            journal.refuse_if_new()
            await close_what_was_left_open(journal, output_limit=token_budget(), interrupting=interrupt)
            return journal.state


def _interrupted(turn: TurnState) -> list[McpToolCallItem]:
    """The calls that were cut off, by a kill or in order."""
    calls = [item for item in turn.items if isinstance(item, McpToolCallItem)]
    return [item for item in calls if item.error is not None and item.error.code in ("interrupted", "cancelled")]


async def _open(thread: str, closing: AsyncExitStack, model: Model | None = None) -> tuple[Host, ThreadRecord]:
    """A host without servers over the store, and the thread that is meant."""
    place = _place_of(thread)
    async with open_store(place) as store:
        record = await find_thread(store.threads, thread)
    return await closing.enter_async_context(Host(store=place, model=model)), record


def _place_of(thread: str) -> Path | str:
    place = kept_in()
    if not is_made(place):
        raise InvalidRequest(f"there is no thread {thread!r}; nothing is stored yet")
    return place


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
