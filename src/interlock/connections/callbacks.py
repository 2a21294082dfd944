"""The context in which the event loop calls us back.

Owns: the one context for readers and timers, in which anyio knows its event loop.
Never: calls anything itself.
"""

import contextvars
from functools import cache

try:
    import sniffio
except ModuleNotFoundError:  # anyio needs it no longer; other packages still bring it
    sniffio = None  # type: ignore[assignment]  # the absence of an optional module


def callback_context() -> contextvars.Context:
    """A fresh context for one callback of asyncio, otherwise empty.

    Where sniffio is installed, anyio asks it for the running library, and sniffio finds asyncio
    only inside a task, or where its variable says so. `anyio.run` sets the variable;
    `asyncio.run` does not, so a reader or a timer there could not start a task.
    """
    return _marked().copy()  # a context cannot be entered by two threads' loops at once


@cache
def _marked() -> contextvars.Context:
    context = contextvars.Context()
    if sniffio is not None:
        context.run(sniffio.current_async_library_cvar.set, "asyncio")
    return context
