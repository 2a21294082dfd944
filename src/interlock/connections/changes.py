"""What has changed since somebody last looked, folded.

Owns: the marks left by notices of servers, and when each may be acted upon.
Never: reads a clock, waits, or refreshes anything.

A storm of notices leaves one mark (CON-14). A server that answers every listing with another list-changed notice
is heard less and less often: the time between two takings of its mark doubles, from half a second to half a minute.
"""

from dataclasses import dataclass, field
from typing import Final

from interlock.connections.notices import Change, ChangeKind
from interlock.connections.startup import Backoff

MAXIMUM_MARKS: Final = 10_000
"""Bounds the URIs of updated resources; beyond, new ones are dropped (the reader polls or asks again)."""
RHYTHM: Final = Backoff(first=0.5, limit=30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What changed: names of servers by what to read again; `updated` are (server, URI) of subscribed resources."""

    generation: bool = False
    status: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    prompts: frozenset[str] = frozenset()
    updated: frozenset[tuple[str, str]] = frozenset()


@dataclass(slots=True)
class Marks:
    """The open marks, each with the time from which it may be taken."""

    _due: dict[Change, float] = field(default_factory=dict[Change, float])
    _quiet_until: dict[Change, float] = field(default_factory=dict[Change, float])
    _streaks: dict[Change, int] = field(default_factory=dict[Change, int])
    _generation: bool = False

    def mark(self, change: Change, now: float) -> None:
        if change not in self._due and len(self._due) < MAXIMUM_MARKS:
            self._due[change] = max(now, self._quiet_until.get(change, now))

    def mark_generation(self) -> None:
        self._generation = True

    def put_back(self, changes: Changes, now: float) -> None:
        """What was taken could not be acted upon; it stays due."""
        self._generation = self._generation or changes.generation
        for change in unfolded(changes):
            self._due.setdefault(change, now)

    def due_at(self, now: float) -> float:
        """When something can be taken: `now` or a later time, infinity if nothing is marked."""
        if self._generation:
            return now
        return max(now, min(self._due.values(), default=float("inf")))

    def take(self, now: float) -> Changes:
        """All that is due, once."""
        taken = [change for change, due in self._due.items() if due <= now]
        for change in taken:
            del self._due[change]
            self._calm(change, now)
        generation, self._generation = self._generation, False
        return folded(taken, generation=generation)

    def forget(self, servers: frozenset[str]) -> None:
        """Drop everything about servers that are gone."""
        for change in [change for change in (*self._due, *self._quiet_until) if change.server in servers]:
            self._due.pop(change, None)
            self._quiet_until.pop(change, None)
            self._streaks.pop(change, None)

    def _calm(self, change: Change, now: float) -> None:
        if change.kind == "status" or change.uri is not None:
            return
        streak = self._streaks.get(change, -1)
        came_at_once = streak >= 0 and now < self._quiet_until[change] + RHYTHM.delay(streak, 1.0)
        self._streaks[change] = streak + 1 if came_at_once else 0
        self._quiet_until[change] = now + RHYTHM.delay(self._streaks[change], 1.0)


def folded(changes: list[Change], *, generation: bool = False) -> Changes:
    def servers(kind: ChangeKind) -> frozenset[str]:
        return frozenset(change.server for change in changes if change.kind == kind)

    return Changes(
        generation=generation,
        status=servers("status"),
        tools=servers("tools"),
        resources=servers("resources"),
        prompts=servers("prompts"),
        updated=frozenset((change.server, change.uri) for change in changes if change.uri is not None),
    )


def unfolded(changes: Changes) -> list[Change]:
    by_kind: tuple[tuple[ChangeKind, frozenset[str]], ...] = (
        ("status", changes.status),
        ("tools", changes.tools),
        ("resources", changes.resources),
        ("prompts", changes.prompts),
    )
    lists = [Change(server=server, kind=kind) for kind, servers in by_kind for server in servers]
    return lists + [Change(server=server, kind="updated", uri=uri) for server, uri in changes.updated]
