"""What one Step sees and executes (CAT-6).

Owns: the making of a Binding from a Snapshot, and of the event that tells what it saw.
Never: holds a lease or stores anything; the Thread that opens the Step does.
"""

from collections.abc import Mapping
from typing import NamedTuple

from interlock.catalog.offer import tools_for_model
from interlock.threads import builtins
from interlock.vocabulary.catalog import BuiltinEntry, Catalog
from interlock.vocabulary.event import StepCaptured
from interlock.vocabulary.ids import StepId, ThreadId, TurnId
from interlock.vocabulary.snapshot import Binding, Snapshot
from interlock.vocabulary.tool import ToolSpec


class _Stored(NamedTuple):
    """The newest Step whose names are stored; `tools` are the newest specs of these names."""

    step_id: str
    tools: tuple[ToolSpec, ...]
    names: tuple[str, ...]


class Binder:
    """Makes the Bindings of one Thread.

    Of what did not change since the Step before nothing is made again, and nothing is stored again: a Step over ten
    thousand tools costs what one over ten costs.
    """

    def __init__(self) -> None:
        self._catalog: Catalog | None = None
        self._builtins: Mapping[str, BuiltinEntry] = {}
        self._tools: tuple[ToolSpec, ...] = ()
        self._stored: _Stored | None = None

    def bind(self, thread_id: str, turn_id: str, step_id: str, snapshot: Snapshot, pending: tuple[str, ...]) -> Binding:
        """Everything that the Step sees: the Snapshot, the host's own tools, the functions for its model."""
        offered = builtins.offered(snapshot)
        if self._catalog is not snapshot.catalog or self._builtins != offered:
            self._catalog, self._builtins = snapshot.catalog, offered
            self._tools = tools_for_model(snapshot.catalog, offered)
        return Binding(
            thread_id=ThreadId(thread_id),
            turn_id=TurnId(turn_id),
            step_id=StepId(step_id),
            snapshot=snapshot,
            builtins=offered,
            tools=self._tools,
            pending=pending,
        )

    def captured(self, binding: Binding) -> StepCaptured:
        """The event of a Step. It refers to an earlier one of the same names if that is known to be `stored`."""
        names, same = tuple[str, ...](), None
        if self._stored is not None and self._stored.tools is binding.tools:
            same = self._stored.step_id
        else:
            names = tuple([spec.name for spec in binding.tools])
            if self._stored is not None and self._stored.names == names:
                names, same = (), self._stored.step_id
        return StepCaptured(
            turn_id=binding.turn_id,
            step_id=binding.step_id,
            generation=binding.snapshot.generation,
            revision=binding.snapshot.catalog.revision,
            tools=names,
            pending=binding.pending,
            same_tools_as=same,
        )

    def stored(self, captured: StepCaptured, binding: Binding) -> None:
        """The event of `binding` is stored; later ones may refer to it, or to the one that it refers to."""
        if captured.same_tools_as is None:
            self._stored = _Stored(captured.step_id, binding.tools, captured.tools)
        elif self._stored is not None and self._stored.step_id == captured.same_tools_as:
            self._stored = self._stored._replace(tools=binding.tools)  # the next one need not be compared
