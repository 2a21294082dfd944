"""The model's history of a Thread, in parts: each compaction ends one and begins the next.

Owns: the entries that the next sampling is shown, which calls are unanswered, how much the model would take in.
Never: forgets a part that a rollback could bring back.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from interlock.vocabulary.conversation import (
    AssistantEntry,
    CallEntry,
    Entry,
    MediaPart,
    OpaqueEntry,
    OutputEntry,
    Part,
    Usage,
    UserEntry,
)
from interlock.vocabulary.lazy import Lazy
from interlock.vocabulary.thread import KeptPart

CHARACTERS_PER_TOKEN = 4
TOKENS_PER_MEDIA = 1500
"""A guess for a picture or a recording, which no provider counts by its bytes."""


class Mark(NamedTuple):
    """A place in the history: after so many entries of that part."""

    part: int
    entries: int


class _Part:
    """Entries that were kept in a checkpoint, and those added since."""

    __slots__ = ("_added", "_kept", "_kept_length")

    def __init__(self, kept: KeptPart | None = None, added: Iterable[Entry] = ()) -> None:
        self._kept_length = 0 if kept is None else kept.length
        self._kept = Lazy.of(tuple[Entry, ...]()) if kept is None else kept.entries
        self._added = list(added)

    def __len__(self) -> int:
        return self._kept_length + len(self._added)

    @property
    def entries(self) -> tuple[Entry, ...]:
        return (*self._kept.get(), *self._added)

    def add(self, entries: Iterable[Entry]) -> None:
        self._added.extend(entries)

    def keep(self) -> KeptPart:
        if self._added:
            entries = self.entries
            self._kept, self._kept_length, self._added = Lazy.of(entries), len(entries), []
        return KeptPart(length=self._kept_length, entries=self._kept)


class ModelHistory:
    """Built by the Fold, event by event."""

    def __init__(self, parts: Sequence[KeptPart] = (), unanswered: Sequence[CallEntry] = (), tokens: int = 0) -> None:
        self._parts = [_Part(kept) for kept in parts] or [_Part()]
        self._unanswered = {call.call_id: call for call in unanswered}
        self._view: tuple[Entry, ...] | None = None
        self.tokens = tokens

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The newest part; made when asked for, and kept until it changes."""
        if self._view is None:
            self._view = self._parts[-1].entries
        return self._view

    @property
    def unanswered(self) -> tuple[CallEntry, ...]:
        return tuple(self._unanswered.values())

    @property
    def mark(self) -> Mark:
        return Mark(len(self._parts) - 1, len(self._parts[-1]))

    def record(self, entries: Sequence[Entry]) -> None:
        self._view = None
        self._parts[-1].add(entries)
        self._count(entries)

    def sampled(self, usage: Usage) -> None:
        """A model said how much it took in and gave out: better than our own guess of it."""
        self.tokens = usage.total_tokens

    def compact(self, entries: Sequence[Entry]) -> None:
        self._parts.append(_Part(added=entries))
        self._recount()

    def roll_back(self, mark: Mark) -> None:
        """Be as the history was at `mark`."""
        kept = self._parts[mark.part].entries[: mark.entries]
        self._parts[mark.part :] = [_Part(added=kept)]
        self._recount()

    def keep(self) -> tuple[KeptPart, ...]:
        return tuple(part.keep() for part in self._parts)

    def _recount(self) -> None:
        self._view, self._unanswered, self.tokens = None, {}, 0
        self._count(self.entries)

    def _count(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.tokens += estimated_tokens(entry)
            match entry:
                case CallEntry():
                    self._unanswered[entry.call_id] = entry
                case OutputEntry():
                    self._unanswered.pop(entry.call_id, None)
                case _:
                    pass


def estimated_tokens(entry: Entry) -> int:
    """About how many tokens a model takes for `entry`, as long as no model has said."""
    match entry:
        case UserEntry() | OutputEntry():
            return sum(_part_tokens(part) for part in entry.content)
        case AssistantEntry():
            return -(-len(entry.text) // CHARACTERS_PER_TOKEN)
        case CallEntry():
            return -(-(len(entry.name) + len(entry.arguments)) // CHARACTERS_PER_TOKEN)
        case OpaqueEntry():
            return 0  # what a provider hides is counted by its own figures only


def _part_tokens(part: Part) -> int:
    return TOKENS_PER_MEDIA if isinstance(part, MediaPart) else -(-len(part.text) // CHARACTERS_PER_TOKEN)
