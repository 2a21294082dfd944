"""The scenarios: which there are, and which can be driven without a person who logs in.

Owns: finding and reading scenario files, and the rule that selects them.
Never: plays one (`animals`), drives one (`driving`) or judges one (`judging`).
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FOLDERS = (HERE / "scenarios", HERE / "own")
"""Scenarios shared with other hosts, and those that were found here."""
NEIGHBOUR = HERE / "neighbour.json"
GROUPS_WITH_PEOPLE = frozenset({"auth"})
"""Groups in which somebody logs in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """Where we hold that a shared scenario expects the wrong thing: its operations `op` get `changes`, for `why`."""

    op: str
    changes: dict[str, Any]
    why: str


DEPARTURES = {
    "proc-crash-loop": Departure(
        op="call",
        changes={"ok": "any"},
        why="between its deaths this server lives for 0.1 s, and a call in such a moment is rightly answered; else it "
        "fails at once. The specification leaves restarts to the client (basic/lifecycle: Shutdown), and what the "
        "words want, few starts, is judged",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One odd server: how it behaves, what is done with it, and what should come of that. `path` is its file."""

    name: str
    path: Path
    script: dict[str, Any]

    @property
    def transport(self) -> str:
        """ "stdio", "http" or "sse"."""
        return str(self.script["transport"])

    @property
    def host(self) -> dict[str, Any]:
        """What the host should be configured with; see the README."""
        return dict(self.script.get("host", {}))

    @property
    def expect(self) -> dict[str, Any]:
        return dict(self.script["expect"])

    @property
    def words(self) -> str:
        """The right behaviour, with its reason."""
        return str(self.expect["words"])

    @property
    def operations(self) -> list[dict[str, Any]]:
        departure = DEPARTURES.get(self.name)
        if departure is None:
            return list(self.expect["drive"])
        return [step | departure.changes if step["op"] == departure.op else step for step in self.expect["drive"]]

    @property
    def needs_people(self) -> bool:
        return self.script["group"] in GROUPS_WITH_PEOPLE

    @property
    def judges_memory(self) -> bool:
        """Whether the host must have a process of its own, so that its memory can be told."""
        return any("max_rss_mb" in check for check in self.expect.get("after", ()))


def load(path: Path) -> Scenario:
    return Scenario(name=path.stem, path=path, script=json.loads(path.read_text(encoding="utf-8")))


def all_scenarios() -> dict[str, Scenario]:
    """Every scenario by name, in the order of the names; a name twice is an error."""
    found: dict[str, Scenario] = {}
    for path in sorted((path for folder in FOLDERS for path in folder.glob("*.json")), key=lambda path: path.stem):
        if path.stem in found:
            raise ValueError(f"two scenarios are named {path.stem}")
        found[path.stem] = load(path)
    return found


def driven() -> dict[str, Scenario]:
    """Those that the library is driven through here."""
    return {name: scenario for name, scenario in all_scenarios().items() if not scenario.needs_people}
