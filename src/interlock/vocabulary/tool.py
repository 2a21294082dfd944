"""A tool as its server describes it, as the model sees it, and what a call of it gives.

Owns: the shapes of tools and tool results.
Never: judges a schema or a name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from interlock.vocabulary.construction import quickly_made
from interlock.vocabulary.json import JsonObject, JsonValue


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnnotations:
    """Hints of an untrusted server; None where the server gives no boolean (specification: ToolAnnotations)."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None

    @property
    def safe_to_repeat(self) -> bool:
        return self.read_only_hint is True or self.idempotent_hint is True


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One entry of a server's tools/list. `raw` is the entry as it came, unknown members included (TYP-1)."""

    name: str
    title: str | None = None
    description: str | None = None
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    annotations: ToolAnnotations = ToolAnnotations()
    icons: tuple[JsonObject, ...] | None = None
    meta: JsonObject | None = None
    raw: JsonObject = field(default_factory=dict[str, Any], repr=False)

    @property
    def app_only(self) -> bool:
        """Whether only apps may call it: `_meta.ui.visibility` names "app" and not "model" (CAT-8)."""
        if not self.meta:
            return False
        user_interface = self.meta.get("ui")
        visibility = user_interface.get("visibility") if isinstance(user_interface, Mapping) else None
        return isinstance(visibility, list) and "app" in visibility and "model" not in visibility


@dataclass(frozen=True, slots=True, kw_only=True)
class BadEntry:
    """An entry of a listing that cannot be used: its name (or position, such as "#3") and why (CAT-3, RES-6)."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A function offered to a language model: public name, description, JSON Schema of the arguments."""

    name: str
    description: str
    input_schema: JsonObject


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of tools/call. `structured_content` None means absent or null (CAT-9).

    `content` blocks are kept as they came (text, image, audio, resource_link, resource, or newer).
    """

    content: tuple[JsonObject, ...] = ()
    structured_content: JsonValue = None
    is_error: bool = False
    meta: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """notifications/progress of a running call."""

    progress: float
    total: float | None = None
    message: str | None = None
