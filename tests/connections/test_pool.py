"""The pool: who shares a connection, who holds it, and that nothing is left when it closes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from interlock.connections.pool import Pool
from interlock.connections.startup import Backoff, Recovery
from interlock.vocabulary.server import ServerStatus
from tests.connections.fakes import PATIENCE, FakeServer, Zoo, config, lost, until
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

QUICK = Recovery(backoff=Backoff(first=0.001, limit=0.01))


@asynccontextmanager
async def pool_of(zoo: Any, **options: Any) -> AsyncIterator[Pool]:
    with anyio.fail_after(4 * PATIENCE):
        async with Pool(opener=zoo, recovery=QUICK, **options) as pool:
            yield pool
        assert pool.reports() == ()
    for server in zoo.servers.values():
        assert server.alive == 0


async def test_one_owner_gets_the_same_connection_for_an_equal_identity() -> None:
    async with pool_of(Zoo()) as pool:
        first = pool.acquire(config(), owner="a")
        second = pool.acquire(config(tool_timeout=1.0, disabled_tools=("x",), required=True), owner="a")
        assert first is second
        assert first.supervisor.config.disabled_tools == ("x",)
        assert pool.acquire(config(line_limit=5000), owner="a") is not first


async def test_a_handshake_server_belongs_to_one_owner() -> None:
    zoo = Zoo()
    async with pool_of(zoo) as pool:
        first = pool.acquire(config(), owner="a")
        await first.ready(PATIENCE)
        assert pool.acquire(config(), owner="b") is not first
        await until(lambda: zoo["zoo"].openings == 2)


async def test_a_stateless_server_is_shared_once_its_era_is_known() -> None:
    zoo = Zoo(zoo=FakeServer(era="stateless"))
    async with pool_of(zoo) as pool:
        first = pool.acquire(config(), owner="a")
        await first.ready(PATIENCE)
        assert pool.acquire(config(), owner="b") is first
        pool.release(first)
        pool.release(first)
        await first.supervisor.wait_closed()
        again = pool.acquire(config(), owner="c")
        assert pool.acquire(config(), owner="d") is again  # the era is remembered: shared from the start
        await again.ready(PATIENCE)
    assert zoo["zoo"].eras_tried == [None, "stateless"]


@pytest.mark.parametrize(("era", "shared"), [("handshake", True), ("stateless", False)])
async def test_the_configuration_overrides_the_era(era: Any, shared: bool) -> None:
    async with pool_of(Zoo(zoo=FakeServer(era=era))) as pool:
        first = pool.acquire(config(shared=shared), owner="a")
        await first.ready(PATIENCE)
        assert (pool.acquire(config(shared=shared), owner="b") is first) is shared


async def test_two_owners_who_meet_an_unknown_stateless_server_at_once_get_one_each_and_a_third_joins() -> None:
    server = FakeServer(era="stateless")
    go = server.hold_openings()
    async with pool_of(Zoo(zoo=server)) as pool:
        one, two = pool.acquire(config(), owner="a"), pool.acquire(config(), owner="b")
        assert one is not two
        go.set()
        await one.ready(PATIENCE)
        await two.ready(PATIENCE)
        assert pool.acquire(config(), owner="c") in {one, two}
        assert pool.acquire(config(), owner="a") is one
        assert pool.acquire(config(), owner="b") is two


async def test_a_shared_server_that_comes_back_with_an_older_era_is_joined_by_nobody() -> None:
    server = FakeServer(era="stateless")
    async with pool_of(Zoo(zoo=server)) as pool:
        first = pool.acquire(config(), owner="a")
        await first.ready(PATIENCE)
        server.era = "handshake"
        server.sessions[0].die()
        await until(lambda: len(server.sessions) == 2)
        await first.ready(PATIENCE)
        assert pool.acquire(config(), owner="b") is not first


@requirement("CON-5")
async def test_the_last_release_closes_and_no_earlier_one() -> None:
    zoo = Zoo()
    async with pool_of(zoo) as pool:
        connection = pool.acquire(config(), owner="a")
        pool.acquire(config(), owner="a")
        await connection.ready(PATIENCE)
        pool.release(connection)
        assert not connection.supervisor.closing
        pool.release(connection)
        await connection.supervisor.wait_closed()
        await until(lambda: pool.reports() == ())
        assert zoo["zoo"].alive == 0


async def test_a_connection_that_is_closing_is_not_given_out() -> None:
    async with pool_of(Zoo()) as pool:
        first = pool.acquire(config(), owner="a")
        pool.release(first)
        second = pool.acquire(config(), owner="a")
        assert second is not first
        await second.ready(PATIENCE)


@requirement("CON-1")
async def test_one_server_that_hangs_and_one_that_fails_do_not_delay_the_others() -> None:
    zoo = Zoo()
    zoo["hangs"].hold_openings()
    zoo["fails"].refusals = [lost()] * 1000
    async with pool_of(zoo) as pool:
        connections = {name: pool.acquire(config(name), owner="a") for name in ("hangs", "fails", "good", "fine")}
        await connections["good"].ready(PATIENCE)
        await connections["fine"].ready(PATIENCE)
        await until(lambda: connections["fails"].report().status is ServerStatus.FAILED)
        reports = {report.name: report for report in pool.reports()}
    assert list(reports) == ["fails", "fine", "good", "hangs"]
    assert reports["hangs"].status is ServerStatus.STARTING
    assert reports["fails"].reason == "the connection broke"


@requirement("CON-5")
async def test_leaving_the_pool_closes_what_is_still_held() -> None:
    zoo = Zoo()
    zoo["hangs"].hold_openings()
    async with pool_of(zoo) as pool:
        ready = pool.acquire(config("ready"), owner="a")
        hanging = pool.acquire(config("hangs"), owner="a")
        await ready.ready(PATIENCE)
        await until(lambda: zoo["hangs"].openings == 1)
    assert ready.report().status is ServerStatus.CLOSED
    assert hanging.report().status is ServerStatus.CANCELLED


async def test_a_pool_that_is_not_open_starts_nothing() -> None:
    with pytest.raises(RuntimeError):
        Pool().acquire(config(), owner="a")


async def test_an_error_in_the_block_still_closes_everything() -> None:
    zoo = Zoo()

    async def use() -> None:
        async with Pool(opener=zoo) as pool:
            await pool.acquire(config(), owner="a").ready(PATIENCE)
            raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as raised:
        await use()
    assert raised.group_contains(ZeroDivisionError)
    assert zoo["zoo"].alive == 0
