"""Hosts that kill themselves while a server of 2026-07-28 asks: python kill_loop_questions.py FOLDER

Host number N works on FOLDER/asking/N/interlock.db and is killed by SIGKILL as soon as its N-th append is committed. In
FOLDER/answering every database begins as the same copy, in which a question is open; host number N takes it up,
answers, and is killed after its N-th append. The last one of each lives to its end. Forked from one process, which pays
for the imports once.
"""

import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio

from interlock import Accept, Host
from interlock.stores.sqlite import SqliteStore
from interlock.testing import Call, Say, ScriptedModel, scripted_server
from interlock.threads.thread import Thread
from interlock.vocabulary.event import Event, StoredEvent

LIMIT = 60
"""More appends than the work below makes."""
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
STORE = "interlock.db"


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


def host(folder: Path) -> Host:
    """A server that asks twice, and a model that calls it beside another tool. It is the same server in all folders."""
    asks = [{"ask": {"message": message, "requestedSchema": NAME}} for message in ("Who?", "Sure?")]
    hint = {"readOnlyHint": True}
    tools = [{"name": "ask", "annotations": hint, "do": asks}, {"name": "quick", "annotations": hint}]
    server = scripted_server("e", {"eras": ["stateless"], "tools": tools}, folder.parents[1])
    calls = [Call("mcp__e__ask"), Call("mcp__e__quick", {"n": 1})]
    model = ScriptedModel(lambda request: Say("done") if len(request.entries) > 1 else calls)
    return Host({"e": server}, store=folder / STORE, model=model, grace=20.0)


async def answer_all(thread: Thread) -> None:
    async with thread.audience("thread") as questions:
        async for question in questions:
            await thread.answer(question.id, Accept({"name": f"Ada, to {question.message}"}))


async def ask(folder: Path) -> None:
    """A turn in which all is answered at once."""
    async with host(folder) as opened, anyio.create_task_group() as tasks:
        thread = await opened.start_thread()
        tasks.start_soon(answer_all, thread)
        await (await thread.start_turn("go")).finished()
        await thread.close()


async def stop_while_asking(folder: Path) -> None:
    async with host(folder) as opened:
        thread = await opened.start_thread()
        async with thread.audience("thread") as questions:
            await thread.start_turn("go")
            await anext(questions)
            await thread.close()


async def go_on(folder: Path) -> None:
    """Take the one Thread up, answer whatever is asked, and see its turn through."""
    async with host(folder) as opened, anyio.create_task_group() as tasks:
        (record,) = await opened.threads()
        thread = await opened.resume_thread(record.thread_id)
        tasks.start_soon(answer_all, thread)
        if thread.running_turn is not None:
            await thread.running_turn.finished()
        await thread.close()


def killed_ever_later(folder: Path, work: Callable[[Path], Awaitable[None]], begin: Path | None = None) -> None:
    for appends in range(1, LIMIT):
        place = folder / str(appends)
        if begin is None:
            place.mkdir(parents=True)
        else:
            shutil.copytree(begin, place)
        child = os.fork()
        if child == 0:
            kill_after(appends)
            anyio.run(work, place)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            if os.WEXITSTATUS(status):
                sys.exit(os.WEXITSTATUS(status))
            return
    sys.exit("the work never came to its end")


def main(folder: Path) -> None:
    begin = folder / "stopped" / "begin"
    begin.mkdir(parents=True)
    child = os.fork()
    if child == 0:
        anyio.run(stop_while_asking, begin)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit("the question was never asked")
    killed_ever_later(folder / "asking", ask)
    killed_ever_later(folder / "answering", go_on, begin)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
