"""Points at which a test holds the code under test, instead of sleeping.

Owns: Gate (one point) and Sequencer (several, in a given order), both with bounded waits.
Never: polls, or waits longer than its patience.
"""

import anyio

PATIENCE = 10.0
"""Seconds until a wait is given up: long for a busy machine, short for a test that hangs."""


class Gate:
    """Holds whoever comes to it until it is opened.

    The code under test awaits `wait()`; the test awaits `reached()`, looks around, and calls
    `open()`. Both waits raise TimeoutError after `patience` seconds, naming the gate.
    """

    def __init__(self, name: str = "gate", *, patience: float = PATIENCE) -> None:
        self.name = name
        self._patience = patience
        self._opened = anyio.Event()
        self._reached = anyio.Event()

    def __repr__(self) -> str:
        state = "open" if self._opened.is_set() else "held" if self._reached.is_set() else "closed"
        return f"<Gate {self.name!r} {state}>"

    def open(self) -> None:
        """Let everybody pass, now and later."""
        self._opened.set()

    async def wait(self) -> None:
        """Say that the gate was reached, and pass once it is open."""
        self._reached.set()
        await _bounded(self._opened, self._patience, f"the gate {self.name!r} was never opened")

    async def reached(self) -> None:
        """Return once somebody has come to the gate."""
        await _bounded(self._reached, self._patience, f"nobody came to the gate {self.name!r}")


class Sequencer:
    """Lets named steps of several tasks happen in one order: the order of its arguments.

    `await sequencer.step("b")` returns once every step named before "b" has happened, and marks
    "b" as happened. Each name is used once.
    """

    def __init__(self, *names: str, patience: float = PATIENCE) -> None:
        if len(set(names)) != len(names):
            raise ValueError("every step of a sequence needs a name of its own")
        self._names = names
        self._patience = patience
        self._happened = {name: anyio.Event() for name in names}

    def __repr__(self) -> str:
        done = [name for name in self._names if self._happened[name].is_set()]
        return f"<Sequencer {len(done)} of {len(self._names)} steps happened: {', '.join(done) or 'none'}>"

    async def step(self, name: str) -> None:
        """Wait for the steps before `name`. TimeoutError names the one that did not happen."""
        for earlier in self._names[: self._names.index(name)]:
            complaint = f"the step {earlier!r} did not happen before {name!r}"
            await _bounded(self._happened[earlier], self._patience, complaint)
        self._happened[name].set()


async def _bounded(event: anyio.Event, patience: float, complaint: str) -> None:
    with anyio.move_on_after(patience):
        await event.wait()
    if not event.is_set():
        raise TimeoutError(f"{complaint} within {patience:g} s")
