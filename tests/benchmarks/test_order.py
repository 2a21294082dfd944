"""Which subjects changed places between two runs."""

from typing import Any

from benchmarks.order import Swap, swaps


def run(**rows: dict[str, float | None]) -> dict[str, Any]:
    return {"rows": {row: {name: {"median": m} for name, m in times.items()} for row, times in rows.items()}}


def test_pairs_that_both_runs_tell_apart_are_compared_row_by_row() -> None:
    older = run(call={"a": 1.0, "b": 2.0, "c": 4.0}, flight={"a": 3.0, "b": 1.0})
    newer = run(call={"a": 8.0, "b": 4.0, "c": 80.0}, flight={"a": 30.0, "b": 20.0})
    assert swaps(older, older) == (4, [])
    assert swaps(older, newer) == (4, [Swap("call", "a", "b", 2.0, 2.0)])


def test_what_is_nearly_equal_in_one_of_them_has_no_order_to_lose() -> None:
    assert swaps(run(call={"a": 1.0, "b": 1.1}), run(call={"a": 2.0, "b": 1.0})) == (0, [])
    assert swaps(run(call={"a": 1.0, "b": 2.0}), run(call={"a": 1.1, "b": 1.0})) == (0, [])


def test_what_only_one_of_them_measured_is_left_out() -> None:
    older = run(call={"a": 1.0, "b": 2.0, "c": None}, memory={"a": None}, gone={"a": 1.0, "b": 2.0})
    newer = run(call={"b": 1.0, "c": 5.0, "d": 9.0}, memory={"a": None})
    assert swaps(older, newer) == (0, [])
