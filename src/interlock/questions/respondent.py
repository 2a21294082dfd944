"""A Thread as its servers reach it.

Owns: which request, call and turn the questions of a server are asked for.
Never: decides, waits by itself, or asks before the Thread has begun.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from interlock.questions.asking import Asking
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.ports import Standstill
from interlock.vocabulary.question import Elicitation


@dataclass(frozen=True, slots=True)
class Desk:
    """The port Respondent over the questions of one Thread; without ids, for requests that belong to no call."""

    asking: Asking
    call_id: str | None = None
    turn_id: str | None = None

    @property
    def standstill(self) -> Standstill:
        return self.asking.standstill

    async def answers(self, elicitations: Sequence[Elicitation]) -> Sequence[JsonObject]:
        return await self.asking.elicit(elicitations)
