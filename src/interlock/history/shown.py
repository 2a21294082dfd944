"""Which tools the Steps of a Thread were shown, as its events tell.

Owns: the names of each Step, however they were stored.
Never: guesses: a Step whose names stand in an event that was not read has none.
"""

from interlock.vocabulary.event import StepCaptured


class ShownTools:
    """Takes the captured Steps of one Thread in the order of their events."""

    def __init__(self) -> None:
        self._names: dict[str, tuple[str, ...]] = {}

    def take(self, step: StepCaptured) -> tuple[str, ...] | None:
        """The public names that this Step saw; None: they were stored with an earlier one, which was not taken."""
        if step.same_tools_as is not None:
            return self._names.get(step.same_tools_as)
        self._names[step.step_id] = step.tools
        return step.tools
