"""Where the questions of a connection are sent that belong to no known request.

Owns: the way from the owner of a connection to the Thread that can be asked.
Never: asks itself, or makes a server wait for a Thread that has not begun or is gone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from interlock.questions.respondent import Desk
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.question import Elicitation

DECLINED: Final[JsonObject] = {"action": "decline"}


@dataclass(frozen=True, slots=True)
class Reception:
    """The port Respondent for everything that a connection of `owner` is asked; `find` gives the Thread's desk."""

    owner: str
    find: Callable[[str], Desk | None]
    call_id: None = None
    turn_id: None = None
    standstill: None = None

    async def answers(self, elicitations: Sequence[Elicitation]) -> Sequence[JsonObject]:
        desk = self.find(self.owner)
        if desk is None:  # requests of the application, a Thread that is just opening, one that is closed (QST-4)
            return [DECLINED for _ in elicitations]
        return await desk.answers(elicitations)
