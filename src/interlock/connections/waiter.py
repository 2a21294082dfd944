"""One request that is waited for.

Owns: its outcome, and its deadline with everything that makes it stand still (CON-11).
Never: sends anything, or knows which other requests there are.
"""

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from interlock.connections.deadlines import Deadlines
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.ports import OnProgress, Respondent

RequestId: TypeAlias = int | str
OnLateAnswer: TypeAlias = Callable[[JsonObject | ServerFailed], None]
"""Hears what came of a request that nobody waits for any more, at most once; it must not wait and must not raise."""


class Waiter:
    """`outcome` resolves to the result or to the error to raise, and never holds an exception: nobody may be left to
    retrieve it. `timeout` is seconds, None for ever; `expired` is called once they are over, if it runs."""

    __slots__ = (
        "_deadline",
        "_deadlines",
        "_expired",
        "_held",
        "_remaining",
        "_request_id",
        "_standstill",
        "_stood",
        "method",
        "mistyped",
        "on_late_answer",
        "on_progress",
        "outcome",
        "respondent",
        "timeout",
    )

    def __init__(
        self,
        request_id: RequestId,
        method: str,
        outcome: "asyncio.Future[JsonObject | ServerFailed]",
        timeout: float | None,
        deadlines: Deadlines,
        expired: Callable[[RequestId], None],
        on_progress: OnProgress | None,
        respondent: Respondent | None,
        on_late_answer: OnLateAnswer | None = None,
    ) -> None:
        self.method = method
        self.respondent = respondent
        self.outcome = outcome
        self.timeout = timeout
        self.on_progress = on_progress
        self.on_late_answer = on_late_answer
        self.mistyped = False
        self._deadlines = deadlines
        self._request_id = request_id
        self._expired = expired
        self._standstill = None if respondent is None else respondent.standstill
        self._stood = 0.0
        self._deadline = 0.0
        self._remaining = timeout
        self._held = False

    def settle(self, outcome: JsonObject | ServerFailed) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)
        elif self.on_late_answer is not None:
            self.on_late_answer(outcome)

    # ---- time

    def run(self) -> None:
        """Let its time go on."""
        self._held = False
        if self._remaining is None:
            return
        self._deadline = self.outcome.get_loop().time() + self._remaining
        if self._standstill is not None:
            self._stood = self._standstill.seconds
        self._deadlines.put(self, self._deadline)

    def hold(self) -> None:
        """Let its time stand still until it runs again."""
        self._held = True
        if self._deadlines.take(self):
            self._remaining = self._deadline - self.outcome.get_loop().time() + self._owed()

    def stop(self) -> None:
        """Nobody waits any more."""
        self._deadlines.take(self)

    def look(self) -> None:
        """The time is over, but for what stood still meanwhile."""
        owed = self._owed()
        if self._standstill is not None and self._standstill.at_end(self._go_on):
            self._remaining = owed
        elif owed > 0:
            self._remaining = owed
            self.run()
        else:
            self._expired(self._request_id)

    def _go_on(self) -> None:
        if self not in self._deadlines and not self._held and not self.outcome.done():
            self.run()

    def _owed(self) -> float:
        return 0.0 if self._standstill is None else self._standstill.seconds - self._stood
