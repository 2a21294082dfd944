"""The results as files: JSON for machines, Markdown for people.

Owns: the shape of both.
Never: judges; the figures and verdicts come ready.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.figures import Figures, Verdict
from benchmarks.rows import SUBJECTS, Row

SCALE = {"µs": 1e6, "ms": 1e3, "KiB": 1.0}
NOTHING = "-"
BEGIN, END = "<!-- begin: written by python -m benchmarks -->", "<!-- end: written by python -m benchmarks -->"
"""Between these lines of a document stand the tables that every run there writes anew."""


@dataclass(frozen=True, kw_only=True)
class Results:
    """One run. `rows` and `commands` by name, then by subject."""

    made: str
    machine: str
    load: tuple[float, float]
    versions: Mapping[str, str]
    seed: int
    rows: Mapping[str, Mapping[str, Figures]]
    commands: Mapping[str, Figures]
    verdicts: Sequence[Verdict]


def write(results: Results, rows: Sequence[Row], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(asdict(results), indent=1) + "\n", encoding="utf-8")
    (folder / "table.md").write_text("\n".join(markdown(results, rows)) + "\n", encoding="utf-8")


def summary(results: Results, rows: Sequence[Row]) -> Iterator[str]:
    """What a reader wants first: the goals and one line for each row."""
    yield from preamble(results)
    if results.verdicts:
        yield from ("", "### Goals", "", *goals_table(results.verdicts))
    yield from ("", "### Every row, as a ratio to the floor", "", *overview(results, rows))
    if results.commands:
        yield from ("", "### From start to end of a program", "", *commands_table(results.commands))


def inserted(document: str, lines: Iterator[str]) -> str:
    """The document with `lines` between the marks; ValueError if it has none."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the document has no lines {BEGIN!r} and {END!r}")
    return "\n".join([f"{before}{BEGIN}", "", *lines, "", f"{END}{after}"])


def markdown(results: Results, rows: Sequence[Row]) -> Iterator[str]:
    yield from preamble(results)
    if results.verdicts:
        yield from ("", "## Goals", "", *goals_table(results.verdicts))
    yield from ("", "## Every row, as a ratio to the floor", "", *overview(results, rows))
    for row in rows:
        if row.name in results.rows:
            yield from ("", f"### {row.title[0].upper()}{row.title[1:]} (`{row.name}`)", "")
            yield from row_table(results.rows[row.name], row)
    if results.commands:
        yield from ("", "### From start to end of a program", "", *commands_table(results.commands))


def preamble(results: Results) -> Iterator[str]:
    yield f"Made {results.made}, seed {results.seed}. {results.machine}."
    yield f"Load when it began and ended: {results.load[0]:.1f} and {results.load[1]:.1f}."
    yield "Versions: " + ", ".join(f"{name} {version}" for name, version in results.versions.items()) + "."


def goals_table(verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield "| row | ratio | limit | measured | of CPU time | met |"
    yield "|---|---|---|---|---|---|"
    for verdict in verdicts:
        goal = verdict.goal
        beside = " + ".join(("" if f == 1 else f"{f:g} x ") + SUBJECTS[name].title for name, f in goal.beside.items())
        title = f"{SUBJECTS[goal.subject].title} / {'(' + beside + ')' if len(goal.beside) > 1 else beside}"
        met = "yes" if verdict.met else "**no**"
        yield f"| {goal.row} | {title} | {goal.limit:g} | {number(verdict.wall)} | {number(verdict.cpu)} | {met} |"


def overview(results: Results, rows: Sequence[Row]) -> Iterator[str]:
    names = [name for name in SUBJECTS if any(name in row for row in results.rows.values())]
    yield "| row | " + " | ".join(SUBJECTS[name].title for name in names) + " |"
    yield "|---|" + "---|" * len(names)
    for row in rows:
        if row.name in results.rows and row.unit != "KiB":
            found = results.rows[row.name]
            cells = (number(found[name].ratio) if name in found else NOTHING for name in names)
            yield f"| {row.title} | " + " | ".join(cells) + " |"


def row_table(found: Mapping[str, Figures], row: Row) -> Iterator[str]:
    more = list(next(iter(found.values())).more)
    timed = row.unit != "KiB"
    columns = [f"median {row.unit}", "p95", "CPU", "x floor", "CPU x floor"] if timed else []
    yield "| subject | " + " | ".join([*columns, *map(_title_of_more, more), "rounds"]) + " |"
    yield "|---|" + "---|" * (len(columns) + len(more) + 1)
    for name, figures in found.items():
        cells = list(timed_cells(figures, SCALE[row.unit])) if timed else []
        cells += [number(_scaled(name_of, figures.more.get(name_of))) for name_of in more]
        cells.append(figures.failure or str(figures.rounds))
        yield f"| {SUBJECTS[name].title} | " + " | ".join(cells) + " |"


def timed_cells(figures: Figures, scale: float) -> Iterator[str]:
    for seconds in (figures.median, figures.p95, figures.cpu):
        yield NOTHING if seconds is None else number(seconds * scale)
    yield number(figures.ratio)
    yield number(figures.cpu_ratio)


def commands_table(found: Mapping[str, Figures]) -> Iterator[str]:
    yield "| program | median ms | p95 | CPU | x bare python | CPU x bare python |"
    yield "|---|---|---|---|---|---|"
    for name, figures in found.items():
        yield f"| {name} | " + " | ".join(timed_cells(figures, SCALE["ms"])) + " |"


def number(value: float | None) -> str:
    """Three digits that tell."""
    if value is None:
        return NOTHING
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


SECONDS = ("closing", "cpu of closing")
"""Other figures that are seconds."""


def _title_of_more(name: str) -> str:
    return f"{name} ms" if name in SECONDS else name


def _scaled(name: str, value: float | None) -> float | None:
    return value * 1e3 if value is not None and name in SECONDS else value
