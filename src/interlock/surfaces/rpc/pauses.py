"""Pauses of a thread's deadlines, while clients ask people something by other means than this wire.

Owns: how many there are of one thread, and which client began each (CON-11).
Never: lasts for ever for a client that is gone.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

import anyio

from interlock.surfaces.rpc.client import Client
from interlock.threads.thread import Thread
from interlock.vocabulary.errors import InvalidRequest

PATIENCE: Final = 10 * 60.0
"""Seconds for which a pause lasts on when the client that began it has left. Some clients are programs that connect
only to say that somebody is being asked, and connect again to say that it is over."""

MAXIMUM: Final = 1000
"""Pauses of one thread at a time."""


@dataclass(slots=True, eq=False)
class Pause:
    """`client`: who began it and is still there, else None."""

    client: Client | None
    lasting: ExitStack = field(default_factory=ExitStack)


class Pauses:
    """Those of one loaded thread, oldest first."""

    def __init__(self, thread: Thread, *, patience: float = PATIENCE) -> None:
        self._thread = thread
        self._patience = patience
        self._open: list[Pause] = []

    def __repr__(self) -> str:
        return f"<Pauses of {self._thread.id} open={self.count}>"

    @property
    def count(self) -> int:
        return len(self._open)

    def begin(self, client: Client) -> None:
        """InvalidRequest: there are too many."""
        if len(self._open) >= MAXIMUM:
            raise InvalidRequest(f"thread {self._thread.id} has {MAXIMUM} elicitations already; take some back first")
        pause = Pause(client)
        pause.lasting.enter_context(self._thread.deadlines_paused())
        self._open.append(pause)

    def end(self, client: Client) -> None:
        """End one: of this client, else of one that has left, else any: whoever speaks here acts for the user.

        Raises:
            InvalidRequest: there is none.
        """
        if not self._open:
            raise InvalidRequest(f"thread {self._thread.id} has no elicitation to take back")
        self._end(min(self._open, key=lambda pause: 0 if pause.client is client else 1 if pause.client is None else 2))

    def leave(self, client: Client) -> tuple[Pause, ...]:
        """The client is gone: those that it began, which `end_later` is to end."""
        left = tuple(pause for pause in self._open if pause.client is client)
        for pause in left:
            pause.client = None
        return left

    async def end_later(self, left: Sequence[Pause]) -> None:
        """End them, if nobody else has by then."""
        await anyio.sleep(self._patience)
        for pause in left:
            if pause in self._open:
                self._end(pause)

    def close(self) -> None:
        """The thread is closed."""
        for pause in tuple(self._open):
            self._end(pause)

    def _end(self, pause: Pause) -> None:
        self._open.remove(pause)
        pause.lasting.close()
