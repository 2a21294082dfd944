"""The frozen views: what a Thread has published, and what one Step sees.

Owns: Snapshot and Binding.
Never: changes; a refresh publishes another Snapshot, a Step keeps its own (CAT-6).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from interlock.vocabulary.catalog import BuiltinEntry, Catalog
from interlock.vocabulary.ids import StepId, ThreadId, TurnId
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.ports import Connection
from interlock.vocabulary.server import ServerConfig
from interlock.vocabulary.tool import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    """One enabled server in one Generation: its connection with the settings that held when it was published."""

    config: ServerConfig
    connection: Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a Thread has published: the servers of one Generation and the catalogue made from them.

    `servers` are the enabled ones; `disabled` names the others, so that asking for one can be told from a wrong name.
    """

    generation: int
    servers: Mapping[str, ServerView] = field(default_factory=dict[str, ServerView])
    disabled: frozenset[str] = frozenset()
    catalog: Catalog = field(default_factory=Catalog)
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What one Step sees and executes.

    `tools` are the specs for the model, sorted by name, builtins included; `pending` names the
    servers that were still starting when the Step was captured (CON-3).
    """

    thread_id: ThreadId
    turn_id: TurnId
    step_id: StepId
    snapshot: Snapshot
    builtins: Mapping[str, BuiltinEntry] = field(default_factory=dict[str, BuiltinEntry])
    tools: tuple[ToolSpec, ...] = ()
    pending: tuple[str, ...] = ()
