"""What the resource tools answer: the shapes of BEHAVIOUR section 5.

Owns: members and their order, labels with the server's name, the words for what was left out.
Never: waits, or changes a text, a blob or a cursor that came from a server.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject, JsonValue, compact
from interlock.vocabulary.resource import Listing, Page, Resource, ResourceContent, ResourceRead, ResourceTemplate
from interlock.vocabulary.slices import Sliced
from interlock.vocabulary.tool import BadEntry

Listed: TypeAlias = Resource | ResourceTemplate
Error: TypeAlias = dict[str, str]

NAMED_BAD_ENTRIES = 20
"""How many bad entries of one server are named; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one server adds to an answer: labelled entries, and errors beside them."""

    entries: tuple[JsonObject, ...] = ()
    errors: tuple[Error, ...] = ()


def contributing(server: str, listed: Page[Listed] | Listing[Listed]) -> Sliced[Contribution]:
    """The entries of `listed` under their server's label, made in slices; bad ones fall alone and are named (RES-6)."""
    entries: list[JsonObject] = []
    bad = list(listed.bad)
    for entry in listed.entries:
        if _is_writable(entry):
            entries.append(_labelled(server, entry))
        else:
            bad.append(BadEntry(name=entry.name, reason="its metadata is nested too deep"))
        yield
    return Contribution(entries=tuple(entries), errors=tuple(_bad_errors(server, bad)))


def one_server(member: str, server: str, part: Contribution, next_cursor: str | None) -> str:
    """The answer of a list of one server; `member` is "resources" or "resourceTemplates"."""
    answer: dict[str, Any] = {"server": server, member: part.entries}
    if next_cursor is not None:
        answer["nextCursor"] = next_cursor
    return compact(answer | _errors(part.errors))


def all_servers(member: str, parts: Mapping[str, Contribution]) -> str:
    """The answer of a list of all servers, by server name; there is no cursor (RES-5)."""
    ordered = [parts[server] for server in sorted(parts)]
    answer = {member: [entry for part in ordered for entry in part.entries]}
    return compact(answer | _errors([error for part in ordered for error in part.errors]))


def read_answer(server: str, uri: str, read: ResourceRead) -> str:
    """The answer of a read.

    Raises:
        ServerFailed: a content has neither text nor blob, or metadata that cannot be written (RES-7).
    """
    contents = [_content(server, uri, content) for content in read.contents]
    try:
        return compact({"server": server, "uri": uri, "contents": contents})
    except ValueError:
        raise _unreadable(server, uri, "its metadata is nested too deep") from None


def _labelled(server: str, entry: Listed) -> JsonObject:
    labelled: dict[str, JsonValue] = {"server": server}
    match entry:
        case Resource():
            labelled["uri"] = entry.uri
        case ResourceTemplate():
            labelled["uriTemplate"] = entry.uri_template
    members = {
        "name": entry.name,
        "title": entry.title,
        "description": entry.description,
        "mimeType": entry.mime_type,
        "size": entry.size if isinstance(entry, Resource) else None,
        "icons": entry.icons,
        "_meta": entry.meta,
        "annotations": entry.annotations,
    }
    return labelled | {name: value for name, value in members.items() if value is not None}


def _is_writable(entry: Listed) -> bool:
    """False when the free parts of `entry` cannot be written as JSON."""
    free = [part for part in (entry.icons, entry.meta, entry.annotations) if part]
    if not free:
        return True
    try:
        compact(free)
    except ValueError:
        return False
    return True


def _content(server: str, uri: str, content: ResourceContent) -> JsonObject:
    shown: dict[str, JsonValue] = {"uri": content.uri}
    if content.mime_type is not None:
        shown["mimeType"] = content.mime_type
    if content.text is not None:
        shown["text"] = content.text
    elif content.blob is not None:
        shown["blob"] = content.blob
    else:
        raise _unreadable(server, uri, f"content {content.uri!r} has neither text nor blob")
    if content.meta is not None:
        shown["_meta"] = content.meta
    return shown


def _unreadable(server: str, uri: str, reason: str) -> ServerFailed:
    message = f"cannot read {uri!r} of server {server!r}: {reason}; the server has to be corrected"
    return ServerFailed(message, server=server, kind="protocol", effect="none")


def _errors(errors: Sequence[Error]) -> dict[str, Any]:
    return {"errors": errors} if errors else {}


def _bad_errors(server: str, bad: Sequence[BadEntry]) -> Iterable[Error]:
    for entry in bad[:NAMED_BAD_ENTRIES]:
        yield {"server": server, "message": f"entry {entry.name!r} was left out: {entry.reason}"}
    if len(bad) > NAMED_BAD_ENTRIES:
        yield {"server": server, "message": f"{len(bad) - NAMED_BAD_ENTRIES} more entries were left out"}
