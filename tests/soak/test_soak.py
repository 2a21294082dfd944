"""A minute of chaos over twenty servers, by a seed; and that the soak would notice what it looks for."""

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.soak import inspection, plan
from benchmarks.soak.inspection import Rest
from interlock import Host
from interlock.stores import open_store
from interlock.vocabulary.event import CallEnded, CallStarted, Event, ThreadStarted, TurnStarted
from interlock.vocabulary.item import McpToolCallItem
from tests.manifest import requirement

ROOT = Path(__file__).parent.parent.parent
SEED = os.environ.get("SOAK_SEED", "20261201")
"""Any other seed shall do as well."""
NAMES = ("server00", "server01", "server02")


@requirement("LIF-1", "CON-1", "CON-5", "CON-8", "CON-15")
@pytest.mark.timeout(420)
def test_a_minute_of_chaos_leaks_nothing_and_every_call_ends_once() -> None:
    command = [sys.executable, "-m", "benchmarks.soak", "--seconds", "60", "--seed", SEED]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"


def test_equal_seeds_make_equal_plans() -> None:
    assert plan.Plan(7, NAMES).digest() == plan.Plan(7, NAMES).digest()
    assert plan.Plan(7, NAMES).digest() != plan.Plan(8, NAMES).digest()


def test_a_plan_has_every_kind_of_act_and_every_kind_of_misbehaviour() -> None:
    acts = list(islice(plan.Plan(1, NAMES).acts(0, 0), 400))
    assert {type(act) for act in acts} == {plan.Calls, plan.Kill, plan.Reload, plan.Reopen, plan.Read}
    tools = {call.tool for act in acts if isinstance(act, plan.Calls) for call in act.calls}
    assert tools >= {"echo", "large", "noise", "storm", "silent", "die", "orphan"}


def rests(**last: int) -> list[Rest]:
    """Twenty flat rests, and what the newest of them show instead."""
    flat = {"memory": 100 * 2**20, "blocks": 500_000, "descriptors": 40, "tasks": 60, "connections": 10, "held": 10}
    objects = dict.fromkeys(inspection.WATCHED, 10)
    found = []
    for number in range(20):
        facts = flat | ({} if number < 12 else {name: value for name, value in last.items() if name in flat})
        mine = objects | ({} if number < 12 else {name: value for name, value in last.items() if name in objects})
        found.append(Rest(round=number, objects=mine, **facts))
    return found


@pytest.mark.parametrize(
    ("last", "complaint"),
    [
        ({"memory": 120 * 2**20}, "memory grew from 100.0 to 120.0 MiB"),
        ({"blocks": 600_000}, "blocks of memory grew from 500,000 to 600,000"),
        ({"descriptors": 90}, "descriptors for each connection grew from 3.6 to 8.2"),
        ({"tasks": 120}, "tasks for each connection grew from 5.5 to 10.9"),
        ({"Session": 20}, "living objects of Session beyond its connections grew from 0 to 10"),
        ({"Generation": 20}, "living objects of Generation grew from 10 to 20"),
    ],
)
def test_what_grows_is_noticed(last: dict[str, int], complaint: str) -> None:
    assert list(inspection.growth(rests(**last))) == [complaint]


def test_what_is_flat_is_no_complaint() -> None:
    assert list(inspection.growth(rests())) == []


def test_more_connections_that_a_generation_holds_are_no_complaint() -> None:
    more = dict.fromkeys((*inspection.PER_CONNECTION, "held", "connections"), 25)
    assert list(inspection.growth(rests(**more))) == []


def calls(*steps: tuple[str, str]) -> Iterator[Event]:
    yield ThreadStarted()
    yield TurnStarted(turn_id="turn")
    for what, call_id in steps:
        item = McpToolCallItem(id=call_id, server="s", tool="t", public_name="mcp__s__t", arguments={})
        if what == "begin":
            yield CallStarted(turn_id="turn", step_id="step", item=item)
        else:
            yield CallEnded(turn_id="turn", step_id="step", item=item, effect="none")


@pytest.mark.anyio
async def test_calls_without_an_end_or_with_two_are_noticed(tmp_path: Path) -> None:
    place = tmp_path / "store.db"
    stored = list(calls(("begin", "a"), ("end", "a"), ("begin", "b"), ("begin", "c"), ("end", "c"), ("end", "c")))
    async with open_store(place) as store:
        await store.append("thread", stored, after=0, at=0)
    async with Host({}, store=place) as host:
        problems = await inspection.stored(host, "thread", {"a": "in_progress", "d": "completed"})
    assert problems == [
        "thread thread: call b ended as []",
        "thread thread: call c ended as ['in_progress', 'in_progress']",
        "thread thread: call d was completed for its caller, and is stored as None",
    ]
