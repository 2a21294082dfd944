"""From samples to figures.

Owns: medians, ratios taken round by round, the verdict on the goals.
Never: measures or prints.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.rows import Goal
from benchmarks.running import Rounds

ByRound = Mapping[int, float]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """One subject in one row. Seconds; `ratio` to the base of the row, `cpu_ratio` of CPU seconds."""

    rounds: int
    median: float | None
    p95: float | None
    cpu: float | None
    ratio: float | None
    cpu_ratio: float | None
    more: Mapping[str, float] = field(default_factory=dict)
    failure: str | None = None


def figures(rounds: Rounds, base: Rounds | None) -> Figures:
    seconds = [second for sample in rounds.samples.values() for second in sample["seconds"]]
    return Figures(
        rounds=len(rounds.samples),
        median=_median(seconds),
        p95=_p95(seconds),
        cpu=_median([sample["cpu"] for sample in rounds.samples.values() if seconds]),
        ratio=ratio(wall(rounds), [(1.0, wall(base))]) if base else None,
        cpu_ratio=ratio(cpu(rounds), [(1.0, cpu(base))]) if base else None,
        more=_more(list(rounds.samples.values())),
        failure=rounds.failure,
    )


def wall(rounds: Rounds) -> ByRound:
    return {n: statistics.median(s["seconds"]) for n, s in rounds.samples.items() if s["seconds"]}


def cpu(rounds: Rounds) -> ByRound:
    return {n: s["cpu"] for n, s in rounds.samples.items() if s["seconds"]}


def ratio(of: ByRound, beside: Sequence[tuple[float, ByRound]]) -> float | None:
    """The median of the ratios of rounds that all have: what slows a round slows all of it."""
    common = set(of).intersection(*(one for _, one in beside))
    if not common:  # one of them is too slow for more than its first round
        return _ratio_of_medians(of, beside)
    return statistics.median(of[n] / (sum(factor * one[n] for factor, one in beside) or 1e-9) for n in common)


def _ratio_of_medians(of: ByRound, beside: Sequence[tuple[float, ByRound]]) -> float | None:
    if not of or not all(one for _, one in beside):
        return None
    total = sum(factor * statistics.median(one.values()) for factor, one in beside)
    return statistics.median(of.values()) / total if total else None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How a goal was met."""

    goal: Goal
    wall: float | None
    cpu: float | None

    @property
    def met(self) -> bool:
        return self.wall is not None and self.wall <= self.goal.limit


def verdict(goal: Goal, row: Mapping[str, Rounds]) -> Verdict | None:
    if goal.subject not in row or any(name not in row for name in goal.beside):
        return None
    beside = [(factor, row[name]) for name, factor in goal.beside.items()]
    return Verdict(
        goal=goal,
        wall=ratio(wall(row[goal.subject]), [(factor, wall(rounds)) for factor, rounds in beside]),
        cpu=ratio(cpu(row[goal.subject]), [(factor, cpu(rounds)) for factor, rounds in beside]),
    )


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _p95(values: Sequence[float]) -> float | None:
    return sorted(values)[min(len(values) - 1, round(len(values) * 0.95))] if values else None


def _more(samples: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    names = samples[0]["more"] if samples else {}
    return {name: statistics.median(sample["more"][name] for sample in samples) for name in names}
