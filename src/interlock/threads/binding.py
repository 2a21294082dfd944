"""What one Step sees and executes (CAT-6).

Owns: the making of a Binding from a Snapshot.
Never: holds a lease; the Thread that opens the Step does.
"""

from interlock.catalog.offer import tools_for_model
from interlock.threads import builtins
from interlock.vocabulary.ids import StepId, ThreadId, TurnId
from interlock.vocabulary.snapshot import Binding, Snapshot


def bind(thread_id: str, turn_id: str, step_id: str, snapshot: Snapshot, pending: tuple[str, ...]) -> Binding:
    """Everything that the Step sees: the Snapshot, the host's own tools, the functions for its model."""
    offered = builtins.offered(snapshot)
    return Binding(
        thread_id=ThreadId(thread_id),
        turn_id=TurnId(turn_id),
        step_id=StepId(step_id),
        snapshot=snapshot,
        builtins=offered,
        tools=tools_for_model(snapshot.catalog, offered),
        pending=pending,
    )
