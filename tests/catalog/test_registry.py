"""Registry: a source is replaced whole or not at all, and nobody takes another's name."""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from interlock.catalog.entries import replacement
from interlock.catalog.offer import canonical_bytes, tools_for_model
from interlock.catalog.refresh import apply, source_of
from interlock.catalog.registry import Registry
from interlock.vocabulary.catalog import BuiltinEntry, Catalog, ToolEntry
from interlock.vocabulary.errors import InvalidRequest, ServerFailed
from interlock.vocabulary.tool import BadEntry, ToolSpec
from tests.catalog.tools import config, listing, tool
from tests.manifest import requirement


def names(catalog: Catalog) -> list[str]:
    return list(catalog.entries)


def builtin(name: str) -> BuiltinEntry:
    return BuiltinEntry(public_name=name, spec=ToolSpec(name=name, description="", input_schema={"type": "object"}))


@requirement("CAT-2")
def test_a_refresh_replaces_all_handlers_of_its_source_and_moves_the_revision_by_one() -> None:
    registry = Registry()
    apply(registry, listing("a", "old", "kept"), config("a"))
    apply(registry, listing("b", "other"), config("b"))
    before = registry.catalog
    apply(registry, listing("a", "kept", "new"), config("a"))
    assert names(registry.catalog) == ["mcp__a__kept", "mcp__a__new", "mcp__b__other"]
    assert registry.catalog.revision == before.revision + 1
    assert names(before) == ["mcp__a__kept", "mcp__a__old", "mcp__b__other"]  # a Step that holds it sees no change


def test_its_repr_is_its_status() -> None:
    registry = Registry()
    assert repr(registry) == "<Registry revision 0: 0 tools of no sources>"
    apply(registry, listing("a", "x", "y"), config("a"))
    assert repr(registry) == "<Registry revision 1: 2 tools of mcp:a>"


@requirement("CAT-2")
def test_an_identical_refresh_is_not_observable() -> None:
    registry = Registry()
    apply(registry, listing("a", "x"), config("a"))
    before = registry.catalog
    apply(registry, listing("a", "x"), config("a"))
    assert registry.catalog is before


@requirement("CAT-2")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"input_schema": {"default": 1}}, {"input_schema": {"default": True}}),
        ({"description": None}, {"description": "words"}),
        ({"meta": {"ui": {"visibility": ["app"]}}}, {"meta": None}),
        ({"raw": {"name": "x", "unknown": 1}}, {"raw": {"name": "x", "unknown": 2}}),
    ],
)
def test_the_smallest_change_of_a_tool_is_a_change(before: dict[str, object], after: dict[str, object]) -> None:
    registry = Registry()
    apply(registry, listing("a", tool("x", **before)), config("a"))
    apply(registry, listing("a", tool("x", **after)), config("a"))
    assert registry.catalog.revision == 2


@requirement("CAT-2")
def test_metadata_too_deep_to_compare_counts_as_a_change_and_breaks_nothing() -> None:
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"a": deep}
    registry = Registry()
    for revision in (1, 2):
        apply(registry, listing("a", tool("x", meta=deep)), config("a"))
        assert registry.catalog.revision == revision


@requirement("CAT-2", "CAT-3")
def test_a_refused_refresh_leaves_the_old_catalogue_whole() -> None:
    registry = Registry()
    apply(registry, listing("a", "x"), config("a"))
    before, notes = registry.catalog, registry.notes()
    with pytest.raises(ServerFailed):
        apply(registry, listing("a", "y", bad=(BadEntry(name="z", reason="no schema"),)), config("a"))
    assert registry.catalog is before
    assert registry.notes() == notes


@requirement("CAT-5")
def test_the_owner_of_a_name_keeps_it_and_the_newcomer_is_refused_whole() -> None:
    registry = Registry()
    registry.replace_source("builtin", [builtin("mcp__a__x")])
    before = registry.catalog
    with pytest.raises(InvalidRequest, match="belongs to 'builtin'"):
        apply(registry, listing("a", "free", "x"), config("a"))
    assert registry.catalog is before
    assert registry.sources == ("builtin",)
    assert list(registry.builtins) == ["mcp__a__x"]


@requirement("CAT-5")
def test_a_refused_newcomer_can_come_once_the_owner_is_gone() -> None:
    registry = Registry()
    registry.replace_source("builtin", [builtin("mcp__a__x")])
    registry.remove_source("builtin")
    apply(registry, listing("a", "x"), config("a"))
    assert names(registry.catalog) == ["mcp__a__x"]


@requirement("CAT-5")
def test_one_source_cannot_bring_a_name_twice() -> None:
    registry = Registry()
    entries = replacement(listing("a", "x"), config("a")).entries
    with pytest.raises(InvalidRequest):
        registry.replace_source("mcp:a", [*entries, *entries])
    assert registry.catalog == Catalog()


@requirement("CAT-2")
def test_removing_a_source_takes_out_its_handlers_and_notes_only() -> None:
    registry = Registry()
    apply(registry, listing("a", "x.y"), config("a"))
    apply(registry, listing("b", "x"), config("b"))
    registry.remove_source(source_of("a"))
    assert names(registry.catalog) == ["mcp__b__x"]
    assert registry.notes() == ()
    revision = registry.catalog.revision
    registry.remove_source(source_of("a"))
    assert registry.catalog.revision == revision


@requirement("CAT-7")
def test_the_same_tools_are_the_same_bytes_whatever_the_order_of_arrival() -> None:
    tools = [("b", "t1"), ("a", "t2"), ("a", "t1"), ("c", "z.z"), ("B", "t1")]
    texts = set()
    for seed in range(5):
        shuffled = random.Random(seed).sample(tools, len(tools))
        registry = Registry()
        for server in dict.fromkeys(server for server, _ in shuffled):
            apply(registry, listing(server, *[name for owner, name in shuffled if owner == server]), config(server))
        offered = tools_for_model(registry.catalog, {"list": builtin("list")})
        assert [spec.name for spec in offered] == sorted(spec.name for spec in offered)
        texts.add(canonical_bytes(offered))
    assert len(texts) == 1


def test_what_is_offered_of_a_catalog_is_looked_for_once_however_many_steps_ask() -> None:
    class Watched(dict[str, ToolEntry]):
        looks = 0

        def values(self) -> Any:
            self.looks += 1
            return super().values()

    entries = Watched({entry.public_name: entry for entry in replacement(listing("s", "b", "a"), config("s")).entries})
    catalog = Catalog(revision=1, entries=entries)
    for name in ("list", "zoo"):
        offered = tools_for_model(catalog, {name: builtin(name)})
        assert [spec.name for spec in offered] == sorted(["mcp__s__a", "mcp__s__b", name])
    assert entries.looks == 1


@requirement("CAT-8")
def test_an_app_only_tool_is_found_and_not_offered() -> None:
    registry = Registry()
    hidden = tool("render", meta={"ui": {"visibility": ["app"]}})
    apply(registry, listing("a", hidden, "shown"), config("a", disabled_tools=("denied",)))
    assert registry.catalog.find("a", "render") is not None
    assert registry.catalog.find("a", "denied") is None
    assert [spec.name for spec in tools_for_model(registry.catalog, {})] == ["mcp__a__shown"]


@requirement("CAT-2")
def test_a_source_without_tools_moves_no_revision_and_keeps_its_notes() -> None:
    registry = Registry()
    apply(registry, listing("a", "x"), config("a", disabled_tools=("x",)))
    assert registry.catalog.revision == 0
    assert [note.kind for note in registry.notes("mcp:a")] == ["filtered"]
    registry.remove_source("mcp:a")
    assert (registry.catalog.revision, registry.notes(), registry.sources) == (0, (), ())


def handler(name: str, says: str) -> ToolEntry | BuiltinEntry:
    """A handler under a name that several sources can claim; one that says nothing is of the host itself."""
    if not says:
        return builtin(name)
    (made,) = replacement(listing("s", tool(name, description=says)), config("s")).entries
    return replace(made, public_name=name)


def said(entry: ToolEntry) -> str:
    return entry.tool.description or ""


SOURCES = st.sampled_from(["a", "b", "builtin"])
TOOLS = st.dictionaries(st.sampled_from(["x", "y", "z"]), st.sampled_from(["", "this", "that"]))


class RegistryMatchesADictOfOwners(RuleBasedStateMachine):
    """Any order of replacing and removing behaves like one dict from name to owner and what its handler says."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = Registry()
        self.owners: dict[str, tuple[str, str]] = {}
        self.changes = 0

    @rule(source=SOURCES, tools=TOOLS)
    def replace(self, source: str, tools: dict[str, str]) -> None:
        before = self.registry.catalog
        handlers = [handler(name, says) for name, says in tools.items()]
        if any(self.owners.get(name, (source, ""))[0] != source for name in tools):
            with pytest.raises(InvalidRequest):
                self.registry.replace_source(source, handlers)
            assert self.registry.catalog is before
            return
        new = {name: (source, says) for name, says in tools.items()}
        changed = {name: own for name, own in self.owners.items() if own[0] == source} != new
        self.registry.replace_source(source, handlers)
        self.owners = {name: own for name, own in self.owners.items() if own[0] != source} | new
        self.changes += changed

    @rule(source=SOURCES)
    def remove(self, source: str) -> None:
        self.changes += any(owner == source for owner, _ in self.owners.values())
        self.registry.remove_source(source)
        self.owners = {name: own for name, own in self.owners.items() if own[0] != source}

    @invariant()
    def the_catalogue_is_what_the_owners_have(self) -> None:
        entries = self.registry.catalog.entries
        tools = {name: says for name, (_, says) in sorted(self.owners.items()) if says}
        assert [(name, said(entry)) for name, entry in entries.items()] == list(tools.items())
        assert list(self.registry.builtins) == sorted(name for name, (_, says) in self.owners.items() if not says)
        assert self.registry.catalog.revision == self.changes


TestRegistryMatchesADictOfOwners = RegistryMatchesADictOfOwners.TestCase
