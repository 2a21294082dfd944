"""From what a server listed to the entries of the catalogue.

Owns: the filters (CAT-8), the fate of bad tools (CAT-3), duplicates, the spec that the model is shown.
Never: waits, or changes a registry; it refuses before anything is replaced.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from interlock.catalog.naming import public_name
from interlock.catalog.showing import shown, shown_schema
from interlock.vocabulary.catalog import CatalogNote, ToolEntry, ToolListing
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.server import ServerConfig
from interlock.vocabulary.slices import Sliced, at_once
from interlock.vocabulary.tool import BadEntry, Tool, ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """What one server's source becomes, with what people should know about it."""

    entries: tuple[ToolEntry, ...]
    notes: tuple[CatalogNote, ...] = ()


def replacement(listing: ToolListing, config: ServerConfig) -> Replacement:
    """`replacing` at once."""
    return at_once(replacing(listing, config))


def replacing(listing: ToolListing, config: ServerConfig) -> Sliced[Replacement]:
    """The entries and notes of `listing` under the filters and `on_bad_tool` of `config`, made in slices.

    A bad tool that the filters keep out anyway is no reason to refuse.

    Raises:
        ServerFailed: a tool cannot be used and `on_bad_tool` is "refuse" (kind "protocol", CAT-3).
    """
    draft = _Draft(server=listing.server)
    for position, tool in enumerate(listing.tools, start=1):
        if tool.name and not config.allows(tool.name):
            draft.note("filtered", tool.name, "is kept out by enabled_tools or disabled_tools")
        else:
            draft.take(tool, position)
        yield
    bad = (*_wanted(listing.bad, config), *draft.bad)
    if bad and config.on_bad_tool == "refuse":
        raise _refusal(listing.server, bad, waiting=len(draft.entries))
    for entry in bad:
        draft.note("bad_tool", entry.name, f"was left out: {entry.reason}")
        yield
    return Replacement(entries=tuple(draft.entries.values()), notes=tuple(draft.notes))


NoteKind: TypeAlias = Literal["bad_tool", "renamed", "duplicate", "collision", "filtered"]


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A replacement in the making; entries by public name, in the order of the listing."""

    server: str
    entries: dict[str, ToolEntry] = field(default_factory=dict[str, ToolEntry])
    bad: list[BadEntry] = field(default_factory=list[BadEntry])
    notes: list[CatalogNote] = field(default_factory=list[CatalogNote])

    def take(self, tool: Tool, position: int) -> None:
        """Add `tool`, the `position`-th of its listing, unless it is bad or came before."""
        if not tool.name:
            self.bad.append(BadEntry(name=f"#{position}", reason="its name is empty"))
            return
        name = public_name(self.server, tool.name)
        if name.text in self.entries:
            self._note_second(name.text, tool)
            return
        try:
            self.entries[name.text] = entry_of(self.server, name.text, tool)
        except ValueError:
            self.bad.append(BadEntry(name=tool.name, reason="its input schema is nested too deep"))
            return
        if name.why_not_plain is not None:
            self.note("renamed", tool.name, f"is offered as {name.text}: {name.why_not_plain}")

    def note(self, kind: NoteKind, tool: str, fact: str) -> None:
        message = f"tool {tool!r} of server {self.server!r} {fact}"
        self.notes.append(CatalogNote(server=self.server, kind=kind, tool=tool, message=message))

    def _note_second(self, name: str, tool: Tool) -> None:
        first = self.entries[name].tool.name
        if first == tool.name:
            self.note("duplicate", tool.name, "was listed twice; the first one counts")
        else:
            self.note("collision", tool.name, f"was left out: tool {first!r} has its name {name} already")


def entry_of(server: str, name: str, tool: Tool) -> ToolEntry:
    """The entry of `tool`. ValueError: its schema is nested too deep to be written.

    The schema's members are sorted, so that equal schemas are equal bytes at the model (CAT-7). What is shown has no
    characters that steer a terminal or hide from people; `tool` keeps them.
    """
    description = shown(tool.description or tool.title or "")
    spec = ToolSpec(name=name, description=description, input_schema=shown_schema(tool.input_schema))
    return ToolEntry(public_name=name, server=server, tool=tool, spec=spec, visible_to_model=not tool.app_only)


def _good_tools(count: int) -> str:
    return "1 good tool waits" if count == 1 else f"{count} good tools wait"


def _wanted(bad: Iterable[BadEntry], config: ServerConfig) -> Iterator[BadEntry]:
    """The bad tools that the filters do not keep out; a nameless one ("#3") cannot be filtered."""
    return (entry for entry in bad if entry.name.startswith("#") or config.allows(entry.name))


def _refusal(server: str, bad: tuple[BadEntry, ...], waiting: int) -> ServerFailed:
    more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
    return ServerFailed(
        f"cannot take the tools of server {server!r}: tool {bad[0].name!r}{more} cannot be used ({bad[0].reason}); "
        f'{_good_tools(waiting)} behind it, and on_bad_tool = "skip" in [mcp_servers.{server}] lets them in',
        server=server,
        kind="protocol",
        bad_tools=[entry.name for entry in bad],
        waiting=waiting,
    )
