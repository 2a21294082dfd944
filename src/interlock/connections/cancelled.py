"""A look for a cancellation, where nothing else would notice it in time.

Owns: the check between a stored fact and what follows from it in the world: a request, a question, a hook.
Never: cancels.
"""

import asyncio

import anyio.lowlevel


async def stop_if_cancelled() -> None:
    """Raise a cancellation that came while a fact was stored, before anything is sent; at no cost if there is none.

    A bare `task.cancel()`, as of asyncio.timeout, is in no scope of anyio and is raised by a real checkpoint only.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        await anyio.lowlevel.checkpoint()
    else:
        await anyio.lowlevel.checkpoint_if_cancelled()
