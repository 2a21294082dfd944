"""From raw results to the vocabulary, forgiving where the specification allows it.

Owns: which members of a result are needed, what stands in for a bad one, and the reasons that name them.
Never: asks a server, copies a raw object (entries are kept by reference), or judges a schema's content.

Null is read as absent. A member that only adorns (title, icons, annotations, _meta, …) and has the wrong type
counts as absent; a member without which an entry cannot be used makes the entry fall alone, as a BadEntry.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, Literal, TypeVar

from interlock.connections.headers import invalid_annotation
from interlock.vocabulary.errors import Effect, ServerFailed
from interlock.vocabulary.json import JsonObject, JsonValue
from interlock.vocabulary.resource import (
    Completion,
    Prompt,
    PromptResult,
    Resource,
    ResourceContent,
    ResourceRead,
    ResourceTemplate,
)
from interlock.vocabulary.server import Era, ServerInfo
from interlock.vocabulary.slices import Sliced
from interlock.vocabulary.tool import BadEntry, Tool, ToolAnnotations, ToolResult

Decoded = TypeVar("Decoded")

MAXIMUM_COMPLETIONS: Final = 100
"""Values of one completion (specification: completion/complete)."""
MAXIMUM_BLOCKS: Final = 10_000
"""Blocks of a tool's result that are kept: each is looked at several times, in one piece."""
INT64: Final = range(-(2**63), 2**63)
NO_ANNOTATIONS: Final = ToolAnnotations()
TYPES_OF_HINTS: Final = frozenset({bool, type(None)})
HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


class Misshapen(Exception):
    """A member that cannot be done without is not what it should be; the text names it."""


def result_kind(result: JsonObject, era: Era | None) -> Literal["complete", "input_required", "unknown"]:
    """What a result is (specification 2026-07-28: resultType; absent means complete, as in all older versions)."""
    kind = result.get("resultType") if era == "stateless" else None
    if kind is None or kind == "complete":
        return "complete"
    return "input_required" if kind == "input_required" else "unknown"


def entries(result: JsonObject, member: str, *, server: str, method: str) -> list[JsonValue]:
    """The list under `member` of one page.

    Raises:
        ServerFailed: kind "protocol"; there is no such list.
    """
    found = result.get(member)
    if not isinstance(found, list):
        raise broken(server, method, f"{member} is {'missing' if found is None else 'not a list'}")
    return found


def next_cursor(result: JsonObject, *, server: str, method: str) -> str | None:
    """The cursor of the next page of a listing that is read page by page."""
    cursor = result.get("nextCursor")
    if cursor is None or isinstance(cursor, str):
        return cursor
    raise broken(server, method, "nextCursor is not a string")


def decode(
    raw: Sequence[JsonValue],
    convert: Callable[[JsonObject], Decoded],
    *,
    label: str = "name",
    first: int = 0,
) -> Sliced[tuple[list[Decoded], list[BadEntry]]]:
    """Convert the entries that can be, in slices; the others fall alone.

    `label` is the member by which a bad entry is called; without it the entry is called by its
    position in the whole listing ("#3"), counted from `first` + 1.
    """
    good: list[Decoded] = []
    bad: list[BadEntry] = []
    for position, entry in enumerate(raw, first + 1):
        try:
            if not isinstance(entry, dict):
                raise Misshapen("the entry is not an object")
            good.append(convert(entry))
        except Misshapen as reason:
            bad.append(BadEntry(name=_called(entry, label, position), reason=str(reason)))
        yield
    return good, bad


def tool(entry: JsonObject) -> Tool:
    """A tool of any era (CAT-3: the types of name, description and inputSchema must be right).

    inputSchema without `type` is taken: the arguments of a call are an object in any case. Another type is not.
    """
    get = entry.get
    schema = get("inputSchema")
    if not isinstance(schema, dict):
        raise Misshapen("inputSchema is missing" if schema is None else "inputSchema is not an object")
    if schema.get("type", "object") != "object":
        raise Misshapen('inputSchema has a type other than "object"')
    description, title, annotations = get("description"), get("title"), get("annotations")
    output_schema, icons, meta = get("outputSchema"), get("icons"), get("_meta")
    name = get("name")
    if description is not None and not isinstance(description, str):
        raise Misshapen("description is not a string")
    # What a tool seldom has is not looked into: a server may list ten thousand of them.
    return Tool(
        name=name if name and type(name) is str else _filled(entry, "name"),
        title=None if title is None else _text(title),
        description=description,
        input_schema=schema,
        output_schema=None if output_schema is None else _object(output_schema),
        annotations=_tool_annotations(annotations) if annotations else NO_ANNOTATIONS,
        icons=None if icons is None else _icons(icons),
        meta=None if meta is None else _object(meta),
        raw=entry,
    )


def stateless_tool(entry: JsonObject) -> Tool:
    """A tool of a 2026-07-28 server: one whose x-mcp-header annotations are invalid must be dropped (section Tools)."""
    converted = tool(entry)
    reason = invalid_annotation(converted.input_schema)
    if reason is not None:
        raise Misshapen(f"inputSchema: {reason}")
    return converted


def resource(entry: JsonObject) -> Resource:
    get = entry.get
    return Resource(
        uri=_filled(entry, "uri"),
        name=_required(entry, "name"),
        title=_text(get("title")),
        description=_text(get("description")),
        mime_type=_text(get("mimeType")),
        size=_int64(get("size")),
        icons=_icons(get("icons")),
        meta=_object(get("_meta")),
        annotations=_object(get("annotations")),
        raw=entry,
    )


def resource_template(entry: JsonObject) -> ResourceTemplate:
    get = entry.get
    return ResourceTemplate(
        uri_template=_filled(entry, "uriTemplate"),
        name=_required(entry, "name"),
        title=_text(get("title")),
        description=_text(get("description")),
        mime_type=_text(get("mimeType")),
        icons=_icons(get("icons")),
        meta=_object(get("_meta")),
        annotations=_object(get("annotations")),
        raw=entry,
    )


def prompt(entry: JsonObject) -> Prompt:
    return Prompt(
        name=_filled(entry, "name"),
        title=_text(entry.get("title")),
        description=_text(entry.get("description")),
        arguments=_objects(entry.get("arguments")),
        raw=entry,
    )


def resource_read(result: JsonObject, *, server: str) -> Sliced[ResourceRead]:
    """The contents of resources/read, as they came and in their order; made in slices.

    Raises:
        ServerFailed: kind "protocol"; a content has neither text nor blob (RES-7), or no URI.
    """
    method = "resources/read"
    contents = []
    for position, content in enumerate(entries(result, "contents", server=server, method=method)):
        try:
            contents.append(_content(content))
        except Misshapen as reason:
            raise broken(server, method, f"contents[{position}]: {reason}") from None
        yield
    return ResourceRead(contents=tuple(contents), meta=_object(result.get("_meta")))


def tool_result(result: JsonObject, *, server: str) -> ToolResult:
    """The result of tools/call.

    Missing or null content is empty content: the tool has run, and what it did give (structuredContent, isError)
    is worth more than the breach. Content that is no list of objects cannot be shown to anybody.

    Raises:
        ServerFailed: kind "protocol", effect "unknown".
    """
    content = result.get("content")
    if content is None:
        content = []
    if not isinstance(content, list):
        raise broken(server, "tools/call", "content is not a list", effect="unknown")
    if len(content) > MAXIMUM_BLOCKS:
        told = f"[{len(content) - MAXIMUM_BLOCKS} more blocks left out]"
        content = [*content[:MAXIMUM_BLOCKS], {"type": "text", "text": told}]
    for position, block in enumerate(content):
        if not isinstance(block, dict):
            raise broken(server, "tools/call", f"content[{position}] is not an object", effect="unknown")
    return ToolResult(
        content=tuple(content),
        structured_content=result.get("structuredContent"),
        is_error=bool(result.get("isError")),  # a flag of the wrong type is better read as a failure than as success
        meta=_object(result.get("_meta")),
    )


def prompt_result(result: JsonObject, *, server: str) -> PromptResult:
    """The result of prompts/get.

    Raises:
        ServerFailed: kind "protocol"; messages is not a list of objects.
    """
    messages = entries(result, "messages", server=server, method="prompts/get")
    for position, message in enumerate(messages):
        if not isinstance(message, dict):
            raise broken(server, "prompts/get", f"messages[{position}] is not an object")
    return PromptResult(messages=tuple(messages), description=_text(result.get("description")))


def completion(result: JsonObject, *, server: str) -> Completion:
    """The result of completion/complete: at most 100 values; those that are no strings are left out.

    Raises:
        ServerFailed: kind "protocol"; there is no list of values.
    """
    method = "completion/complete"
    found = result.get("completion")
    if not isinstance(found, dict):
        raise broken(server, method, "completion is not an object")
    values = entries(found, "values", server=server, method=method)
    return Completion(
        values=tuple(value for value in values if isinstance(value, str))[:MAXIMUM_COMPLETIONS],
        total=_int64(found.get("total")),
        has_more=found.get("hasMore") is True or len(values) > MAXIMUM_COMPLETIONS,
    )


def server_info(implementation: JsonValue) -> ServerInfo | None:
    """What a server says of itself; None where it says nothing that could be shown."""
    found = _object(implementation)
    if found is None:
        return None
    return ServerInfo(
        name=_text(found.get("name")) or "",
        version=_text(found.get("version")) or "",
        title=_text(found.get("title")),
        description=_text(found.get("description")),
        icons=_icons(found.get("icons")),
        website_url=_text(found.get("websiteUrl")),
    )


def broken(server: str, method: str, what: str, *, effect: Effect = "none") -> ServerFailed:
    """The error for a result that breaks the specification."""
    return ServerFailed(
        f"cannot use the answer of server {server!r} to {method}: {what}; the server must mend it",
        server=server,
        kind="protocol",
        effect=effect,
    )


def _content(content: JsonValue) -> ResourceContent:
    if not isinstance(content, dict):
        raise Misshapen("it is not an object")
    text, blob = _text(content.get("text")), _text(content.get("blob"))
    if text is None and blob is None:
        raise Misshapen("it has neither text nor blob")
    return ResourceContent(
        uri=_required(content, "uri"),
        mime_type=_text(content.get("mimeType")),
        text=text,
        blob=blob if text is None else None,
        meta=_object(content.get("_meta")),
    )


def _tool_annotations(value: JsonValue) -> ToolAnnotations:
    if not isinstance(value, dict):
        return NO_ANNOTATIONS
    title, hints = value.get("title"), tuple(map(value.get, HINTS))
    if title is not None or not TYPES_OF_HINTS.issuperset(map(type, hints)):
        return replace(_hinted(*map(_flag, hints)), title=_text(title))
    return _hinted(*hints)


@cache
def _hinted(*hints: bool | None) -> ToolAnnotations:
    """One object for all tools with the same hints; there are 81 of them."""
    read_only, destructive, idempotent, open_world = hints
    return ToolAnnotations(
        read_only_hint=read_only,
        destructive_hint=destructive,
        idempotent_hint=idempotent,
        open_world_hint=open_world,
    )


def _called(entry: JsonValue, label: str, position: int) -> str:
    name = entry.get(label) if isinstance(entry, dict) else None
    return name if isinstance(name, str) and name else f"#{position}"


def _required(entry: JsonObject, member: str) -> str:
    value = entry.get(member)
    if isinstance(value, str):
        return value
    raise Misshapen(f"{member} is missing" if value is None else f"{member} is not a string")


def _filled(entry: JsonObject, member: str) -> str:
    value = _required(entry, member)
    if not value:
        raise Misshapen(f"{member} is empty")
    return value


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: JsonValue) -> bool | None:
    return value if isinstance(value, bool) else None


def _object(value: JsonValue) -> JsonObject | None:
    return value if isinstance(value, dict) else None


def _objects(value: JsonValue) -> tuple[JsonObject, ...]:
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _icons(value: JsonValue) -> tuple[JsonObject, ...] | None:
    return _objects(value) if isinstance(value, list) else None


def _int64(value: JsonValue) -> int | None:
    """A whole number that fits; a float without a fraction is one in JSON."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value in INT64 else None
