"""Which tools exist, under which public names.

Owns: the frozen map from public name to tool, with its revision.
Never: names a tool or talks to a server; `catalog` (the room) builds these values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal

from interlock.vocabulary.construction import quickly_made
from interlock.vocabulary.lazy import Lazy
from interlock.vocabulary.tool import BadEntry, Tool, ToolSpec


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEntry:
    """A tool of a server under its public name. `spec` is what the model is shown."""

    public_name: str
    server: str
    tool: Tool
    spec: ToolSpec
    visible_to_model: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinEntry:
    """A function of the host itself, such as a resource tool; never deferred."""

    public_name: str
    spec: ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """One state of the catalogue. `entries` are sorted by public name; equal content means equal bytes (CAT-7)."""

    revision: int = 0
    entries: Mapping[str, ToolEntry] = field(default_factory=dict[str, ToolEntry])
    offered: Lazy[tuple[ToolSpec, ...]] = field(init=False, compare=False, repr=False)
    """What the model is shown of it, sorted by name: made once, since every Step asks."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "offered", Lazy(self._offered))

    def _offered(self) -> tuple[ToolSpec, ...]:
        specs = [entry.spec for entry in self.entries.values() if entry.visible_to_model]
        return tuple(sorted(specs, key=attrgetter("name")))

    def get(self, public_name: str) -> ToolEntry | None:
        return self.entries.get(public_name)

    def find(self, server: str, tool: str) -> ToolEntry | None:
        """The entry of a remote tool by its identity, app-only tools included."""
        return next((e for e in self.entries.values() if e.server == server and e.tool.name == tool), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogNote:
    """Something about one tool that people should know: it was left out, renamed or came twice."""

    server: str
    kind: Literal["bad_tool", "renamed", "duplicate", "collision", "filtered"]
    tool: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolListing:
    """What one server listed, before any filter: the material of a refresh."""

    server: str
    tools: tuple[Tool, ...]
    bad: tuple[BadEntry, ...] = ()
