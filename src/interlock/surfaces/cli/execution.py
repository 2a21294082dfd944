"""`interlock exec`: one turn of a thread, after the one that waits for an answer, and what is printed of them.

Owns: the model that is asked, streaming at a terminal, the lines of JSON.
Never: prints anything but the answer into a pipe.
"""

import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio

from interlock import models
from interlock.configuration import ModelConfig
from interlock.host.host import Host
from interlock.surfaces.cli.absences import warn_of_absences
from interlock.surfaces.cli.attending import answerer, attending
from interlock.surfaces.cli.event_json import event_json
from interlock.surfaces.cli.opening import home
from interlock.surfaces.cli.output import (
    at_terminal,
    complain,
    harmless,
    one_line,
    print_json,
    print_text,
    say,
    warn,
)
from interlock.surfaces.cli.output_schema import read_schema, why_unlike
from interlock.surfaces.cli.progress import start_progress
from interlock.surfaces.cli.standard_input import read_standard_input
from interlock.surfaces.cli.stored_threads import find_thread
from interlock.threads.notices import NoticeStream
from interlock.threads.thread import Thread
from interlock.threads.turn import Turn, TurnResult
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.event import CallEnded, CallStarted, StoredEvent, ThreadRecord, TurnEnded
from interlock.vocabulary.notice import DeltaNotice
from interlock.vocabulary.policy import Policy

if TYPE_CHECKING:
    from interlock.models.adapter import EndpointModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What may happen without asking, and who is asked; None leaves it to the configuration."""

    allow_tools: bool = False
    answers: Path | None = None
    approval: Literal["never", "on-request"] | None = None
    full_access: bool = False

    def policy(self, configured: Policy) -> Policy:
        return replace(
            configured,
            approval=self.approval or configured.approval,
            full_access=self.full_access or configured.full_access,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The thread of the turn: the one whose id begins so, the newest that is not archived, or a new one."""

    thread: str | None = None
    last: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the thread is one that is stored already."""
        return self.thread is not None or self.last

    async def find(self, host: Host) -> ThreadRecord | None:
        """The stored thread; None for a new one.

        Raises:
            InvalidRequest: there is none, or several, or both were asked for.
        """
        if self.thread is not None and self.last:
            raise InvalidRequest("cannot go on with two threads; use --thread or --last")
        if self.thread is not None:
            return await find_thread(host.threads, self.thread)
        if not self.last:
            return None
        newest = next(iter(await host.threads(limit=1, archived=False)), None)
        if newest is None:
            raise InvalidRequest("there is no thread to go on with; leave --last away")
        return newest


MAXIMUM_PROMPT = 16 * 1024 * 1024
"""Bytes of a prompt from stdin; no model reads as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The prompt (None or "-": it stands on stdin), the model's name, the file of the schema for its last message."""

    prompt: str | None
    model: str | None = None
    output_schema: Path | None = None


async def execute(
    asked: Asked, config: Path | None, where: Where, rules: Rules, as_json: bool, closing: AsyncExitStack
) -> int:
    """Run the turn; 1 when it did not complete, or its answer does not have the form that was asked for.

    A turn that waits for people since another host ran it goes on first; then there need not be another one.
    """
    schema = None if asked.output_schema is None else read_schema(asked.output_schema)
    text = await _prompt(asked.prompt, optional=where.is_known)
    who = answerer(rules.answers)
    host = Host.open(
        config,
        home=home(),
        project=Path.cwd(),
        approvals="allow" if rules.allow_tools else "ask",
        policy=rules.policy,
    )
    model = model_for(host.configuration.model, asked.model)
    for problem in host.problems:
        warn(str(problem))
    await closing.enter_async_context(host)
    record = await where.find(host)
    async with start_progress(host.reports):
        thread = await (host.start_thread() if record is None else host.resume_thread(record.thread_id))
        await closing.enter_async_context(model)  # one client for all samplings, loaded while servers still start
    async with attending(thread, who):
        shown = _Shown(thread, as_json, after=0 if record is None else record.last_sequence)
        result = await _go_on(thread, shown, somebody=who is not None)
        if text is not None:
            result = await shown.turn(partial(thread.start_turn, text, model=model, output_schema=schema))
    if result is None:
        raise InvalidRequest(f"thread {thread.id} waits for no answer; give a prompt to go on with it")
    if result.status != "completed":
        complain(result.error or f"the turn was {result.status}")
        return 1
    warn_of_absences(thread, told=[str(problem) for problem in host.problems])
    if schema is not None and (why := why_unlike(result.last_message, schema)) is not None:
        complain(f"the model's answer does not have the form of {asked.output_schema}: {why}")
        return 1
    return 0


async def _go_on(thread: Thread, shown: "_Shown", *, somebody: bool) -> TurnResult | None:
    """See the turn through that waits for people since another host ran it; None: there is none.

    Raises:
        InvalidRequest: nobody is here who could answer; it goes on waiting.
    """
    turn = thread.taken_up_turn  # it may have ended already: then its end is shown
    if turn is None:
        return None
    if thread.open_questions and not somebody:
        question = thread.open_questions[0]
        raise InvalidRequest(
            f"cannot go on with thread {thread.id}: server {question.server!r} waits for an answer to "
            f"{one_line(question.message)!r}; answer at a terminal or with --answer FILE, or give the turn up with "
            f"`interlock threads resume {thread.id} --interrupt`"
        )
    say("going on with what was asked before")

    async def begun() -> Turn:
        return turn

    return await shown.turn(begun)


async def _prompt(prompt: str | None, *, optional: bool) -> str | None:
    if prompt is None and at_terminal(sys.stdin):
        if optional:
            return None
        raise InvalidRequest(
            'cannot ask nothing: give a prompt, as in `interlock exec "What changed?"`, or pipe one in'
        )
    piped = prompt is None or prompt == "-"
    text = await read_standard_input("the prompt", MAXIMUM_PROMPT) if piped else prompt or ""
    if not text.strip():
        if optional and prompt is None:
            return None
        raise InvalidRequest("cannot ask nothing: the prompt is blank; write what the model shall do")
    return text


def model_for(config: ModelConfig, name: str | None) -> "EndpointModel":
    """The model to ask; a missing name or key is found before any server is started."""
    if name is None and config.name is None:
        raise InvalidRequest(
            'cannot ask a model: none is named; use --model MODEL, or write model = "MODEL" into config.toml'
        )
    config.provider.api_key(os.environ)
    return models.from_configuration(replace(config, name=name or config.name))


@dataclass(slots=True)
class _Shown:
    """What is stored of the thread above `after` is printed, the ends of what was interrupted before it included."""

    thread: Thread
    as_json: bool
    after: int

    async def turn(self, begin: Callable[[], Awaitable[Turn]]) -> TurnResult:
        """The turn that `begin` gives, to its end."""
        thread, after = self.thread, self.after
        notices = thread.notices()
        async with anyio.create_task_group() as tasks:
            turn = await begin()
            unheard = thread.running_turn is not turn
            if self.as_json:
                tasks.start_soon(_print_events, thread, turn, after)
            elif at_terminal(sys.stdout):
                tasks.start_soon(_stream, notices)
            if not self.as_json and at_terminal(sys.stderr):
                tasks.start_soon(_narrate, thread, turn, after)
            result = await turn.finished()
            notices.close()  # the stream ends once it is printed
        self.after = thread.state.last_sequence
        streamed = at_terminal(sys.stdout) and not unheard
        if not self.as_json and not streamed and result.last_message is not None:
            print_text(result.last_message)
        return result


async def _print_events(thread: Thread, turn: Turn, after: int) -> None:
    """Every stored event above `after` up to the turn's end, each on a line."""
    await _follow(thread, turn, after, lambda stored: print_json(event_json(stored)))


async def _narrate(thread: Thread, turn: Turn, after: int) -> None:
    """The calls, on stderr."""

    def tell(stored: StoredEvent) -> None:
        match stored.event:
            case CallStarted(item=item):
                say(f"calling {item.tool} of {item.server}")
            case CallEnded(item=item) if item.status == "failed":
                say(f"{item.tool} of {item.server} failed{': ' + item.error.message if item.error else ''}")
            case _:
                pass

    await _follow(thread, turn, after, tell)


async def _follow(thread: Thread, turn: Turn, after: int, tell: Callable[[StoredEvent], None]) -> None:
    while True:
        async with aclosing(thread.events(after=after)) as events:
            async for stored in events:
                if not isinstance(stored, StoredEvent):
                    break  # we lagged: read again from what we have
                after = stored.sequence
                tell(stored)
                if isinstance(stored.event, TurnEnded) and stored.event.turn_id == turn.id:
                    return
            else:
                return


async def _stream(notices: NoticeStream) -> None:
    """The text as it comes; messages of different steps on lines of their own."""
    item: str | None = None
    async for notice in notices:
        if isinstance(notice, DeltaNotice):
            if item not in (None, notice.item_id):
                sys.stdout.write("\n")
            item = notice.item_id
            sys.stdout.write(harmless(notice.text))
            sys.stdout.flush()
    if item is not None:
        sys.stdout.write("\n")
        sys.stdout.flush()
