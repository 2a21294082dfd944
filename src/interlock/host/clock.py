"""The time of the machine.

Owns: the port Clock for real use.
Never: is used by tests that want to own time.
"""

import time


class SystemClock:
    """Wall time for events, monotonic time for durations."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now_milliseconds(self) -> int:
        return time.time_ns() // 1_000_000
