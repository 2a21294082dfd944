"""A finished message of the model, as people may see it.

Owns: the facts that a finished message has: its text, its citation, its plan, whether it says anything (MEM-4).
Never: makes two messages of one: a citation belongs to the message in which it stood.
"""

from dataclasses import dataclass

from interlock.memory.citation import MemoryCitation, read_citation
from interlock.memory.markup import VisibleText


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedMessage:
    """`text` is visible, and may be empty; `citation` is None when nothing was cited, `plan` when none is proposed."""

    text: str
    citation: MemoryCitation | None = None
    plan: str | None = None

    @property
    def last_message(self) -> str | None:
        """The text as a turn's last message; None when it is blank."""
        return self.text if self.text.strip() else None


def finished_message(raw: str, *, plan_mode: bool = False) -> FinishedMessage:
    """The facts of a message from its whole raw text."""
    visible = VisibleText(plan_mode=plan_mode)
    text = visible.feed(raw) + visible.finish()
    return FinishedMessage(text=text, citation=read_citation(visible.citations), plan=visible.take_plan() or None)
