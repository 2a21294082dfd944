"""A Thread on its way in from exported lines.

Owns: the check of each line against those before it; the ends that are added, and the line of the index that follows.
Never: stores anything.
"""

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from dataclasses import replace

from interlock.history.clip import token_budget
from interlock.history.consistency import contradiction
from interlock.history.fold import Fold
from interlock.history.journal import MAXIMUM_TOGETHER
from interlock.stores import exchange
from interlock.stores.summary import record_after
from interlock.threads.recovery import going_on, missing_ends
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.event import StoredEvent, ThreadRecord
from interlock.vocabulary.ports import Clock

PAGE_CHARACTERS = 1024 * 1024
"""Of the lines of one page, unless a single one is longer."""


class Arriving:
    """The events of one export, under the id `thread_id`, or their own when it is None.

    A turn that waits for people ends as interrupted: only the Thread that asked may answer, and lines from elsewhere
    must not make a call that nobody here has approved.
    """

    def __init__(self, thread_id: str | None, clock: Clock) -> None:
        self._thread_id = thread_id
        self._clock = clock
        self._source = ""
        self._fold: Fold | None = None
        self._record: ThreadRecord | None = None

    async def pages(self, lines: AsyncIterable[str]) -> AsyncGenerator[Sequence[StoredEvent], None]:
        """The events in their order, the ends that are added among them, in pages of bounded size.

        Raises:
            InvalidRequest: a line cannot be read, or contradicts those before.
        """
        page, characters, number = list[StoredEvent](), 0, 0
        async for line in lines:
            number += 1
            if not line.strip():
                continue
            page.append(self._checked(exchange.from_line(line, number), number))
            characters += len(line)
            if len(page) == MAXIMUM_TOGETHER or characters >= PAGE_CHARACTERS:
                yield self._counted(page)
                page, characters = [], 0
        page += self._ends()
        if page:
            yield self._counted(page)

    def record(self) -> ThreadRecord:
        """The line of the index, once all pages were taken; there was one at least."""
        assert self._record is not None  # noqa: S101 -- as said above
        return self._record

    def _counted(self, page: Sequence[StoredEvent]) -> Sequence[StoredEvent]:
        self._record = record_after(self._record, page)
        return page

    def _ends(self) -> list[StoredEvent]:
        if self._fold is None or not going_on(self._fold.facts):
            return []
        facts, now = self._fold.facts, self._clock.now_milliseconds()
        ends = missing_ends(facts, facts.open_turn or "", self._fold.turn, held=(), output_limit=token_budget())
        return [
            StoredEvent(thread_id=facts.thread_id, sequence=sequence, at=now, event=event)
            for sequence, event in enumerate(ends, facts.last_sequence + 1)
        ]

    def _checked(self, stored: StoredEvent, number: int) -> StoredEvent:
        if self._fold is None:
            self._source = stored.thread_id
            self._fold = Fold(self._thread_id or self._source)
        expected = self._fold.last_sequence + 1
        if (stored.thread_id, stored.sequence) != (self._source, expected):
            raise InvalidRequest(f"cannot import line {number}: it is not event {expected} of thread {self._source}")
        reason = contradiction(self._fold, (stored.event,))
        if reason is not None:
            raise InvalidRequest(f"cannot import line {number}: it cannot come here, {reason}")
        stored = replace(stored, thread_id=self._fold.facts.thread_id)
        self._fold.apply(stored)
        return stored
