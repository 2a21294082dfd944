"""The verbs that every subject is measured by.

Owns: Place, Client, Subject, and the way to open many clients side by side.
Never: imports a subject.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

TOOL, ARGUMENTS = "look_up_00000", {"words": "railway"}
TOUCH = "touch"
LONGEST_MESSAGE = 1 << 30

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a server is: a command to start, or a URL."""

    name: str
    command: tuple[str, ...] = ()
    url: str | None = None


class Client(Protocol):
    """One server, as a program sees it through the subject."""

    async def call(self) -> None:
        """Call TOOL with ARGUMENTS and look at the answer; raise if it is not the one that the servers give."""

    async def tools(self) -> int:
        """List every page, convert the tools to what the subject hands to a model, and count them."""

    async def touch(self) -> None:
        """Have the server change its list of tools, and read it again."""

    async def read(self, uri: str) -> int:
        """Read a resource and return the length of its text or blob, in characters."""


class Subject(Protocol):
    def open(self, places: Sequence[Place]) -> AbstractAsyncContextManager[Sequence[Client]]:
        """All of `places` connected side by side, as far as the subject can; leaving closes them all."""


def expect(condition: bool, what: object) -> None:
    if not condition:
        raise AssertionError(f"a subject gave a wrong answer: {what!r:.300}")


@asynccontextmanager
async def side_by_side(contexts: Iterable[AbstractAsyncContextManager[T]]) -> AsyncIterator[list[T]]:
    """Enter and leave each context in a task of its own, all at once."""
    leaving = asyncio.Event()

    async def hold(context: AbstractAsyncContextManager[T], entered: "asyncio.Future[T]") -> None:
        try:
            async with context as value:
                entered.set_result(value)
                await leaving.wait()
        except BaseException as error:
            if not entered.done():
                entered.set_exception(error)
            raise

    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as tasks:
        entering = list[asyncio.Future[T]]()
        for context in contexts:
            entering.append(loop.create_future())
            tasks.create_task(hold(context, entering[-1]))
        try:
            yield list(await asyncio.gather(*entering))
        finally:
            leaving.set()
