"""The person of a scenario: what is done with the questions of the animals.

Owns: answering them as the scenario says, through the Thread as an application does.
Never: answers what does not fit; a form that cannot be filled in is declined.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from interlock import Accept, Decline, InvalidRequest, Thread
from interlock.vocabulary.question import Answer, Question


@asynccontextmanager
async def somebody(thread: Thread, host: dict[str, Any]) -> AsyncIterator[None]:
    """Listens while the block runs; `host["elicitation"]` is accept, decline or hang, absent: nobody is there."""
    if "elicitation" not in host:
        yield
        return
    async with thread.audience("thread") as questions, anyio.create_task_group() as tasks:

        async def attend() -> None:
            async for question in questions:
                await _answer(thread, question, host)

        if host["elicitation"] != "hang":
            tasks.start_soon(attend)
        yield
        tasks.cancel_scope.cancel()


async def _answer(thread: Thread, question: Question, host: dict[str, Any]) -> None:
    try:
        await thread.answer(question.id, _wanted(question, host))
    except InvalidRequest as error:
        if "problems" in error.facts:
            await thread.answer(question.id, Decline())


def _wanted(question: Question, host: dict[str, Any]) -> Answer:
    if host["elicitation"] == "decline":
        return Decline()
    by_message: dict[str, Any] = host.get("answer_by_message", {})
    return Accept(next((answer for word, answer in by_message.items() if word in question.message), host.get("answer")))
