"""Resources, templates, prompts and their contents.

Owns: the shapes of what resources/* and prompts/* give.
Never: opens a URI; a resource's URI is an identity at its server, not a local path (TYP-1).
"""

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.tool import BadEntry

Entry = TypeVar("Entry", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One entry of resources/list. `size` is bytes, within 64-bit integers, else absent."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    icons: tuple[JsonObject, ...] | None = None
    meta: JsonObject | None = None
    annotations: JsonObject | None = None
    raw: JsonObject = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceTemplate:
    """One entry of resources/templates/list; `uri_template` is RFC 6570."""

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    icons: tuple[JsonObject, ...] | None = None
    meta: JsonObject | None = None
    annotations: JsonObject | None = None
    raw: JsonObject = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceContent:
    """One content of resources/read: exactly one of `text` and `blob` (base64) is set, as it came."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None
    meta: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRead:
    """The result of resources/read."""

    contents: tuple[ResourceContent, ...]
    meta: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One entry of prompts/list. `arguments` are as they came: name, description, required."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[JsonObject, ...] = ()
    raw: JsonObject = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptResult:
    """The result of prompts/get; messages as they came: role and content."""

    messages: tuple[JsonObject, ...]
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The result of completion/complete."""

    values: tuple[str, ...]
    total: int | None = None
    has_more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Entry]):
    """One page of a listing. Entries that could not be decoded fell alone and stand in `bad`."""

    entries: tuple[Entry, ...]
    next_cursor: str | None = None
    bad: tuple[BadEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[Entry]):
    """All pages of a listing, under the bounds of CAT-1."""

    entries: tuple[Entry, ...]
    bad: tuple[BadEntry, ...] = ()
