"""The demonstration: a Host, four servers, one turn of a scripted model, told as it happens.

Owns: the order of what is shown.
Never: reaches behind the public face of the library; an application could be written like this.
"""

import os
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path

import anyio

from interlock import Host, Thread, TurnResult
from interlock.configuration import home_folder
from interlock.demo import telling
from interlock.demo.display import Display, one_line
from interlock.demo.script import PROMPT, scripted_model
from interlock.demo.servers import configured, weather_server
from interlock.history.shown import ShownTools
from interlock.vocabulary.event import CallEnded, CallStarted, MessageCompleted, StepCaptured, StoredEvent, TurnEnded
from interlock.vocabulary.item import AgentMessageItem, McpToolCallItem
from interlock.vocabulary.notice import ProgressNotice

DESTRUCTIVE = "pulp"
"""The tool that has to be approved."""
GRACE = 30.0
"""Seconds that the first step waits for servers: on a slow machine three Python processes take a while."""


Attending = Callable[[Thread], AbstractAsyncContextManager[None]]
"""Somebody who answers questions of the thread while the block runs."""


@asynccontextmanager
async def nobody(thread: Thread) -> AsyncIterator[None]:
    yield


async def run(
    display: Display,
    *,
    store: str | Path | None = None,
    attending: Attending = nobody,
    resume: str | None = None,
) -> TurnResult:
    """Show one turn on `display`. `store`: a database (default: interlock.db in the home folder).

    `attending`: who may approve the destructive call; nobody, unless the caller brings somebody. `resume`: go on
    with the thread of an earlier demonstration, which may have been killed at any moment.
    """
    place = store if store is not None else home_folder(os.environ) / "interlock.db"
    display.line("Interlock stands between a language model and its MCP servers.", "strong")
    display.line("Here a scripted model works with four servers on this machine: two child processes, one over")
    display.line("HTTP, and one that is broken. Everything else is real. No key and no network are needed.")
    display.line("starting the servers …", "dim")
    async with weather_server() as url, Host(configured(url), store=place, grace=GRACE) as host:
        if resume is None:
            thread = await host.start_thread(name="demo")
        else:
            thread = await host.resume_thread(resume)
            _show_interrupted(display, thread)
        display.line(f"stop me whenever you like, and go on with: {_command()} demo --resume {thread.id}", "dim")
        story = _Story(thread, display)
        async with attending(thread):
            result = await _watch_turn(thread, story)
        story.show_end(result)
    display.line("Where it is kept", "heading")
    display.line(f"  thread {thread.id} in {place}")
    display.line(f"  see it again: {_command()} threads show {thread.id}", "strong")
    return result


async def _watch_turn(thread: Thread, story: "_Story") -> TurnResult:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(story.follow_progress)
        after, turns = thread.state.last_sequence, len(thread.state.turns)
        turn = await thread.start_turn(PROMPT, model=scripted_model(turns))
        await story.follow_facts(after)
        result = await turn.finished()
        tasks.cancel_scope.cancel()
    return result


def _show_interrupted(display: Display, thread: Thread) -> None:
    """What the host that ran the thread before cut off, or left open when it was killed; all of it has ended now."""
    display.line("Where the last demonstration was interrupted", "heading")
    last = thread.state.turns[-1] if thread.state.turns else None
    if last is None or last.status != "interrupted":
        display.line("  nowhere: it came to its end" if last is not None else "  before it began")
        return
    calls = [item for item in last.items if isinstance(item, McpToolCallItem)]
    cut = [item for item in calls if item.error is not None and item.error.code in ("interrupted", "cancelled")]
    display.line(f"  its turn was cut off after {len(calls) - len(cut)} calls had ended")
    for item in cut:
        display.line(f"  ✗ {item.server}  {item.tool}  {telling.outcome(item)}", "bad")


class _Story:
    """What happens in the turn, line by line. Facts come from stored events, progress from notices."""

    def __init__(self, thread: Thread, display: Display) -> None:
        self._thread = thread
        self._display = display
        self._running: dict[str, McpToolCallItem] = {}
        self._steps = 0
        self._began = self._ended = self._failed = 0

    async def follow_facts(self, after: int) -> None:
        """Show the stored events of the turn, which are above `after`, until it has ended.

        The earlier ones are read too: what a Step was shown may be stored with one of them.
        """
        tools = ShownTools()
        async with aclosing(self._thread.events()) as events:
            async for stored in events:
                if not isinstance(stored, StoredEvent):
                    continue
                shown = tools.take(stored.event) if isinstance(stored.event, StepCaptured) else None
                if stored.sequence > after:
                    self._show(stored, shown or ())
                    if isinstance(stored.event, TurnEnded):
                        return

    async def follow_progress(self) -> None:
        async for notice in self._thread.notices():
            if isinstance(notice, ProgressNotice) and (item := self._running.get(notice.call_id)) is not None:
                done = notice.progress
                total = f" of {done.total:g}" if done.total is not None else ""
                words = one_line(done.message or "")
                self._display.line(f"  … {item.server}  {item.tool}  {done.progress:g}{total}  {words}", "dim")

    def _show(self, stored: StoredEvent, shown: tuple[str, ...]) -> None:
        match stored.event:
            case StepCaptured(pending=pending):
                self._step(shown, pending)
            case MessageCompleted(item=AgentMessageItem(text=text)):
                self._display.line(f"  the model says: {one_line(text, 1000)}")
            case CallStarted(item=item):
                self._began += 1
                self._running[item.id] = item
            case CallEnded(item=item):
                self._ended += 1
                self._running.pop(item.id, None)
                self._end_of(item)
            case _:
                pass

    def _step(self, tools: tuple[str, ...], pending: tuple[str, ...]) -> None:
        self._steps += 1
        if self._steps == 1:
            self._servers()
            self._catalogue(tools, pending)
            self._display.line("The turn, as it happens", "heading")
            self._display.line(f"  the user says: {PROMPT}")

    def _servers(self) -> None:
        self._display.line("The servers: a broken one takes nothing away but itself", "heading")
        rows = [telling.server_row(report) for report in self._thread.reports()]
        self._display.table(("server", "transport", "state", ""), rows)

    def _catalogue(self, tools: tuple[str, ...], pending: tuple[str, ...]) -> None:
        catalog = self._thread.snapshot.catalog
        self._display.line(f"The tools that the model sees: one catalogue (revision {catalog.revision})", "heading")
        rows = []
        for name in tools:
            entry = catalog.get(name)
            server, hint = (entry.server, telling.hint(entry.tool)) if entry is not None else ("the host", "reads")
            rows.append((name, server, hint))
        self._display.table(("name for the model", "of server", "says that it"), rows)
        if pending:
            self._display.line(f"  still starting, joining later: {', '.join(pending)}", "dim")

    def _end_of(self, item: McpToolCallItem) -> None:
        server = "all servers" if item.server == "interlock" else item.server
        text = f"{server}  {item.tool}  {item.duration or 0} ms  {telling.outcome(item)}"
        if item.status == "completed":
            self._display.line(f"  ✓ {text}", "good")
        else:
            self._failed += 1
            self._display.line(f"  ✗ {text}", "bad")

    def show_end(self, result: TurnResult) -> None:
        line = self._display.line
        if result.error is not None:
            line(f"  the turn failed: {result.error}", "bad")
        line("What to take from it", "heading")
        line(f"  {self._began} calls began and {self._ended} ended, {self._failed} failed; the turn {result.status}.")
        line("  The broken server is named beside the others' results, never shown as an empty success.")
        line(f"  {self._about_the_destructive_call()}")
        line("  Each call was stored before it was sent, and its end before it was shown here.")

    def _about_the_destructive_call(self) -> str:
        calls = [item for item in self._thread.items if isinstance(item, McpToolCallItem) and item.tool == DESTRUCTIVE]
        if any(item.status == "completed" for item in calls):
            return "The destructive tool was called because you approved it, after you saw its arguments."
        return "The destructive tool was refused before anything was sent: nobody had approved it."


def _command() -> str:
    """What the reader can type to start `interlock`: its name where it is on PATH, else the file beside this Python."""
    beside = Path(sys.executable).parent / "interlock"
    return "interlock" if shutil.which("interlock") or not beside.exists() else shlex.quote(str(beside))
