"""Which calls of a Thread may run beside each other.

Owns: the line of waiting calls and the set of running ones (LIF-5).
Never: knows what a call does, or lets one overtake another.
"""

from collections import deque

import anyio


class Ticket:
    """The place of one call in the line, kept for as long as the call lives: until its block is left."""

    __slots__ = ("_gate", "_turn", "alone", "may_run")

    def __init__(self, gate: "Gate", *, alone: bool) -> None:
        self._gate = gate
        self.alone = alone
        self.may_run = False
        self._turn: anyio.Event | None = None
        """Made only if the call has to wait."""

    def __enter__(self) -> "Ticket":
        return self

    def __exit__(self, *_: object) -> None:
        self._gate.leave(self)

    def admit(self) -> None:
        self.may_run = True
        if self._turn is not None:
            self._turn.set()

    async def admitted(self) -> None:
        """Return once the call may run."""
        if not self.may_run:
            self._turn = anyio.Event()
            await self._turn.wait()


class Gate:
    """A fair readers-writer gate: calls run side by side, except those that must run alone.

    with gate.arriving(alone=True) as ticket:   # takes the place in the line, at once
        await ticket.admitted()                 # waits for all that came before
        ...
    """

    def __init__(self) -> None:
        self._line: deque[Ticket] = deque()
        self._inside: set[Ticket] = set()
        self._held_alone = False
        """Whether the call inside, if there is one, wants to stay alone."""

    def __repr__(self) -> str:
        return f"<Gate running={len(self._inside)} waiting={len(self._line)}>"

    def arriving(self, *, alone: bool) -> Ticket:
        """A place in the line, given back however the block ends."""
        ticket = Ticket(self, alone=alone)
        self._line.append(ticket)
        self._admit()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Give the place back, from the line or from inside."""
        if ticket.may_run:
            self._inside.remove(ticket)
        else:
            self._line.remove(ticket)
        self._admit()

    def _admit(self) -> None:
        while self._line and self._may_enter(self._line[0]):
            ticket = self._line.popleft()
            self._inside.add(ticket)
            self._held_alone = ticket.alone
            ticket.admit()

    def _may_enter(self, ticket: Ticket) -> bool:
        return not self._inside or not (ticket.alone or self._held_alone)
