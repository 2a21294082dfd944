"""python -m benchmarks: every row, beside the floor and the peers, into a table and a chart.

    python -m benchmarks [--rows NAME ...] [--subjects NAME ...] [--rounds FACTOR] [--seed N] [--into FOLDER]

The first run makes the environments of the peers (some minutes). A whole run takes a quarter of an hour on two idle
cores; `--subjects floor connection step recorded sqlite` takes a fifth of that and needs no environment.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import chart, machine, report
from benchmarks.environments import HERE, ROOT, versions
from benchmarks.figures import Figures, Verdict, figures, verdict
from benchmarks.rows import COMMANDS, GOALS, ROWS, SUBJECTS, Row
from benchmarks.running import Rounds, run_row
from benchmarks.starting import run_commands

INTO = ROOT / "benchmarks" / "results"
DOCUMENT = ROOT / "benchmarks" / "RESULTS.md"
"""Shows the newest whole run."""
COMMANDS_ROW = "start"
ROUNDS_OF_COMMANDS = 12


def main() -> None:
    given = arguments()
    began = machine.load()
    rows = [replace(row, subjects=tuple(s for s in row.subjects if s in given.subjects)) for row in ROWS]
    rows = [row for row in rows if row.name in given.rows and row.subjects]
    measured = asyncio.run(run_all(rows, given))
    commands = {}
    if COMMANDS_ROW in given.rows:
        print("start and import", file=sys.stderr)
        commands = run_commands(seed=given.seed, rounds=max(1, round(ROUNDS_OF_COMMANDS * given.rounds)))
    results = report.Results(
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        machine=machine.in_words(),
        load=(began, machine.load()),
        versions=all_versions(given.subjects),
        seed=given.seed,
        rows={name: of_row(found) for name, found in measured.items()},
        commands={c.name: figures(commands[c.name], commands[c.base]) for c in COMMANDS if c.name in commands},
        verdicts=all_verdicts(measured),
    )
    report.write(results, rows, given.into)
    (given.into / "chart.svg").write_text(chart.drawn(results.rows, rows), encoding="utf-8")
    if given.into == INTO and rows == list(ROWS) and commands:
        document = DOCUMENT.read_text(encoding="utf-8")
        DOCUMENT.write_text(report.inserted(document, report.summary(results, rows)), encoding="utf-8")
    print("\n".join(report.markdown(results, rows)))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = [row.name for row in ROWS] + [COMMANDS_ROW]
    parser.add_argument("--rows", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--subjects", nargs="+", choices=list(SUBJECTS), default=list(SUBJECTS), metavar="NAME")
    parser.add_argument("--rounds", type=float, default=1.0, help="factor on the number of rounds of each row")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--into", type=Path, default=INTO)
    return parser.parse_args()


async def run_all(rows: Sequence[Row], given: argparse.Namespace) -> dict[str, dict[str, Rounds]]:
    given.into.mkdir(parents=True, exist_ok=True)
    log = given.into / "subjects.log"
    log.unlink(missing_ok=True)
    measured = {}
    for row in rows:
        print(row.title, file=sys.stderr)
        rounds = max(1, round(row.rounds * given.rounds))
        measured[row.name] = await run_row(row, seed=given.seed, rounds=rounds, log=log)
    return measured


def of_row(found: dict[str, Rounds]) -> dict[str, Figures]:
    return {name: figures(rounds, found.get("floor")) for name, rounds in found.items()}


def all_verdicts(measured: dict[str, dict[str, Rounds]]) -> list[Verdict]:
    verdicts = (verdict(goal, measured[goal.row]) for goal in GOALS if goal.row in measured)
    return [one for one in verdicts if one is not None]


def all_versions(subjects: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for environment in dict.fromkeys(SUBJECTS[name].environment for name in subjects):
        packages = tuple(
            dict.fromkeys(SUBJECTS[name].package for name in subjects if SUBJECTS[name].environment == environment)
        )
        here = versions(environment, tuple(filter(None, packages)))
        if environment == "langchain":
            here["mcp (of LangChain)"] = versions(environment, ("mcp",))["mcp"]
        python = here.pop("python")
        found |= here
        if environment == HERE:
            found["Python"] = python
    return found


if __name__ == "__main__":
    main()
