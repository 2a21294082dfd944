"""What the next turns of a thread run with where they do not say it themselves.

Owns: these settings, and which of them are kept with the thread for a later run.
Never: keeps what permits anything: that is said anew by whoever takes the thread up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from interlock.vocabulary.json import JsonObject

KEY: Final = "app-server"
"""Under which they are kept with the thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSettings:
    """`model` None: the configuration's."""

    model: str | None = None
    base_instructions: str | None = None
    developer_instructions: str | None = None
    mode: Literal["plan", "default"] = "default"

    @property
    def instructions(self) -> str:
        return "\n\n".join(text for text in (self.base_instructions, self.developer_instructions) if text)


KEPT: Final = ("model", "base_instructions", "developer_instructions")


def annotation(settings: TurnSettings, provider: str) -> JsonObject:
    """What is kept of them; a model means something at its `provider` only.

    Clients of this wire expect these after a restart. The mode they say with every turn.
    """
    values = {name: getattr(settings, name) for name in KEPT}
    if settings.model is not None:
        values["provider"] = provider
    return {name: value for name, value in values.items() if value is not None}


def kept_settings(annotations: Mapping[str, JsonObject], provider: str) -> TurnSettings:
    """Those of an earlier run; its model only where the same `provider` is in use. What cannot be read is left out."""
    kept = annotations.get(KEY, {})
    known: dict[str, Any] = {name: kept[name] for name in KEPT if isinstance(kept.get(name), str)}
    if kept.get("provider") != provider:
        known.pop("model", None)
    return TurnSettings(**known)
