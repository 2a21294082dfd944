"""A turn that another host began, as this one takes it up (QST-9).

Owns: what is known of such a turn: its calls that wait for people, its input, its options, its model.
Never: runs it, or takes up a turn in which nobody is asked; that one was interrupted (`threads.recovery`).
"""

from collections.abc import Callable

from interlock.history.journal import Journal
from interlock.threads.recovery import going_on, outputs_for
from interlock.threads.settings import ThreadSettings
from interlock.threads.taking_up import LaterModel
from interlock.threads.turn import Turn, TurnRequest, TurnRoom
from interlock.vocabulary.conversation import OutputEntry
from interlock.vocabulary.item import McpToolCallItem


def turn_to_go_on_with(journal: Journal, room: TurnRoom, settings: Callable[[], ThreadSettings]) -> Turn | None:
    """The open turn, if calls of it wait for people. Its model is chosen when it is asked again."""
    held = going_on(journal.facts)
    begun = journal.turn(held[0].requested.turn_id) if held else None
    if begun is None:
        return None
    options, model = held[0].requested.turn, begun.model
    request = TurnRequest(
        input=begun.input,
        model=LaterModel(model or "", lambda: settings().model_again(model)),
        instructions=options.instructions,
        output_schema=options.output_schema,
        plan_mode=options.plan_mode,
        max_steps=options.max_steps,
        compact_at=settings().compact_at,
    )
    return Turn(begun.turn_id, request, room, held=held, implicit=begun.implicit)


def missing_outputs(journal: Journal, turn_id: str, limit: int) -> tuple[OutputEntry, ...]:
    """Outputs for all calls of the model that have none yet, from the items of that turn."""
    turn = journal.turn(turn_id)
    items = [item for item in turn.items if isinstance(item, McpToolCallItem)] if turn is not None else []
    return outputs_for(journal.facts.unanswered, items, limit)
