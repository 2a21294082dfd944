"""How often memories were used.

Owns: the count of one memory's uses.
Never: says what a memory is about; a memory is made of a Thread, and bears its id.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Answers cited the Thread `thread_id` so many times; `last_used_at` is milliseconds since the Unix epoch."""

    thread_id: str
    uses: int
    last_used_at: int
