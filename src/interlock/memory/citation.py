"""What a citation says.

Owns: reading the bodies of citation blocks: entries for people, rollout ids for the count of uses (MEM-3).
Never: raises; a line that is not as it should be is left out, and takes nothing else with it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from interlock.vocabulary.json import JsonObject

MAXIMUM_ENTRIES = MAXIMUM_IDS = 1000
"""Of one message; what comes beyond is left out."""

ID_LIMIT = 200
"""Characters of a rollout id: a Thread's id has no more."""

LINE_LIMIT = 2**32 - 1
"""The largest line number, as in the format's own type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedLines:
    """Lines of a memory file that an answer rests on, with the model's own note."""

    path: str
    line_start: int
    line_end: int
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCitation:
    """`entries` are for people, `rollout_ids` for the count of uses; neither follows from the other."""

    entries: tuple[CitedLines, ...] = ()
    rollout_ids: tuple[str, ...] = ()

    def json(self) -> JsonObject:
        """As an item carries it: {"entries": [{path, lineStart, lineEnd, note}], "rolloutIds": [...]}."""
        entries = [
            {"path": e.path, "lineStart": e.line_start, "lineEnd": e.line_end, "note": e.note} for e in self.entries
        ]
        return {"entries": entries, "rolloutIds": list(self.rollout_ids)}


def read_citation(bodies: Iterable[str]) -> MemoryCitation | None:
    """The citation of one message, made of all its blocks; None when they hold neither an entry nor an id."""
    entries: list[CitedLines] = []
    ids: dict[str, None] = {}
    for body in bodies:
        entries.extend(_entries(body))
        ids |= dict.fromkeys(_ids(body))
    if not entries and not ids:
        return None
    return MemoryCitation(entries=tuple(entries[:MAXIMUM_ENTRIES]), rollout_ids=tuple(ids)[:MAXIMUM_IDS])


def _entries(body: str) -> Iterator[CitedLines]:
    for line in _lines(_part(body, "citation_entries")):
        entry = _entry(line)
        if entry is not None:
            yield entry


def _ids(body: str) -> Iterator[str]:
    part = _part(body, "rollout_ids")
    for line in _lines(_part(body, "thread_ids") if part is None else part):
        if len(line) <= ID_LIMIT:
            yield line


def _part(body: str, name: str) -> str | None:
    """What stands between the first tags of that name; None without both."""
    _, _, rest = body.partition(f"<{name}>")
    part, closed, _ = rest.partition(f"</{name}>")
    return part if closed else None


def _lines(part: str | None) -> Iterator[str]:
    for line in (part or "").split("\n"):
        stripped = line.strip()
        if stripped:
            yield stripped


def _entry(line: str) -> CitedLines | None:
    """`path:start-end|note=[text]`, split from the right: a path may hold colons, a note anything."""
    place, has_note, note = line.rpartition("|note=[")
    path, has_range, lines = place.rpartition(":")
    start, _, end = lines.partition("-")
    first, last = _line_number(start), _line_number(end)
    if not (has_note and has_range and note.endswith("]")) or first is None or last is None:
        return None
    return CitedLines(path=path.strip(), line_start=first, line_end=last, note=note[:-1].strip())


def _line_number(text: str) -> int | None:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
        return None
    return number if (number := int(digits)) <= LINE_LIMIT else None
