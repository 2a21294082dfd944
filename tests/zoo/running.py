"""One scenario from its start to its verdict, and many of them.

Owns: what is always done and checked: a healthy neighbour that still answers at the end, no process left after the
close, the limits of time and memory.
Never: knows a check of a scenario file (`judging`) or how an operation is done (`driving`).
"""

import json
import logging
import sys
import tempfile
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio

from tests.zoo import judging
from tests.zoo.animals import Animal, animal
from tests.zoo.driving import Driver, Operation, driver
from tests.zoo.judging import Outcome
from tests.zoo.scenarios import NEIGHBOUR, Scenario, load

logger = logging.getLogger(__name__)

AT_ONCE = 8
"""Scenarios that run side by side; most of them wait, on two cores."""
WHOLE_LIMIT = 80.0
"""Seconds after which a scenario counts as hung, whatever its operations may take; an animal lives for 90."""
GONE_WITHIN = 20.0
"""Seconds that processes may need to be gone after the close."""


@dataclass(slots=True, kw_only=True)
class Verdict:
    """`right` if there are no problems; `hang` if an operation did not return at all; else `wrong`."""

    name: str
    problems: list[str] = field(default_factory=list)
    operations: list[dict[str, Any]] = field(default_factory=list)
    hung: bool = False
    seconds: float = 0.0
    peak_megabytes: float | None = None

    @property
    def word(self) -> Literal["right", "wrong", "hang"]:
        return "hang" if self.hung else "wrong" if self.problems else "right"


async def run_many(scenarios: Iterable[Scenario]) -> dict[str, Verdict]:
    """All verdicts by name. A scenario that judges memory gets a process of its own.

    One that was not right is played again with nothing beside it, and judged by that; what was wrong at first is
    logged. Nearly every scenario has limits of time, the host's own among them (a start within 0.6 s), and these are
    about the host, not about how many scenarios a machine can play at once.
    """
    by_name = {scenario.name: scenario for scenario in scenarios}
    verdicts: dict[str, Verdict] = {}
    room = anyio.Semaphore(AT_ONCE)

    async def one(scenario: Scenario) -> None:
        async with room:
            verdicts[scenario.name] = await run(scenario)

    async with anyio.create_task_group() as tasks:
        for scenario in by_name.values():
            tasks.start_soon(one, scenario)
    for name, verdict in verdicts.items():
        if verdict.word != "right":
            logger.warning(
                "%s is played again alone; beside others it was %s: %s", name, verdict.word, verdict.problems
            )
            verdicts[name] = await run(by_name[name])
    return verdicts


async def run(scenario: Scenario) -> Verdict:
    return await (run_apart if scenario.judges_memory else run_here)(scenario)


async def run_apart(scenario: Scenario) -> Verdict:
    """In another process, whose memory is then this scenario's alone."""
    command = [sys.executable, "-m", "tests.zoo", "--json", scenario.name]
    root = Path(__file__).parent.parent.parent
    done = None
    with anyio.move_on_after(WHOLE_LIMIT + 20):
        done = await anyio.run_process(command, cwd=root, check=False)
    if done is None:
        return Verdict(name=scenario.name, hung=True, problems=[f"the whole run took more than {WHOLE_LIMIT + 20} s"])
    try:
        return Verdict(**json.loads(done.stdout))
    except ValueError:
        return Verdict(name=scenario.name, hung=True, problems=[f"the host's process ended: {done.stderr[-2000:]!r}"])


async def run_here(scenario: Scenario, folder: Path | None = None) -> Verdict:
    """In this process. `folder`: where the traces are kept; None: nowhere."""
    verdict = Verdict(name=scenario.name)
    began = anyio.current_time()
    with tempfile.TemporaryDirectory(prefix="zoo-") as temporary:
        place = folder or Path(temporary)
        with anyio.move_on_after(WHOLE_LIMIT) as limit:
            await _run(scenario, place, verdict)
        if limit.cancelled_caught:
            verdict.hung = True
            verdict.problems.append(f"hung: not over after {WHOLE_LIMIT} s")
    verdict.seconds = round(anyio.current_time() - began, 1)
    verdict.problems += judging.whole_problems(scenario.expect, verdict.seconds, None)
    return verdict


async def _run(scenario: Scenario, folder: Path, verdict: Verdict) -> None:
    async with AsyncExitStack() as stack:
        animals = {
            "animal": await stack.enter_async_context(animal(scenario, folder / f"{scenario.name}.trace")),
            "neighbour": await stack.enter_async_context(animal(load(NEIGHBOUR), folder / "neighbour.trace")),
        }
        if scenario.script.get("twin"):
            animals["twin"] = await stack.enter_async_context(animal(scenario, folder / "twin.trace"))
        try:
            async with driver(animals, folder / f"{scenario.name}.db") as host:
                await _drive(host, operations_of(scenario, animals), verdict)
        except Exception as error:  # whatever leaves the host is a problem of this scenario only
            verdict.problems.append(f"the host raised {error!r}")
            logger.exception("%s", scenario.name)
        await _judge_what_is_left(animals, verdict)
        verdict.problems += judging.trace_problems(scenario.expect, animals["animal"].trace())


def operations_of(scenario: Scenario, animals: Iterable[str]) -> list[Operation]:
    """The scenario's own operations, between those that are always done."""
    closing = {"op": "close", "within": scenario.expect.get("close_within", 8), "ok": "any"}
    still_here = {"op": "call", "server": "neighbour", "tool": "echo", "args": {"text": "still here"}}
    return [
        {"op": "connect", "server": "neighbour", "within": 10},
        *scenario.operations,
        {**still_here, "text_equals": "still here", "within": 5},
        *({**closing, "server": server} for server in animals if server != "neighbour"),
        {**still_here, "text_equals": "still here", "within": 5},
        {"op": "close", "server": "neighbour", "within": 8, "ok": "any"},
    ]


async def _drive(host: Driver, operations: list[Operation], verdict: Verdict) -> None:
    for operation in operations:
        began, outcome = anyio.current_time(), None
        with anyio.move_on_after(judging.limit_of(operation) + judging.GRACE):
            outcome = await host.do(operation)
        seconds = anyio.current_time() - began
        verdict.operations.append(_record(operation, outcome, seconds))
        if outcome is None:
            verdict.hung = True
            verdict.problems.append(f"hung in {operation}")
            return
        verdict.problems += judging.problems_of(operation, outcome, seconds)


def _record(operation: Operation, outcome: Outcome | None, seconds: float) -> dict[str, Any]:
    names = [operation[key] for key in ("op", "server", "tool", "uri") if key in operation]
    record: dict[str, Any] = {"op": " ".join(names), "seconds": round(seconds, 2)}
    if outcome is None:
        return record | {"hung": True}
    if outcome.error is not None:
        return record | {"error": outcome.error[:300]}
    return record | {
        key: value[:5] if isinstance(value, list) else value[:200]
        for key in ("names", "exposed", "text")
        if (value := getattr(outcome, key)) is not None
    }


async def _judge_what_is_left(animals: dict[str, Animal], verdict: Verdict) -> None:
    """No process of a stdio server outlives the close."""
    for name, one in animals.items():
        if one.scenario.transport != "stdio" or one.scenario.expect.get("may_leave_process"):
            continue
        with anyio.move_on_after(GONE_WITHIN):
            while one.processes_left():  # noqa: ASYNC110 -- only the operating system knows
                await anyio.sleep(0.05)
        if left := one.processes_left():
            verdict.problems.append(f"{len(left)} processes of {name} are left after the close")
