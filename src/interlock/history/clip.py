"""Cutting long texts honestly: the first half, a marker that states the loss, the last half.

Owns: the budget for what a model is told, the bound of a stored item, the one way to cut (RES-10).
Never: cuts what fits, exceeds its limit, cuts inside a character, or alters a picture for the model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from interlock.vocabulary.conversation import Part, TextPart
from interlock.vocabulary.json import JsonObject, compact
from interlock.vocabulary.tool import ToolResult

DEFAULT_TOKENS = 10_000
BYTES_PER_TOKEN = 4
ITEM_LIMIT = 1024 * 1024
"""Bytes of a result that a stored item keeps (BEHAVIOUR section 5)."""


def token_budget(tokens: int = DEFAULT_TOKENS) -> int:
    """The limit in bytes for a model whose truncation budget is `tokens`: 1.2 times 4 bytes each, rounded up."""
    return byte_budget(tokens * BYTES_PER_TOKEN)


def byte_budget(size: int) -> int:
    """The limit in bytes for a model that states its budget as `size` bytes: 1.2 times that, rounded up."""
    return -(-size * 12 // 10)


def clip_text(text: str, limit: int) -> str:
    """`text`, or its head and tail around a marker, in at most `limit` bytes of UTF-8.

    A limit too small for the marker leaves an ellipsis, or nothing.
    """
    cut = _cut(text, limit)
    return text if cut is None else text[: cut.head] + cut.marker + text[cut.tail :]


def clip_parts(parts: Sequence[Part], limit: int) -> tuple[Part, ...]:
    """`parts` with their texts cut as if they were one; `limit` is for all texts together, in bytes.

    Media stay as they are and where they are. The marker stands in the part in which the cut begins;
    parts that the cut leaves empty are dropped.
    """
    texts = [part.text if isinstance(part, TextPart) else "" for part in parts]
    cut = _cut("".join(texts), limit)
    if cut is None:
        return tuple(parts)
    kept: list[Part] = []
    for part, text in zip(parts, _pieces(texts, cut), strict=True):
        if not isinstance(part, TextPart):
            kept.append(part)
        elif text:
            kept.append(TextPart(text=text))
    return tuple(kept)


def clip_result(result: ToolResult, limit: int = ITEM_LIMIT) -> ToolResult:
    """`result` as a stored item keeps it: whole when its JSON has at most `limit` bytes.

    Else its media are left out, the largest first, until it fits. Text is cut last, its blocks joined by
    newlines; what has no text form of its own (structured content, newer blocks) becomes the text of its JSON.
    """
    try:
        return _clipped(result, limit)
    except ValueError:
        line = _text_block("[result left out: it is nested too deep to be stored]")
        return replace(result, content=(line,), structured_content=None, meta=None)


def _clipped(result: ToolResult, limit: int) -> ToolResult:
    excess = result_size(result) - limit
    if excess <= 0:
        return result
    result = _without_media(result, excess)
    if result_size(result) <= limit:
        return result
    if len(compact(result.meta)) > limit // 2:
        result = replace(result, meta=None)
    return _with_cut_text(result, limit - (0 if result.meta is None else byte_length(compact(result.meta))))


def result_size(result: ToolResult) -> int:
    """Bytes of the result's JSON, metadata included. ValueError: it is nested too deep to be written."""
    return byte_length(compact([list(result.content), result.structured_content, result.meta]))


def byte_length(text: str) -> int:
    """Bytes of `text` in UTF-8; a lone surrogate counts as the three bytes that it would take."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class _Cut:
    """Keep `text[:head]`, then `marker`, then `text[tail:]`."""

    head: int
    tail: int
    marker: str


def _cut(text: str, limit: int) -> _Cut | None:
    """Where to cut `text` for `limit` bytes; None when it fits. Takes time for `limit`, not for `text`."""
    if len(text) * 4 <= limit or (len(text) <= limit and byte_length(text) <= limit):
        return None
    room = limit - byte_length(_marker(len(text)))  # no loss has more digits than the whole
    if room < 0:
        return _Cut(head=0, tail=len(text), marker="…" if limit >= byte_length("…") else "")
    head = _fitting(text[:room], room // 2)
    tail = len(text) - _fitting(text[max(0, len(text) - room) :][::-1], room - room // 2)
    return _Cut(head=head, tail=tail, marker=_marker(tail - head))


def _marker(left_out: int) -> str:
    return f"…{left_out} characters left out…"


def _fitting(text: str, limit: int) -> int:
    """How many whole characters from the start of `text` fit into `limit` bytes."""
    if text.isascii():
        return min(len(text), limit)
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded) <= limit:
        return len(text)
    while limit and encoded[limit] & 0b1100_0000 == 0b1000_0000:  # a continuation byte
        limit -= 1
    return len(encoded[:limit].decode("utf-8", "surrogatepass"))


def _pieces(texts: Sequence[str], cut: _Cut) -> Iterator[str]:
    """What each of `texts` keeps when `cut` is made through all of them in a row."""
    marked = False
    for text, end in zip(texts, accumulate(map(len, texts)), strict=True):
        start = end - len(text)
        head = text[: max(0, cut.head - start)]
        tail = text[max(0, cut.tail - start) :]
        marker = cut.marker if not marked and text and end > cut.head else ""
        marked = marked or bool(marker)
        yield head + marker + tail


def _without_media(result: ToolResult, excess: int) -> ToolResult:
    """`result` with media replaced by a line each, the largest first, until `excess` bytes are saved."""
    content = list(result.content)
    sizes = sorted(((_media_size(block), index) for index, block in enumerate(content)), reverse=True)
    for size, index in sizes:
        if excess <= 0 or size == 0:
            break
        content[index] = _media_line(content[index], size)
        excess -= size - byte_length(content[index]["text"])
    return replace(result, content=tuple(content))


def _media_data(block: JsonObject) -> JsonObject:
    """The object whose `data` or `blob` is the base64 of a media block."""
    resource = block.get("resource")
    return resource if isinstance(resource, dict) else block


def _media_size(block: JsonObject) -> int:
    data = _media_data(block)
    return max((len(value) for value in (data.get("data"), data.get("blob")) if isinstance(value, str)), default=0)


def _media_line(block: JsonObject, size: int) -> dict[str, str]:
    kind, mime_type = block.get("type"), _media_data(block).get("mimeType")
    return _text_block(f"[{kind} ({mime_type}) left out: {size} characters of base64]")


def _with_cut_text(result: ToolResult, limit: int) -> ToolResult:
    if result.structured_content is None and all(_is_text(block) for block in result.content):
        text = "\n".join(block["text"] for block in result.content)
    else:
        text = compact({"content": list(result.content), "structuredContent": result.structured_content})
    return replace(result, content=(_text_block(clip_text(text, limit)),), structured_content=None)


def _is_text(block: JsonObject) -> bool:
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def _text_block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
