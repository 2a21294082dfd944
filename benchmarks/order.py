"""Whether two runs tell the same order: python -m benchmarks.order OLDER.json [NEWER.json]

Owns: the pairs of subjects that changed places from one run to another, and how far they were apart in each.
Never: calls subjects that were as good as equal in either run an order.
"""

import argparse
import json
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.environments import ROOT

NEARLY_EQUAL = 1.15
"""Two medians whose ratio is below that may come in any order: rounds of one run are further apart."""


class Swap(NamedTuple):
    """`first` was faster than `second` by the factor `older`, and is slower by the factor `newer`."""

    row: str
    first: str
    second: str
    older: float
    newer: float


def medians(results: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Seconds of each subject by row; those that failed, and rows without times, are left out."""
    rows = {
        row: {name: figures["median"] for name, figures in subjects.items() if figures["median"]}
        for row, subjects in results["rows"].items()
    }
    return {row: times for row, times in rows.items() if times}


def swaps(older: Mapping[str, Any], newer: Mapping[str, Any]) -> tuple[int, list[Swap]]:
    """How many pairs both runs tell apart, and those of them that changed places."""
    before, after = medians(older), medians(newer)
    compared, found = 0, []
    for row in before.keys() & after.keys():
        for first, second in combinations(
            sorted(before[row].keys() & after[row].keys(), key=before[row].__getitem__), 2
        ):
            was, became = before[row][second] / before[row][first], after[row][second] / after[row][first]
            if was < NEARLY_EQUAL or 1 / NEARLY_EQUAL < became < NEARLY_EQUAL:
                continue
            compared += 1
            if became < 1:
                found.append(Swap(row, first, second, was, 1 / became))
    return compared, sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.order", description=__doc__)
    parser.add_argument("older", type=Path)
    parser.add_argument("newer", type=Path, nargs="?", default=ROOT / "benchmarks" / "results" / "results.json")
    given = parser.parse_args()
    compared, found = swaps(*(json.loads(path.read_text(encoding="utf-8")) for path in (given.older, given.newer)))
    print(f"{compared} pairs of subjects are told apart by both runs; {len(found)} of them changed places")
    for swap in found:
        print(
            f"  {swap.row}: {swap.first} was {swap.older:.2f} times as fast as {swap.second},"
            f" and is {swap.newer:.2f} times as slow"
        )
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
