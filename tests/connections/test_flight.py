"""Flight: callers share what is under way, and nothing else."""

import anyio
import pytest

from interlock.connections.flight import Flight

pytestmark = pytest.mark.anyio


class Operation:
    """Answers with the number of its run, once `go` is set."""

    def __init__(self) -> None:
        self.runs = 0
        self.go = anyio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.runs += 1
        number = self.runs
        await self.go.wait()
        if self.error is not None and number == 1:
            raise self.error
        return number


async def test_callers_at_once_share_one_run_and_a_later_one_runs_again() -> None:
    flight, operation, answers = Flight[int](), Operation(), []

    async def ask() -> None:
        answers.append(await flight.join(operation))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        operation.go.set()
    assert answers == [1] * 5
    assert await flight.join(operation) == 2
    assert flight._answers == flight._waiting == {}


async def test_who_comes_after_it_went_out_of_date_runs_anew() -> None:
    flight, operation, answers = Flight[int](), Operation(), []

    async def ask() -> None:
        answers.append(await flight.join(operation))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        flight.outdated()
        tasks.start_soon(ask)
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        operation.go.set()
    assert sorted(answers) == [1, 1, 2, 2]


@pytest.mark.parametrize("end", ["cancelled", "failed"])
async def test_the_end_of_one_caller_is_not_the_end_of_another(end: str) -> None:
    flight, operation, answers = Flight[int](), Operation(), []
    first = anyio.CancelScope()

    async def lead() -> None:
        with first:
            try:
                await flight.join(operation)
            except ZeroDivisionError:
                answers.append(0)

    async def follow() -> None:
        answers.append(await flight.join(operation))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lead)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(follow)
        tasks.start_soon(follow)
        await anyio.wait_all_tasks_blocked()
        if end == "cancelled":
            first.cancel()
            await anyio.wait_all_tasks_blocked()
        else:
            operation.error = ZeroDivisionError()
        operation.go.set()
    assert answers == ([2, 2] if end == "cancelled" else [0, 2, 2])
    assert flight._answers == flight._waiting == {}


async def test_who_shares_a_run_keeps_the_own_deadline() -> None:
    flight, operation = Flight[int](), Operation()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(flight.join, operation)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(TimeoutError):
            await flight.join(operation, deadline=anyio.current_time() + 0.01)
        operation.go.set()
    assert (operation.runs, flight._waiting) == (1, {})
