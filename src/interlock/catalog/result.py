"""What a model is told of a tool's result.

Owns: the choice between structured content and blocks (CAT-9), and the words for what no part can carry (CAT-10).
Never: cuts (`history.clip` does), opens a link, or knows which media a provider accepts.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from interlock.vocabulary.conversation import MediaPart, Part, TextPart
from interlock.vocabulary.json import JsonObject, JsonValue, compact
from interlock.vocabulary.tool import ToolResult

MediaKind: TypeAlias = Literal["image", "audio", "file"]


def result_parts(result: ToolResult) -> tuple[Part, ...]:
    """The parts of `result` for the model; always at least one.

    Structured content that is not null stands alone, as compact JSON. Else text blocks that follow
    each other are joined by newlines, and images, audio and embedded files are media parts between
    them. Links, embedded text, unknown blocks and media that cannot be decoded become lines of text.
    """
    if result.structured_content is not None:
        return (TextPart(text=_structured(result.structured_content)),)
    if len(result.content) == 1:
        return (_part(result.content[0]),)
    return _joined(_part(block) for block in result.content) or (TextPart(text=""),)


def _joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    """`parts` with neighbouring texts made one."""
    joined: list[Part] = []
    lines: list[str] = []
    for part in parts:
        if isinstance(part, TextPart):
            lines.append(part.text)
            continue
        if lines:
            joined.append(TextPart(text="\n".join(lines)))
            lines = []
        joined.append(part)
    if lines:
        joined.append(TextPart(text="\n".join(lines)))
    return tuple(joined)


def _structured(value: JsonValue) -> str:
    try:
        return compact(value)
    except ValueError:
        return "[structured content left out: it is nested too deep to be written]"


def _part(block: JsonObject) -> Part:
    if block.get("type") == "text" and isinstance(text := block.get("text"), str):
        return TextPart(text=text)  # most blocks: a pattern would take ten times as long to see that
    match block:
        case {"type": "image" | "audio" as kind}:
            return _media(kind, kind, block.get("data"), block.get("mimeType"))
        case {"type": "resource_link", "uri": str()}:
            return TextPart(text=_link(block))
        case {"type": "resource", "resource": {"uri": str(uri)} as resource}:
            return _embedded(uri, resource)
        case _:
            return TextPart(text=f"[a block of type {block.get('type')!r} left out: it cannot be shown to a model]")


def _link(block: JsonObject) -> str:
    """`[resource link NAME: URI (TYPE), SIZE bytes: DESCRIPTION]`, without what the block does not say."""
    name = f" {block['name']}" if _is_text(block.get("name")) else ""
    size = f", {block['size']} bytes" if type(block.get("size")) is int else ""
    description = f": {block['description']}" if _is_text(block.get("description")) else ""
    return f"[resource link{name}: {block['uri']}{_type_of(block)}{size}{description}]"


def _embedded(uri: str, resource: Mapping[str, JsonValue]) -> Part:
    """Text under a line that names its URI, or the blob as a file."""
    if isinstance(text := resource.get("text"), str):
        return TextPart(text=f"[resource {uri}{_type_of(resource)}]\n{text}")
    if "blob" not in resource:
        return TextPart(text=f"[resource {uri} left out: it has neither text nor blob]")
    mime_type = resource.get("mimeType") or "application/octet-stream"
    return _media(_kind_of(mime_type), f"resource {uri}", resource["blob"], mime_type, name=uri)


def _media(kind: MediaKind, label: str, data: JsonValue, mime_type: JsonValue, name: str | None = None) -> Part:
    """A media part, or a line that says why not: for one bad base64 a provider refuses the whole request."""
    if not isinstance(data, str) or not _is_text(mime_type):
        return TextPart(text=f"[{label} left out: it has no data or no MIME type]")
    if data.startswith("data:"):  # seen in the wild: a data URL where base64 belongs
        data = data.partition(",")[2]
    data = "".join(data.split())
    if not _is_base64(data):
        return TextPart(text=f"[{label} ({mime_type}) left out: its data is not base64]")
    return MediaPart(kind=kind, data=data, mime_type=mime_type, name=name)


def _kind_of(mime_type: JsonValue) -> MediaKind:
    family = str(mime_type).partition("/")[0]
    return "image" if family == "image" else "audio" if family == "audio" else "file"


def _type_of(resource: Mapping[str, JsonValue]) -> str:
    mime_type = resource.get("mimeType")
    return f" ({mime_type})" if _is_text(mime_type) else ""


def _is_text(value: JsonValue) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _is_base64(data: str) -> bool:
    try:
        return len(base64.b64decode(data, validate=True)) > 0
    except (binascii.Error, ValueError):
        return False
