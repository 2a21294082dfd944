"""What is done, by a seed.

Owns: the acts of every actor in every round, as values: equal seeds make equal plans.
Never: does anything, or looks at a clock.
"""

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

CALLS_AT_ONCE = 12
HTTP_SERVERS, STATELESS_SHARE, PRIVATE_SERVERS = 3, 0.4, 2


@dataclass(frozen=True, kw_only=True)
class ServerPlan:
    """One server. `shared`: all Threads have one connection to it; by the era if None."""

    name: str
    era: str
    over_http: bool = False
    shared: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call; `cancelled_after` milliseconds, None: never."""

    server: str
    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    cancelled_after: float | None = None


@dataclass(frozen=True, kw_only=True)
class Calls:
    """Calls of one Step, all at once. `left_after`: the whole Step is given up after so many milliseconds."""

    calls: tuple[Call, ...]
    left_after: float | None = None


@dataclass(frozen=True, kw_only=True)
class Kill:
    """SIGKILL for the process of a server."""

    server: str


@dataclass(frozen=True, kw_only=True)
class Reload:
    """Another configuration: without `missing`, and with other filters for `filtered`."""

    missing: tuple[str, ...]
    filtered: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Reopen:
    """Close the Thread; resume it, or begin another."""

    resumed: bool


@dataclass(frozen=True, kw_only=True)
class Read:
    """The model lists or reads resources."""

    server: str | None


Act: TypeAlias = Calls | Kill | Reload | Reopen | Read


def servers(count: int) -> tuple[ServerPlan, ...]:
    """Some over HTTP, some stateless, a few of their own for every Thread."""
    plans = []
    for number in range(count):
        over_http = number < min(HTTP_SERVERS, count // 4)
        private = count - PRIVATE_SERVERS <= number and count > PRIVATE_SERVERS * 2
        era = "stateless" if number % 5 < 5 * STATELESS_SHARE and not private else "handshake"
        shared = None if era == "stateless" or private else True
        plans.append(ServerPlan(name=f"server{number:02d}", era=era, over_http=over_http, shared=shared))
    return tuple(plans)


class Plan:
    """All acts of a soak."""

    def __init__(self, seed: int, names: tuple[str, ...]) -> None:
        self._seed = seed
        self._names = names

    def acts(self, round_number: int, actor: int) -> Iterator[Act]:
        """The acts of one actor in one round, without end: the round's time ends them."""
        chance = random.Random(f"{self._seed} {round_number} {actor}")
        while True:
            yield self._act(chance, first=actor == 0)

    def digest(self, rounds: int = 3, actors: int = 6, acts: int = 50) -> str:
        """A short name of the plan: runs of one seed have the same."""
        text = "".join(
            repr(act)
            for number in range(rounds)
            for actor in range(actors)
            for act, _ in zip(self.acts(number, actor), range(acts), strict=False)
        )
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def _act(self, chance: random.Random, *, first: bool) -> Act:
        """Only the first actor kills and reloads, so that there is one of each at a time."""
        kinds = ["calls"] * 14 + ["read"] * 2 + ["reopen"]
        kinds += ["kill", "reload"] if first else []
        match chance.choice(kinds):
            case "kill":
                return Kill(server=chance.choice(self._names))
            case "reload":
                missing = tuple(name for name in self._names if chance.random() < 0.08)
                filtered = tuple(name for name in self._names if chance.random() < 0.1)
                return Reload(missing=missing, filtered=filtered)
            case "reopen":
                return Reopen(resumed=chance.random() < 0.5)
            case "read":
                return Read(server=chance.choice([None, *self._names]))
        count = chance.choice((1, 1, 2, CALLS_AT_ONCE))
        left = chance.uniform(0, 100) if chance.random() < 0.1 else None
        return Calls(calls=tuple(self._call(chance) for _ in range(count)), left_after=left)

    def _call(self, chance: random.Random) -> Call:
        tool = chance.choices(
            ("echo", "wait", "large", "noise", "storm", "progress", "silent", "die", "orphan", "no_such_tool"),
            (40, 15, 8, 8, 4, 6, 2, 2, 2, 2),
        )[0]
        arguments: dict[str, Any] = {}
        match tool:
            case "wait":
                arguments["milliseconds"] = chance.choice((1, 20, 200))
            case "large":
                arguments["bytes"] = chance.choice((10_000, 300_000, 3_000_000))
            case "noise":
                arguments["lines"] = chance.choice((10, 500))
            case "storm":
                arguments["notices"] = chance.choice((1, 300))
            case "die":
                arguments["milliseconds"] = chance.choice((0, 10))
        cancelled = chance.uniform(0, 60) if tool == "silent" or chance.random() < 0.2 else None
        return Call(server=chance.choice(self._names), tool=tool, arguments=arguments, cancelled_after=cancelled)
