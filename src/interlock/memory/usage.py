"""The count of uses, beside the visible answer and never in it.

Owns: that a cited memory is counted once for each message that cites it (MEM-5).
Never: raises, makes a turn wait, or tells people of its failures.
"""

import logging
from collections.abc import Sequence

import anyio

from interlock.vocabulary.ports import Clock, MemoryUses

logger = logging.getLogger(__name__)

MAXIMUM_WAITING = 100
"""Messages that wait to be counted; with a store so slow, those that come then are not counted."""


class Accounting:
    """Counts for one Thread, in whatever task calls `count`."""

    def __init__(self, store: MemoryUses, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting = 0

    def __repr__(self) -> str:
        return f"<Accounting waiting={self._waiting}>"

    async def count(self, rollout_ids: Sequence[str]) -> None:
        """One use more for each id. Once begun it is seen through, also when the Thread closes."""
        if not rollout_ids or self._waiting >= MAXIMUM_WAITING:
            return
        self._waiting += 1
        try:
            with anyio.CancelScope(shield=True):
                await self._store.count_memory_uses(rollout_ids, at=self._clock.now_milliseconds())
        except Exception:
            logger.info("the uses of %d memories were not counted", len(rollout_ids), exc_info=True)
        finally:
            self._waiting -= 1
