"""The clock that this room's deadlines are on.

Owns: the one way to read it.
Never: waits.
"""

import asyncio


def now() -> float:
    """Seconds on anyio's clock. `anyio.current_time` gives the same, but finds out first which event loop library runs;
    opening a connection reads the clock a dozen times, and every call reads it."""
    return asyncio.get_running_loop().time()
