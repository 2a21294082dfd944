"""One question to several servers, side by side.

Owns: running it, and keeping each answer or failure under its server's name.
Never: lets one server's failure take away the others' answers, or shows no failure at all (RES-6).
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Generic, TypeVar

import anyio

from interlock.configuration import Configuration
from interlock.surfaces.cli.opening import EMPTY, refuse_unusable, unusable, usable
from interlock.surfaces.cli.output import complain, own_reason, say, with_way_out
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.snapshot import ServerView

Answer = TypeVar("Answer")
Ask = Callable[[ServerView], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Answers(Generic[Answer]):
    """By server name, sorted."""

    given: Mapping[str, Answer]
    failed: Mapping[str, ServerFailed]

    @property
    def status(self) -> int:
        """1 when somebody was asked and everybody failed."""
        return 1 if self.failed and not self.given else 0

    @property
    def errors(self) -> list[dict[str, str]]:
        return [{"server": name, "message": error.message} for name, error in self.failed.items()]

    def complain(self) -> None:
        """Name every failure on stderr."""
        for error in self.failed.values():
            complain(with_way_out(error))


async def ask_one(closing: AsyncExitStack, configuration: Configuration, name: str, ask: Ask[Answer]) -> Answer:
    """The answer of the named server.

    Raises:
        InvalidRequest: there is no such server, or it cannot be used.
        ServerFailed: it gave none.
    """
    refuse_unusable(configuration, name)
    from interlock.surfaces.cli.starting import starting  # here: it loads the MCP SDK, which a wrong name needs not

    async with starting(closing, configuration, [name]) as views:
        return await _asked(ask, views[name])


async def ask_all(closing: AsyncExitStack, configuration: Configuration, ask: Ask[Answer | None]) -> Answers[Answer]:
    """The answers of all enabled servers; one that answers None contributes nothing and no error."""
    from interlock.surfaces.cli.starting import starting

    if not configuration.servers:
        say(EMPTY)
    given: dict[str, Answer] = {}
    failed = unusable(configuration)
    async with starting(closing, configuration, usable(configuration)) as views, anyio.create_task_group() as tasks:

        async def one(name: str) -> None:
            try:
                answer = await _asked(ask, views[name])
                if answer is not None:
                    given[name] = answer
            except ServerFailed as error:
                failed[name] = error

        for name in views:
            tasks.start_soon(one, name)
    return Answers(dict(sorted(given.items())), dict(sorted(failed.items())))


async def _asked(ask: Ask[Answer], view: ServerView) -> Answer:
    try:
        return await ask(view)
    except ServerFailed as error:
        error.args = (own_reason(error),)
        raise
