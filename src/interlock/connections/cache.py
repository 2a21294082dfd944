"""Results that a 2026-07-28 server allowed us to keep for a while (CON-17; specification: caching).

Owns: the results of one connection by request, and how long each is fresh.
Never: reads a clock, asks a server, or serves anything stale. One connection is one user's, since credentials are
part of its identity, so private and public results are kept alike.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from interlock.vocabulary.json import JsonObject, JsonValue

CACHEABLE: Final = frozenset(
    {"tools/list", "resources/list", "resources/templates/list", "prompts/list", "resources/read"}
)
MAXIMUM_RESULTS: Final = 256
MAXIMUM_WEIGHT: Final = 16 * 1024 * 1024
"""Bytes, roughly, of all that is kept; a heavier result is not kept at all."""
ENTRY_WEIGHT: Final = 1024
"""Bytes that one entry of a listing counts for."""
LONGEST: Final = 24 * 3600.0
"""Seconds after which even the freshest result is asked for again."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A result with the time at which it goes stale."""

    result: JsonObject
    until: float
    weight: int


@dataclass(slots=True)
class Cache:
    """Least recently used goes first. Times are seconds of any one clock."""

    _kept: "OrderedDict[tuple[str, Hashable], Kept]" = field(default_factory=OrderedDict)
    weight: int = 0
    """Of everything kept, in bytes, roughly."""

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, method: str, params: JsonObject, now: float) -> JsonObject | None:
        """The result, if it is fresh."""
        key = (method, _key(params))
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept.until <= now:
            self._remove(key)
            return None
        self._kept.move_to_end(key)
        return kept.result

    def put(self, method: str, params: JsonObject, result: JsonObject, now: float) -> None:
        """Keep `result` for as long as its ttlMs says; 0, negative or missing means not at all."""
        key = (method, _key(params))
        self._remove(key)
        seconds, weight = _seconds(result.get("ttlMs")), _weight(result)
        if method not in CACHEABLE or seconds <= 0 or weight > MAXIMUM_WEIGHT:
            return
        self._kept[key] = Kept(result, now + seconds, weight)
        self.weight += weight
        while len(self._kept) > MAXIMUM_RESULTS or self.weight > MAXIMUM_WEIGHT:
            self._remove(next(iter(self._kept)))

    def drop(self, method: str, params: JsonObject | None = None) -> None:
        """Forget one result, or (None) all of a method: the server said that it changed."""
        wanted = None if params is None else _key(params)
        for key in [key for key in self._kept if key[0] == method and wanted in (None, key[1])]:
            self._remove(key)

    def clear(self) -> None:
        self._kept.clear()
        self.weight = 0

    def _remove(self, key: tuple[str, Hashable]) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.weight -= kept.weight


def _key(params: JsonObject) -> Hashable:
    """Parameters of cacheable requests are flat: a cursor or a URI."""
    return tuple(sorted(params.items()))


def _seconds(ttl: JsonValue) -> float:
    if isinstance(ttl, bool) or not isinstance(ttl, int | float):
        return 0.0
    return min(max(ttl, 0), LONGEST * 1000) / 1000  # bounded first: a whole number may be too large for a float


def _weight(result: JsonObject) -> int:
    weight = 0
    for value in result.values():
        if isinstance(value, list):
            weight += sum(ENTRY_WEIGHT + _text_length(entry) for entry in value)
    return weight


def _text_length(entry: JsonValue) -> int:
    if not isinstance(entry, dict):
        return 0
    return sum(len(entry[member]) for member in ("text", "blob") if isinstance(entry.get(member), str))
