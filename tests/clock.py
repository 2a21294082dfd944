"""Time that passes without being waited for."""

import asyncio


def let_pass(seconds: float) -> None:
    """Move the clock of the running event loop on: whatever was due within these `seconds` is due now.

    A deadline in a test is then long enough for the slowest machine, and still over at once.
    """
    loop = asyncio.get_running_loop()
    clock = loop.time
    loop.time = lambda: clock() + seconds  # type: ignore[method-assign]
