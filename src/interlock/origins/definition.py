"""What a tool's definition says of apps.

Owns: where connector, link and app resource stand in a tool's `_meta` (BEHAVIOUR section 8).
Never: believes a connector or a link of a server that does not grant origins.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from interlock.vocabulary.json import JsonObject, JsonValue
from interlock.vocabulary.server import ServerConfig
from interlock.vocabulary.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class AppFacts:
    """None where the definition says nothing or a blank text. `explicit_link`: a call must name its link."""

    connector_id: str | None = None
    connector_name: str | None = None
    link_id: str | None = None
    explicit_link: bool = False
    resource_uri: str | None = None


NOTHING: Final = AppFacts()


def app_facts(tool: Tool, config: ServerConfig) -> AppFacts:
    """What `tool` of the server `config` says of apps; the resource is a matter of every server."""
    meta = tool.meta
    if not meta:
        return NOTHING
    granting = meta if config.grants_origins else {}
    codex_apps = granting.get("_codex_apps")
    explicit = codex_apps.get("requires_explicit_link_id") if isinstance(codex_apps, Mapping) else None
    return AppFacts(
        connector_id=text(granting.get("connector_id")),
        connector_name=text(granting.get("connector_display_name")) or text(granting.get("connector_name")),
        link_id=text(granting.get("link_id")),
        explicit_link=explicit is True,
        resource_uri=_resource_uri(meta),
    )


def text(value: JsonValue) -> str | None:
    """The value, if it is a text that is not blank."""
    return value if isinstance(value, str) and value.strip() else None


def _resource_uri(meta: JsonObject) -> str | None:
    interface = meta.get("ui")
    inner = text(interface.get("resourceUri")) if isinstance(interface, Mapping) else None
    return inner or text(meta.get("ui/resourceUri")) or text(meta.get("openai/outputTemplate"))
