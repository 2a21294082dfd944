"""The benchmarks run, and their figures say what they claim to say."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import chart, report
from benchmarks.figures import cpu, figures, ratio, verdict, wall
from benchmarks.report import number
from benchmarks.rows import GOALS, ROWS, SUBJECTS, Goal
from benchmarks.running import Rounds

ROOT = Path(__file__).parent.parent.parent


def rounds(**seconds: float) -> Rounds:
    """One sample for each round, named `r0`, `r1`, ...; CPU is half of it."""
    samples = {int(name[1:]): {"seconds": [value], "cpu": value / 2, "more": {}} for name, value in seconds.items()}
    return Rounds(samples=samples)


def test_one_command_measures_rows_into_a_table_a_chart_and_json(tmp_path: Path) -> None:
    rows = ("call", "flight", "tools-1000", "text-1", "http-call")
    command = [sys.executable, "-m", "benchmarks", "--rows", *rows, "--rounds", "0.05", "--into", str(tmp_path)]
    command += ["--subjects", "floor", "connection", "step", "recorded", "sqlite"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads((tmp_path / "results.json").read_text())
    assert set(results["rows"]) == set(rows)
    failures = [figures["failure"] for row in results["rows"].values() for figures in row.values()]
    assert failures == [None] * len(failures), (tmp_path / "subjects.log").read_text()[-3000:]
    assert "| call | Interlock Connection / floor | 1.8 |" in (tmp_path / "table.md").read_text()
    ElementTree.parse(tmp_path / "chart.svg")  # noqa: S314 - our own file


def test_ratios_are_taken_round_by_round_so_that_a_busy_round_counts_once() -> None:
    ours, floor = rounds(r0=2.0, r1=20.0, r2=2.2), rounds(r0=1.0, r1=10.0, r2=1.0)
    assert ratio(wall(ours), [(1.0, wall(floor))]) == 2.0
    assert figures(ours, floor).median == 2.2
    assert figures(ours, floor).cpu_ratio == 2.0


def test_a_subject_too_slow_for_every_round_is_compared_by_what_it_has() -> None:
    assert ratio(wall(rounds(r0=30.0)), [(1.0, wall(rounds(r1=1.0, r2=3.0)))]) == 15.0


def test_a_goal_beside_several_subjects_adds_them_up() -> None:
    goal = Goal(row="call", subject="step", beside={"connection": 2, "sqlite": 1}, limit=1.0)
    row = {"step": rounds(r0=4.0), "connection": rounds(r0=1.5), "sqlite": rounds(r0=1.0)}
    found = verdict(goal, row)
    assert found is not None
    assert (found.wall, found.met) == (1.0, True)
    assert cpu(row["step"]) == {0: 2.0}
    assert verdict(goal, {"step": row["step"]}) is None


def test_every_goal_and_row_speaks_of_subjects_that_there_are() -> None:
    by_name = {row.name: row for row in ROWS}
    assert all(set(row.subjects) <= set(SUBJECTS) for row in ROWS)
    for goal in GOALS:
        assert {goal.subject, *goal.beside} <= set(by_name[goal.row].subjects)


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (0.123, "0.12"), (12.34, "12.3"), (1234.5, "1,234")])
def test_numbers_are_shown_with_the_digits_that_tell(value: float | None, text: str) -> None:
    assert number(value) == text


def test_the_chart_has_a_bar_for_every_subject() -> None:
    row = next(row for row in ROWS if row.name == "call")
    found = {name: figures(rounds(r0=1e-4), None) for name in row.subjects}
    assert chart.drawn({"call": found}, [row]).count("<rect") == 1 + len(found)


def test_a_run_replaces_what_an_earlier_one_wrote_into_a_document() -> None:
    marks = f"{report.BEGIN}\nold\n{report.END}"
    assert report.inserted(f"before\n{marks}\nafter", iter(["new"])).split() == [
        "before", *report.BEGIN.split(), "new", *report.END.split(), "after",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="has no lines"):
        report.inserted("nothing", iter(["new"]))


def test_the_document_of_the_results_has_the_place_for_them() -> None:
    assert "| new |" in report.inserted((ROOT / "benchmarks" / "RESULTS.md").read_text(), iter(["| new |"]))


def test_the_app_server_is_measured_from_outside(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.app_server", "--scale", "0.02", "--into", str(tmp_path / "found.json")]
    environment = {name: value for name, value in os.environ.items() if name != "INTERLOCK_CODEX"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads((tmp_path / "found.json").read_text())["rows"]
    assert rows["request"]["ratio"] > 0
    assert "INTERLOCK_CODEX names no program" in rows["call"]["skipped"]
    assert rows["threads"].get("threads", 20) == 20
    assert rows["stream"]["deltas"] == rows["stream"]["expected"]
