"""Which source owns which handlers: the one place where the catalogue changes.

Owns: sources, the owner of every public name, the catalogue and its revision.
Never: waits, half-applies a replacement, or lets one source take another's name (CAT-2, CAT-5).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import TypeAlias

from interlock.vocabulary.catalog import BuiltinEntry, Catalog, CatalogNote, ToolEntry
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.json import JsonValue, canonical
from interlock.vocabulary.slices import Sliced, at_once
from interlock.vocabulary.tool import Tool

Handler: TypeAlias = ToolEntry | BuiltinEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """What one source has put in: handlers by public name, in its order, and notes."""

    handlers: Mapping[str, Handler] = field(default_factory=dict[str, Handler])
    notes: tuple[CatalogNote, ...] = ()


_NOTHING = _Source()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What `source` may become by `install`: compared with what it was then."""

    source: str
    new: _Source
    old: _Source
    same: bool

    @property
    def notes(self) -> tuple[CatalogNote, ...]:
        return self.new.notes


@dataclass(slots=True, repr=False)
class Registry:
    """The handlers of one Thread by source; `catalog` is their frozen union.

    Every observable change moves the revision by one. A replacement by the same handlers, byte for
    byte, is not observable: the catalogue stays the same object, so that a server's storm of
    identical refreshes costs later Steps and prompt caches nothing. Notes are replaced regardless.
    """

    _sources: dict[str, _Source] = field(default_factory=dict[str, _Source])
    _owners: dict[str, str] = field(default_factory=dict[str, str])
    _entries: dict[str, ToolEntry] = field(default_factory=dict[str, ToolEntry])
    _catalog: Catalog = field(default_factory=Catalog)

    def __repr__(self) -> str:
        tools, revision = len(self._catalog.entries), self._catalog.revision
        return f"<Registry revision {revision}: {tools} tools of {', '.join(self.sources) or 'no sources'}>"

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    @property
    def builtins(self) -> Mapping[str, BuiltinEntry]:
        """The functions of the host itself, sorted by name."""
        return {
            name: handler for name, handler in sorted(self._handlers().items()) if isinstance(handler, BuiltinEntry)
        }

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(sorted(self._sources))

    def notes(self, source: str | None = None) -> tuple[CatalogNote, ...]:
        """What people should know about the tools of `source`, or of all sources in order."""
        names = self.sources if source is None else (source,)
        return tuple(note for name in names if name in self._sources for note in self._sources[name].notes)

    def replace_source(self, source: str, handlers: Iterable[Handler], notes: Iterable[CatalogNote] = ()) -> Catalog:
        """Put `handlers` in the place of everything that `source` had, and return the catalogue of now.

        Costs what `source` had and has, and one merge of names.

        Raises:
            InvalidRequest: a name belongs to another source, which keeps it, or came twice (CAT-5).
                Nothing has changed then.
        """
        return self.install(at_once(self.preparing(source, handlers, notes)))

    def preparing(
        self, source: str, handlers: Iterable[Handler], notes: Iterable[CatalogNote] = ()
    ) -> Sliced[Prepared]:
        """The first half of `replace_source`, in slices: everything that many tools make slow. Changes nothing.

        Raises:
            InvalidRequest: a name came twice (CAT-5).
        """
        new = yield from _source(handlers, tuple(notes), source)
        old = self._sources.get(source, _NOTHING)
        return Prepared(source=source, new=new, old=old, same=(yield from _comparing(old.handlers, new.handlers)))

    def install(self, prepared: Prepared) -> Catalog:
        """The second half, in one piece: one merge of names. What was prepared beside another replacement is compared
        anew.

        Raises:
            InvalidRequest: a name belongs to another source, which keeps it (CAT-5). Nothing has changed then.
        """
        self._refuse_owned_names(prepared.source, prepared.new.handlers)
        old, new = self._sources.get(prepared.source, _NOTHING), prepared.new
        same = prepared.same if old is prepared.old else at_once(_comparing(old.handlers, new.handlers))
        self._install(prepared.source, new, same)
        return self._catalog

    def remove_source(self, source: str) -> Catalog:
        """Take out everything that `source` had; an unknown source is no error."""
        if source not in self._sources:
            return self._catalog
        self._install(source, _NOTHING, same=not self._sources[source].handlers)
        del self._sources[source]
        return self._catalog

    def _refuse_owned_names(self, source: str, names: Iterable[str]) -> None:
        for name in names:
            owner = self._owners.get(name, source)
            if owner != source:
                raise _taken(source, owner, name)

    def _install(self, source: str, new: _Source, same: bool) -> None:
        """`same`: nobody can tell its handlers from those that there are."""
        old = self._sources.get(source, _NOTHING)
        self._sources[source] = new
        if same:
            return
        for name in old.handlers:
            del self._owners[name]
        self._owners.update(dict.fromkeys(new.handlers, source))
        was, become = _tools(old.handlers), _tools(new.handlers)
        # Most changes are of what tools say, not of their names: then the order of all others stands.
        self._entries = {**self._entries, **become} if was.keys() == become.keys() else self._merged()
        self._catalog = Catalog(revision=self._catalog.revision + 1, entries=MappingProxyType(self._entries))

    def _merged(self) -> dict[str, ToolEntry]:
        entries = _tools(self._handlers())
        return {name: entries[name] for name in sorted(entries)}

    def _handlers(self) -> dict[str, Handler]:
        """All handlers; sources in the order of their names, so that sorting meets long ordered runs."""
        merged: dict[str, Handler] = {}
        for name in sorted(self._sources):
            merged.update(self._sources[name].handlers)
        return merged


def _tools(handlers: Mapping[str, Handler]) -> dict[str, ToolEntry]:
    return {name: handler for name, handler in handlers.items() if isinstance(handler, ToolEntry)}


def _source(handlers: Iterable[Handler], notes: tuple[CatalogNote, ...], source: str) -> Sliced[_Source]:
    by_name: dict[str, Handler] = {}
    for handler in sorted(handlers, key=attrgetter("public_name")):
        if handler.public_name in by_name:
            raise _taken(source, source, handler.public_name)
        by_name[handler.public_name] = handler
        yield
    return _Source(handlers=by_name, notes=notes)


def _comparing(old: Mapping[str, Handler], new: Mapping[str, Handler]) -> Sliced[bool]:
    """Whether nobody can tell `old` from `new`. Names first: they tell most changes, and cost nothing."""
    if old.keys() != new.keys():
        return False
    for name, handler in old.items():
        if not _equal_handlers(handler, new[name]):
            return False
        yield
    return True


def _equal_handlers(old: Handler, new: Handler) -> bool:
    """Compared as text, since to Python True equals 1; what cannot be written counts as changed."""
    try:
        return old is new or canonical(_facts(old)) == canonical(_facts(new))
    except ValueError:
        return False


def _taken(source: str, owner: str, name: str) -> InvalidRequest:
    return InvalidRequest(
        f"cannot take the tools of {source!r}: the name {name!r} belongs to {owner!r} already; rename one of the two",
        source=source,
        owner=owner,
        name=name,
    )


def _facts(handler: Handler) -> JsonValue:
    """All that can be observed of a handler."""
    spec = [handler.spec.name, handler.spec.description, handler.spec.input_schema]
    if isinstance(handler, BuiltinEntry):
        return [handler.public_name, spec]
    return [handler.public_name, spec, handler.server, handler.visible_to_model, _tool_facts(handler.tool)]


def _tool_facts(tool: Tool) -> JsonValue:
    hints = tool.annotations
    read = [hints.title, hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint]
    rest = tool.raw or [tool.input_schema, tool.output_schema, tool.icons, tool.meta]
    return [tool.name, tool.title, tool.description, read, rest]
