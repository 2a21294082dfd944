"""One client that can be asked for one thread.

Owns: its place in the thread's audience, the requests that put questions to it, and telling it when they are settled.
Never: decides a question that another client may still answer, or leaves one open for a client that is gone.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import anyio.abc

from interlock.surfaces.rpc.client import LOST, Ask, Client
from interlock.surfaces.rpc.question_shapes import METHOD, answer_of, request_params
from interlock.threads.thread import Thread
from interlock.vocabulary.errors import InterlockError, InvalidRequest
from interlock.vocabulary.question import Answer, Decline, Question

logger = logging.getLogger(__name__)


class Attendance:
    """It counts as listening from the moment in which `run` has started; questions are put once it has begun."""

    def __init__(self, client: Client, thread: Thread) -> None:
        self._client = client
        self._thread = thread
        self._scope = anyio.CancelScope()
        self._begun = anyio.Event()

    def __repr__(self) -> str:
        return f"<Attendance of {self._client.name} at {self._thread.id} begun={self._begun.is_set()}>"

    def begin(self) -> None:
        """Put the questions that are open, and those to come."""
        self._begun.set()

    def end(self) -> None:
        """Leave; when nobody else listens, open questions are declined."""
        self._scope.cancel()

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        with self._scope:
            async with self._thread.audience("thread") as questions:
                task_status.started()
                await self._begun.wait()
                async with anyio.create_task_group() as asks:
                    async for question in questions:
                        asks.start_soon(self._put, question, name=f"question {question.id}")

    async def _put(self, question: Question) -> None:
        """Ask, until this client answers or the question is settled elsewhere."""
        ask = self._client.ask(METHOD, request_params(self._thread.id, question))
        async with anyio.create_task_group() as waiting:
            for end in (partial(self._thread.question_closed, question.id), ask.settled.wait):
                waiting.start_soon(_first, end, waiting.cancel_scope)
        if ask.settled.is_set():
            await self._deliver(question, ask)
        self._client.peer.forget(ask.id)
        self._client.notify("serverRequest/resolved", {"threadId": self._thread.id, "requestId": ask.id})

    async def _deliver(self, question: Question, ask: Ask) -> None:
        if ask.error is LOST:
            return  # who is gone leaves the audience, and that settles what nobody else can answer
        try:
            await self._thread.answer(question.id, answer_of(question, ask.result, ask.error), server=question.server)
        except InvalidRequest as error:
            await self._decline_instead(question, error)
        except InterlockError as error:
            self._warn(f"the answer to server {question.server!r} could not be given: {error.message}")

    async def _decline_instead(self, question: Question, error: InvalidRequest) -> None:
        """An answer that does not fit is a no (RPC-5); one that came too late changes nothing."""
        if question.id not in {one.id for one in self._thread.open_questions}:
            return
        self._warn(f"{error.message}; it counts as a decline")
        no: Answer = Decline("the client's answer did not fit the form")
        try:
            await self._thread.answer(question.id, no, server=question.server)
        except InterlockError as failure:
            logger.debug("question %s was settled meanwhile: %s", question.id, failure)

    def _warn(self, sentence: str) -> None:
        self._client.notify("warning", {"threadId": self._thread.id, "message": sentence})


async def _first(end: Callable[[], Awaitable[object]], scope: anyio.CancelScope) -> None:
    await end()
    scope.cancel()
