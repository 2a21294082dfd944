"""What a Step offers to the model.

Owns: the order of the tools, and the bytes that the same catalogue always gives (CAT-7).
Never: offers an app-only tool, or changes with anything but the catalogue and the builtins.
"""

from bisect import insort
from collections.abc import Iterable, Mapping
from operator import attrgetter

from interlock.vocabulary.catalog import BuiltinEntry, Catalog
from interlock.vocabulary.json import canonical
from interlock.vocabulary.tool import ToolSpec


def tools_for_model(catalog: Catalog, builtins: Mapping[str, BuiltinEntry]) -> tuple[ToolSpec, ...]:
    """The specs for the model, sorted by name, builtins included and app-only tools left out."""
    specs = list(catalog.offered.get())
    for entry in builtins.values():  # few among what may be very many
        insort(specs, entry.spec, key=attrgetter("name"))
    return tuple(specs)


def canonical_bytes(tools: Iterable[ToolSpec]) -> bytes:
    """The one JSON text of `tools`: equal for equal tools, in every process (CAT-7)."""
    listed = [{"name": t.name, "description": t.description, "input_schema": t.input_schema} for t in tools]
    return canonical(listed).encode()
