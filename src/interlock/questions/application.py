"""Code of an application (a reviewer, a hook), run on its behalf.

Owns: its bound in time, and the difference between our own cancellation and one that the code met inside itself.
Never: judges what comes back, or lets what such code raises pass for the end of the caller.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

Returned = TypeVar("Returned")


class CancelledItself(RuntimeError):
    """The code ended with a cancellation that nobody had asked for: of a task of its own that it waited for, say."""


async def run(function: Callable[[], "Awaitable[Returned] | Returned"], *, patience: float) -> Returned:
    """What `function` returns, awaited where that is needed.

    Raises:
        TimeoutError: it took longer than `patience` seconds.
        CancelledItself: see there. Whatever else the function raises passes through.
    """
    try:
        with anyio.fail_after(patience):
            returned = function()
            if inspect.isawaitable(returned):
                awaited: Returned = await returned
                return awaited
            return returned
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise CancelledItself("a cancellation that nobody had asked for") from error
