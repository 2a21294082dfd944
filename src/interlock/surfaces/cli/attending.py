"""Somebody who answers the questions of a turn at the command line.

Owns: who that is (a person at a terminal, a file, or nobody), one question after another.
Never: answers without a person or a file, or keeps a prompt for a question that is settled.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.abc

from interlock.surfaces.cli.output import at_terminal, say, warn
from interlock.threads.thread import Thread
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.question import Answer, Decline, Question

Answerer = Callable[[Question], Awaitable[Answer]]


def answerer(answers: Path | None) -> Answerer | None:
    """The file, else the person at the terminal, else nobody. InvalidRequest: the file cannot be used."""
    if answers is not None:
        from interlock.surfaces.cli.answer_file import read_answers

        return partial(_read_off, read_answers(answers).answer)
    if at_terminal(sys.stdin) and at_terminal(sys.stderr):
        from interlock.surfaces.cli.dialogue import ask
        from interlock.surfaces.cli.prompting import PromptTerminal

        return partial(ask, PromptTerminal())
    return None


@asynccontextmanager
async def attending(thread: Thread, who: Answerer | None) -> AsyncIterator[None]:
    """While the block runs, `who` is the audience; without anybody questions are declined (QST-4)."""
    if who is None:
        yield
        return
    async with anyio.create_task_group() as tasks:
        await tasks.start(_attend, thread, who)
        yield
        tasks.cancel_scope.cancel()


async def _attend(
    thread: Thread, who: Answerer, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    async with thread.audience("thread") as questions:
        task_status.started()
        async for question in questions:
            await _put(thread, who, question)


async def _put(thread: Thread, who: Answerer, question: Question) -> None:
    answer: Answer | None = None
    async with anyio.create_task_group() as both:

        async def ask() -> None:
            nonlocal answer
            answer = await who(question)
            both.cancel_scope.cancel()

        async def until_closed() -> None:
            await thread.question_closed(question.id)
            both.cancel_scope.cancel()

        both.start_soon(until_closed)
        both.start_soon(ask)
    if answer is None:
        say("the question is no longer needed")
        return
    await _give(thread, question, answer)


async def _give(thread: Thread, question: Question, answer: Answer) -> None:
    try:
        await thread.answer(question.id, answer, server=question.server)
    except InvalidRequest as error:
        if question.id in {one.id for one in thread.open_questions}:
            warn(f"{error.message}; it is declined")
            await _give(thread, question, Decline("the answer did not fit"))
        else:
            say("the question is no longer needed")


async def _read_off(answer: Callable[[Question], Answer], question: Question) -> Answer:
    return answer(question)
