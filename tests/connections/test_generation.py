"""Generations: prepared whole, published at once, retired after the last lease."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest

from interlock.connections.generation import Generations
from interlock.connections.pool import Pool
from interlock.connections.startup import Backoff, Recovery
from interlock.vocabulary.errors import InvalidRequest, ServerFailed
from interlock.vocabulary.server import ServerStatus, unstarted_report
from tests.connections.fakes import PATIENCE, Zoo, config, lost, until
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

QUICK = Recovery(backoff=Backoff(first=0.001, limit=0.01))
A, B, C = config("a"), config("b"), config("c")


@asynccontextmanager
async def generations_of(zoo: Zoo, *, grace: float = 1.0) -> AsyncIterator[Generations]:
    with anyio.fail_after(4 * PATIENCE):
        async with Pool(opener=zoo, recovery=QUICK) as pool:
            generations = Generations(pool, owner="thread", grace=grace)
            yield generations
            await generations.close(0.0)
            await until(lambda: pool.reports() == ())
            assert "held=0" in repr(pool)
    for server in zoo.servers.values():
        assert server.alive == 0


async def refreshed(generations: Generations, *configs: Any) -> Any:
    generations.want(configs)
    return await generations.refresh()


@requirement("CON-1", "CON-15")
async def test_a_generation_is_published_whole_with_its_servers_started_side_by_side() -> None:
    zoo = Zoo()
    go = [zoo[name].hold_openings() for name in "ab"]
    async with generations_of(zoo) as generations, anyio.create_task_group() as tasks:
        generations.want((A, B))
        tasks.start_soon(generations.refresh)
        await until(lambda: zoo["a"].openings == zoo["b"].openings == 1)
        assert generations.current.number == 0
        assert generations.current.views == {}
        for event in go:
            event.set()
        await until(lambda: generations.current.number == 1)
        assert list(generations.current.views) == ["a", "b"]
        assert generations.current.pending == ()
        assert generations.current.views["a"].config is A


@requirement("CON-3")
async def test_optional_servers_share_one_grace_deadline_and_are_then_named_as_pending() -> None:
    zoo = Zoo()
    go = [zoo[name].hold_openings() for name in "bc"]
    async with generations_of(zoo, grace=0.05) as generations:
        generation = await refreshed(generations, A, B, C)
        assert generation.pending == ("b", "c")
        assert set(generation.views) == {"a", "b", "c"}
        generations.take_changes()
        for event in go:
            event.set()
        await generation.views["b"].connection.ready(PATIENCE)
        await generations.changed()
        assert "b" in generations.take_changes().tools
        await until(lambda: generation.pending == ())


@requirement("CON-2")
async def test_required_servers_that_cannot_start_are_all_named_in_one_error_and_nothing_changes() -> None:
    zoo = Zoo()
    zoo["a"].refusals = [ServerFailed("database is locked", server="a")] * 1000
    zoo["b"].refusals = [ServerFailed("no such file", server="b")] * 1000
    async with generations_of(zoo) as generations:
        before = await refreshed(generations, C)
        broken = config("d", required=True, problem="TOKEN is not set")
        with pytest.raises(ServerFailed) as failed:
            await refreshed(generations, config("a", required=True), config("b", required=True), C, broken)
        assert generations.current is before
        assert not generations.due
        assert before.views["c"].connection.report().status is ServerStatus.READY
        await until(lambda: zoo["a"].alive == zoo["b"].alive == 0)
    message = failed.value.message
    for part in ("a, b, d", "database is locked", "no such file", "TOKEN is not set"):
        assert part in message
    assert [name for name, _ in failed.value.facts["failures"]] == ["a", "b", "d"]


@requirement("CON-3")
async def test_a_required_server_is_waited_for_beyond_the_grace_deadline() -> None:
    zoo = Zoo()
    go = zoo["a"].hold_openings()
    async with generations_of(zoo, grace=0.01) as generations, anyio.create_task_group() as tasks:
        generations.want((config("a", required=True), B))
        tasks.start_soon(generations.refresh)
        await until(lambda: zoo["a"].openings == 1)
        await anyio.wait_all_tasks_blocked()
        assert generations.current.number == 0
        go.set()
        await until(lambda: generations.current.number == 1)
        assert generations.current.pending == ()


@requirement("CON-15", "CFG-6")
async def test_an_unchanged_server_is_carried_over_and_an_edit_of_the_view_restarts_nothing() -> None:
    zoo = Zoo()
    async with generations_of(zoo) as generations:
        first = await refreshed(generations, A, B)
        second = await refreshed(generations, config("a", disabled_tools=("x",), tool_timeout=1.0), C)
        assert second.number == 2
        assert second.connections["a"] is first.connections["a"]
        assert second.views["a"].config.disabled_tools == ("x",)
        assert first.views["a"].config is A
        assert zoo["a"].openings == 1
        await until(lambda: zoo["b"].alive == 0)


async def test_the_same_configuration_again_publishes_nothing() -> None:
    async with generations_of(Zoo()) as generations:
        first = await refreshed(generations, A, B)
        assert await refreshed(generations, A, B) is first


async def test_a_failed_server_is_tried_again_by_a_refresh() -> None:
    zoo = Zoo()
    zoo["a"].refusals = [lost()]
    never = config("a", restart="never")
    async with generations_of(zoo) as generations:
        first = await refreshed(generations, never)
        assert generations.reports()[0].status is ServerStatus.FAILED
        await refreshed(generations, never)
        await first.views["a"].connection.ready(PATIENCE)
        assert zoo["a"].openings == 2


@requirement("CON-15")
async def test_a_lease_keeps_the_connections_of_its_generation_open() -> None:
    zoo = Zoo()
    async with generations_of(zoo) as generations:
        await refreshed(generations, A)
        with generations.lease() as held, generations.lease() as again:
            assert held is again
            await refreshed(generations, B)
            assert generations.current.number == 2
            result = await held.views["a"].connection.call_tool("echo", {}, timeout=PATIENCE)
            assert result.content[0]["text"] == "session 1"
            assert zoo["a"].alive == 1
        await until(lambda: zoo["a"].alive == 0)
        with generations.lease() as newer:
            assert list(newer.views) == ["b"]


@requirement("CON-15")
async def test_rapid_wishes_come_to_the_newest_and_what_was_superseded_is_never_seen() -> None:
    zoo = Zoo()
    zoo["a"].hold_openings()
    seen: list[tuple[str, ...]] = []
    async with generations_of(zoo, grace=PATIENCE) as generations, anyio.create_task_group() as tasks:
        generations.want((config("a", required=True),))
        tasks.start_soon(generations.refresh)
        await until(lambda: zoo["a"].openings == 1)
        for wish in ((A, B), (B, C), (C,)):
            generations.want(wish)
        await until(lambda: generations.current.number > 0)
        seen.append(tuple(generations.current.views))
        assert generations.current.number == 1
        await until(lambda: zoo["a"].closed == zoo["a"].alive == 0)
    assert seen == [("c",)]
    assert zoo["b"].openings == 0


@requirement("CON-15")
async def test_a_server_that_has_begun_to_start_is_not_killed_by_a_newer_wish_that_keeps_it() -> None:
    zoo = Zoo()
    go = zoo["a"].hold_openings()
    async with generations_of(zoo, grace=PATIENCE) as generations, anyio.create_task_group() as tasks:
        generations.want((A,))
        tasks.start_soon(generations.refresh)
        await until(lambda: zoo["a"].openings == 1)
        generations.want((A, B))
        await until(lambda: zoo["b"].openings == 1)
        go.set()
        await until(lambda: generations.current.number == 1)
        assert list(generations.current.views) == ["a", "b"]
        assert zoo["a"].openings == 1


@requirement("CON-15")
@pytest.mark.parametrize("moment", range(14))
async def test_wherever_a_refresh_is_cancelled_it_stays_due_or_is_done(moment: int) -> None:
    zoo = Zoo()
    async with generations_of(zoo) as generations:
        old = await refreshed(generations, A)
        generations.want((A, B))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(generations.refresh)
            for _ in range(moment):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        assert generations.due is (generations.current is old)
        assert set(generations.current.views) == ({"a"} if generations.due else {"a", "b"})
        assert set((await generations.refresh()).views) == {"a", "b"}
        assert zoo["b"].openings == 1
        assert zoo["a"].openings == 1


@requirement("CON-15")
async def test_two_refreshes_at_once_prepare_once_and_both_see_the_result() -> None:
    zoo = Zoo()
    results: list[Any] = []
    async with generations_of(zoo) as generations:
        generations.want((A,))

        async def refresh() -> None:
            results.append(await generations.refresh())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(refresh)
            tasks.start_soon(refresh)
        assert results == [generations.current] * 2
        assert generations.current.number == 1
    assert zoo["a"].openings == 1


@requirement("CON-2")
async def test_two_refreshes_at_once_both_learn_of_the_failure() -> None:
    zoo = Zoo()
    zoo["a"].refusals = [lost()] * 1000
    errors: list[ServerFailed] = []
    async with generations_of(zoo) as generations:
        generations.want((config("a", required=True),))

        async def refresh() -> None:
            try:
                await generations.refresh()
            except ServerFailed as error:
                errors.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(refresh)
            tasks.start_soon(refresh)
        assert len(errors) == 2
        assert await generations.refresh() is generations.current


@requirement("CON-6")
async def test_a_server_that_dies_between_ready_and_publication_joins_as_one_that_restarts() -> None:
    zoo = Zoo()
    go = zoo["b"].hold_openings()
    async with generations_of(zoo, grace=PATIENCE) as generations, anyio.create_task_group() as tasks:
        generations.want((A, B))
        tasks.start_soon(generations.refresh)
        await until(lambda: len(zoo["a"].sessions) == 1)
        zoo["a"].sessions[0].die()
        go.set()
        await until(lambda: generations.current.number == 1)
        await generations.current.views["a"].connection.ready(PATIENCE)
        assert generations.current.views["a"].connection.report().restarts == 1


async def test_a_call_during_a_refresh_keeps_its_own_connection() -> None:
    zoo = Zoo()
    async with generations_of(zoo) as generations, anyio.create_task_group() as tasks:
        await refreshed(generations, A)
        go = zoo["a"].hold("tools/call")
        texts: list[str] = []

        async def step() -> None:
            with generations.lease() as generation:
                result = await generation.views["a"].connection.call_tool("echo", {}, timeout=PATIENCE)
                texts.append(result.content[0]["text"])

        tasks.start_soon(step)
        await zoo["a"].arrivals["tools/call"].wait()
        await refreshed(generations, config("a", line_limit=5000))
        assert zoo["a"].openings == 2
        go.set()
        await until(lambda: texts == ["session 1"])
        await until(lambda: zoo["a"].alive == 1)


@requirement("CON-14")
async def test_list_changed_notices_are_heard_from_the_current_generation_only() -> None:
    zoo = Zoo()
    async with generations_of(zoo) as generations:
        await refreshed(generations, A, B)
        with generations.lease():
            await refreshed(generations, B)
            assert generations.take_changes().generation
            for _ in range(400):
                await zoo["a"].sessions[0].notify_us("notifications/tools/list_changed")
                await zoo["b"].sessions[0].notify_us("notifications/tools/list_changed")
            await generations.changed()
            changes = generations.take_changes()
            assert changes.tools == {"b"}
            generations.put_back(changes)
            await generations.changed()
            assert generations.take_changes() == changes


async def test_changed_waits_until_something_has_changed() -> None:
    zoo = Zoo()
    async with generations_of(zoo) as generations, anyio.create_task_group() as tasks:
        await refreshed(generations, A)
        generations.take_changes()
        woken: list[bool] = []

        async def wait() -> None:
            await generations.changed()
            woken.append(True)

        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert woken == []
        zoo["a"].sessions[0].die()
        await until(lambda: woken == [True])


@requirement("CON-16")
async def test_every_configured_server_is_reported_and_none_is_started_by_asking() -> None:
    zoo = Zoo()
    configs = (A, config("off", enabled=False), config("bad", problem="no command"))
    async with generations_of(zoo) as generations:
        generations.want(configs)
        assert [report.status for report in generations.reports()] == [
            ServerStatus.NOT_STARTED,
            ServerStatus.DISABLED,
            ServerStatus.FAILED,
        ]
        assert zoo.servers == {}
        generation = await generations.refresh()
        assert [report.status for report in generations.reports()] == [
            ServerStatus.READY,
            ServerStatus.DISABLED,
            ServerStatus.FAILED,
        ]
        assert set(generation.views) == {"a", "bad"}
        assert "off" not in zoo.servers
        assert "bad" not in zoo.servers
    assert unstarted_report(A).status is ServerStatus.NOT_STARTED


async def test_closing_waits_for_leases_and_refuses_new_ones() -> None:
    zoo = Zoo()
    async with generations_of(zoo) as generations, anyio.create_task_group() as tasks:
        await refreshed(generations, A)
        with generations.lease():
            tasks.start_soon(generations.close, PATIENCE)
            await anyio.wait_all_tasks_blocked()
            assert zoo["a"].alive == 1
            with pytest.raises(InvalidRequest), generations.lease():
                pass
            with pytest.raises(InvalidRequest):
                generations.want((B,))
        await until(lambda: zoo["a"].alive == 0)


async def test_closing_does_not_wait_for_ever_for_a_lease() -> None:
    zoo = Zoo()
    async with generations_of(zoo) as generations:
        await refreshed(generations, A)
        with generations.lease():
            await generations.close(0.01)
            assert zoo["a"].alive == 0


@pytest.mark.parametrize("moment", range(12))
async def test_whenever_it_is_closed_during_a_refresh_no_server_is_left(moment: int) -> None:
    zoo = Zoo()
    async with generations_of(zoo) as generations, anyio.create_task_group() as tasks:

        async def refresh() -> None:
            with suppress(InvalidRequest):
                await generations.refresh()

        generations.want((A, B))
        tasks.start_soon(refresh)
        for _ in range(moment):
            await anyio.lowlevel.checkpoint()
        await generations.close(0.0)
