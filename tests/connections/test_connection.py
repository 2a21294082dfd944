"""A supervised connection: what callers see while its server starts, dies, comes back or goes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from interlock.connections.connection import SupervisedConnection
from interlock.connections.notices import Change
from interlock.connections.session import SessionHandlers
from interlock.connections.startup import Backoff, Breaker, Recovery
from interlock.connections.supervisor import Supervisor
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.server import Diagnostic, HttpTransport, ServerConfig, ServerStatus
from tests.connections.fakes import PATIENCE, TOOL, FakeServer, FakeSession, config, lost, until
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

QUICK = Recovery(backoff=Backoff(first=0.001, limit=0.01))
PATIENT = Recovery(backoff=Backoff(first=100.0, limit=100.0))


@asynccontextmanager
async def connected(
    server: FakeServer, settings: ServerConfig | None = None, *, recovery: Recovery = QUICK, **options: Any
) -> AsyncIterator[SupervisedConnection]:
    supervisor = Supervisor(
        settings or config(), handlers=SessionHandlers(), opener=server, recovery=recovery, **options
    )
    connection = SupervisedConnection(supervisor)
    with anyio.fail_after(4 * PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(supervisor.run)
            try:
                yield connection
            finally:
                supervisor.close()
                with anyio.CancelScope(shield=True):
                    await supervisor.wait_closed()
    assert server.alive == 0


def text(result: Any) -> str:
    return str(result.content[0]["text"])


async def failure(awaitable: Any) -> ServerFailed:
    with pytest.raises(ServerFailed) as failed:
        await awaitable
    return failed.value


def status(connection: SupervisedConnection) -> ServerStatus:
    return connection.report().status


async def dies_and_comes_back(server: FakeServer, connection: SupervisedConnection) -> None:
    lives = len(server.sessions)
    server.sessions[-1].die()
    await until(lambda: len(server.sessions) > lives)
    await until(lambda: status(connection) is ServerStatus.READY)


# ---- starting


@requirement("CON-16")
async def test_every_state_on_the_way_can_be_seen() -> None:
    server = FakeServer()
    go = server.hold_openings()
    seen: list[ServerStatus] = []
    supervisor = Supervisor(config(), handlers=SessionHandlers(), opener=server)
    supervisor.listen(lambda: seen.append(supervisor.state.status))
    assert supervisor.report().status is ServerStatus.NOT_STARTED
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(supervisor.run)
        await until(lambda: supervisor.state.status is ServerStatus.STARTING)
        go.set()
        await supervisor.ready_session(PATIENCE)
        supervisor.close()
    assert seen[0] is ServerStatus.STARTING
    assert ServerStatus.READY in seen
    assert seen[-1] is ServerStatus.CLOSED


@requirement("CON-16", "TYP-1")
async def test_the_report_of_a_ready_server_says_all_that_is_known() -> None:
    async with connected(FakeServer()) as connection:
        await connection.ready(PATIENCE)
        report = connection.report()
    assert report.status is ServerStatus.READY
    assert report.info is not None
    assert (report.info.name, report.protocol_version, report.era) == ("zoo", "2025-11-25", "handshake")
    assert (report.instructions, report.process_id, report.restarts) == ("be kind", 1001, 0)
    assert report.seconds_to_ready is not None
    assert report.standard_error == "stderr of session 1\n"


async def test_a_call_waits_for_the_start_within_its_own_deadline() -> None:
    server = FakeServer()
    go = server.hold_openings()
    async with connected(server) as connection, anyio.create_task_group() as tasks:
        results: list[str] = []

        async def call() -> None:
            results.append(text(await connection.call_tool("echo", {}, timeout=PATIENCE)))

        tasks.start_soon(call)
        await until(lambda: server.openings == 1)
        go.set()
    assert results == ["session 1"]


async def test_a_call_whose_deadline_passes_during_the_start_fails_without_effect() -> None:
    server = FakeServer()
    server.hold_openings()
    async with connected(server) as connection:
        error = await failure(connection.call_tool("echo", {}, timeout=0.02))
    assert (error.kind, error.effect) == ("deadline", "none")
    assert server.sessions == []


@requirement("CON-1")
async def test_a_failed_start_fails_its_callers_at_once_and_says_why() -> None:
    server = FakeServer()
    server.refusals = [ServerFailed("database is locked", server="zoo", kind="rejected")]
    async with connected(server, recovery=PATIENT) as connection:
        error = await failure(connection.ready(PATIENCE))
        report = connection.report()
    assert "database is locked" in error.message
    assert error.effect == "none"
    assert (report.status, report.reason) == (ServerStatus.FAILED, "database is locked")


async def test_a_failed_start_is_tried_again_in_the_background() -> None:
    server = FakeServer()
    server.refusals = [lost(), lost()]
    async with connected(server) as connection:
        await until(lambda: status(connection) is ServerStatus.READY)
        assert connection.report().restarts == 2


async def test_restart_never_leaves_a_server_failed() -> None:
    server = FakeServer()
    server.refusals = [lost()]
    async with connected(server, config(restart="never")) as connection:
        await until(lambda: status(connection) is ServerStatus.FAILED)
        error = await failure(connection.ready(PATIENCE))
        assert "next try" not in error.message
    assert server.openings == 1


async def test_a_server_that_wants_credentials_is_not_tried_again_by_itself() -> None:
    server = FakeServer()
    server.refusals = [ServerFailed("log in first", server="zoo", kind="authentication")]
    async with connected(server) as connection:
        error = await failure(connection.ready(PATIENCE))
        assert error.kind == "authentication"
        assert status(connection) is ServerStatus.AUTHENTICATION_REQUIRED
        connection.supervisor.retry()
        await connection.ready(PATIENCE)
    assert server.openings == 2


@requirement("CFG-3")
async def test_a_server_with_a_problem_is_failed_with_that_reason_and_never_started() -> None:
    server = FakeServer()
    async with connected(server, config(problem="MY_TOKEN is not set")) as connection:
        connection.supervisor.retry()
        error = await failure(connection.ready(PATIENCE))
        assert "MY_TOKEN is not set" in error.message
        assert status(connection) is ServerStatus.FAILED
    assert server.openings == 0


@pytest.mark.parametrize(("kind", "facts", "tries"), [("unavailable", {}, 3), ("unavailable", {"status": 404}, 1)])
async def test_the_first_contact_over_http_is_tried_three_times_where_that_may_help(
    kind: Any, facts: dict[str, Any], tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.connections.supervisor.HTTP_PAUSES", (0.001, 0.001))
    server = FakeServer()
    server.refusals = [ServerFailed("refused", server="zoo", kind=kind, **facts) for _ in range(3)]
    http = ServerConfig(name="zoo", transport=HttpTransport(url="http://127.0.0.1:1/mcp"), restart="never")
    async with connected(server, http) as connection:
        await failure(connection.ready(PATIENCE))
    assert server.openings == tries
    assert server.timeouts == sorted(server.timeouts, reverse=True)


async def test_a_fault_of_the_host_with_one_session_is_that_server_s_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(*arguments: Any, **options: Any) -> Any:
        raise ZeroDivisionError

    async with connected(FakeServer()) as other:
        supervisor = Supervisor(config("bad"), handlers=SessionHandlers(), opener=broken, recovery=PATIENT)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(supervisor.run)
            error = await failure(supervisor.ready_session(PATIENCE))
            supervisor.close()
        assert "ZeroDivisionError" in error.message
        await other.ready(PATIENCE)
    assert "fault of the host" in caplog.text


# ---- dying and coming back


@requirement("CON-6")
async def test_calls_in_flight_of_a_dying_server_fail_with_an_unknown_effect_and_are_not_repeated() -> None:
    server = FakeServer()
    go = server.hold("tools/call")
    async with connected(server) as connection, anyio.create_task_group() as tasks:
        errors: list[ServerFailed] = []

        async def call() -> None:
            errors.append(await failure(connection.call_tool("echo", {}, timeout=PATIENCE, safe_to_repeat=True)))

        tasks.start_soon(call)
        await server.arrivals["tools/call"].wait()
        server.sessions[0].die()
        go.set()
        await until(lambda: len(server.sessions) == 2)
    assert [(error.kind, error.effect) for error in errors] == [("lost", "unknown")]
    assert server.sessions[1].asked == []


@requirement("CON-6")
async def test_a_later_call_waits_for_the_restart() -> None:
    server = FakeServer()
    async with connected(server) as connection:
        await connection.ready(PATIENCE)
        server.sessions[0].die()
        assert text(await connection.call_tool("echo", {}, timeout=PATIENCE)) == "session 2"
        report = connection.report()
    assert report.restarts == 1
    assert [(entry.kind, entry.count, entry.last) for entry in report.diagnostics] == [("noise", 2, "session 2")]
    assert report.standard_error == "stderr of session 1\nstderr of session 2\n"


@requirement("CON-6")
async def test_a_call_that_cannot_see_the_restart_within_its_deadline_fails_at_once_without_effect() -> None:
    server = FakeServer()
    async with connected(server, recovery=PATIENT) as connection:
        await connection.ready(PATIENCE)
        server.sessions[0].die(ServerFailed("it exited with 3", server="zoo", kind="lost"))
        await until(lambda: status(connection) is ServerStatus.FAILED)
        error = await failure(connection.call_tool("echo", {}, timeout=PATIENCE))
        assert connection.report().capabilities == {"tools": {}, "resources": {}}
    assert (error.kind, error.effect) == ("unavailable", "none")
    assert "it exited with 3" in error.message
    assert "next try in" in error.message


@requirement("CON-6")
async def test_the_breaker_stops_a_crash_loop() -> None:
    server = FakeServer()
    recovery = Recovery(backoff=Backoff(first=0.001, limit=0.002), breaker=Breaker(threshold=3))
    async with connected(server, recovery=recovery) as connection:
        await connection.ready(PATIENCE)
        await dies_and_comes_back(server, connection)
        await dies_and_comes_back(server, connection)
        server.sessions[-1].die()
        await until(lambda: status(connection) is ServerStatus.FAILED)
        error = await failure(connection.call_tool("echo", {}, timeout=PATIENCE))
    assert "after failing again and again" in error.message
    assert server.openings == 3


@requirement("CON-6")
async def test_a_server_that_dies_as_soon_as_it_is_up_is_not_waited_for() -> None:
    server = FakeServer()
    async with connected(server) as connection:
        await connection.list_tools(timeout=PATIENCE)
        await dies_and_comes_back(server, connection)
        assert text(await connection.call_tool("echo", {}, timeout=PATIENCE)) == "session 2"
        await dies_and_comes_back(server, connection)
        await connection.list_tools(timeout=PATIENCE)
        await dies_and_comes_back(server, connection)
        server.sessions[-1].die()
        await until(lambda: status(connection) is ServerStatus.FAILED)
        error = await failure(connection.call_tool("echo", {}, timeout=PATIENCE))
    assert (error.kind, error.effect) == ("unavailable", "none")


async def test_the_era_that_worked_is_tried_first_at_the_restart() -> None:
    server = FakeServer(era="stateless")
    async with connected(server) as connection:
        await connection.ready(PATIENCE)
        server.sessions[0].die()
        await until(lambda: len(server.sessions) == 2)
    assert server.eras_tried == [None, "stateless"]


def forgetful(*methods: str, effect: Any = "unknown") -> Any:
    """Answers of a server whose first session is lost by the given methods."""

    def answer(session: FakeSession, method: str, params: Any) -> Any:
        if session.number == 1 and method in methods:
            error = ServerFailed("gone", server="zoo", kind="lost", effect=effect, session_lost=True)
            session.die(error)
            return error
        if method == "tools/list":
            return {"tools": [TOOL]}
        return {"content": [{"type": "text", "text": f"session {session.number}"}]}

    return answer


@requirement("CON-7")
async def test_a_lost_http_session_is_opened_again_once_for_all_who_wait() -> None:
    server = FakeServer(answer=forgetful("tools/call"))
    async with connected(server, recovery=PATIENT) as connection, anyio.create_task_group() as tasks:
        results: list[str] = []

        async def call() -> None:
            results.append(text(await connection.call_tool("echo", {}, timeout=PATIENCE, safe_to_repeat=True)))

        for _ in range(20):
            tasks.start_soon(call)
    assert results == ["session 2"] * 20
    assert server.openings == 2


@requirement("CON-7")
async def test_a_call_that_is_not_safe_to_repeat_is_not_repeated() -> None:
    server = FakeServer(answer=forgetful("tools/call"))
    async with connected(server, recovery=PATIENT) as connection:
        error = await failure(connection.call_tool("echo", {}, timeout=PATIENCE))
        assert (error.kind, error.effect) == ("lost", "unknown")
        assert text(await connection.call_tool("echo", {}, timeout=PATIENCE)) == "session 2"
    calls = [method for session in server.sessions for method, _ in session.asked]
    assert calls == ["tools/call", "tools/call"]


@requirement("CON-7")
async def test_a_call_that_had_no_effect_is_sent_again_and_so_is_a_listing() -> None:
    server = FakeServer(answer=forgetful("tools/call", effect="none"))
    async with connected(server, recovery=PATIENT) as connection:
        assert text(await connection.call_tool("echo", {}, timeout=PATIENCE)) == "session 2"
    server = FakeServer(answer=forgetful("tools/list"))
    async with connected(server, recovery=PATIENT) as connection:
        assert len((await connection.list_tools(timeout=PATIENCE)).entries) == 1


@requirement("CON-7")
async def test_a_session_that_is_lost_again_at_once_is_not_opened_in_a_circle() -> None:
    def answer(session: FakeSession, method: str, params: Any) -> Any:
        error = lost(session_lost=True)
        session.die(error)
        return error

    server = FakeServer(answer=answer)
    async with connected(server, recovery=PATIENT) as connection:
        error = await failure(connection.call_tool("echo", {}, timeout=PATIENCE, safe_to_repeat=True))
        assert error.kind == "lost"
        await until(lambda: status(connection) is ServerStatus.FAILED)
    assert server.openings == 2


# ---- asking


async def test_a_listing_follows_every_page_and_names_what_fell() -> None:
    pages = {
        None: {"tools": [TOOL, {"name": "bare"}], "nextCursor": ""},
        "": {"tools": [5], "nextCursor": "next/é=="},
        "next/é==": {"tools": [{**TOOL, "name": "two"}], "nextCursor": ""},
    }
    server = FakeServer(answer=lambda session, method, params: pages[params.get("cursor")])
    async with connected(server) as connection:
        listing = await connection.list_tools(timeout=PATIENCE)
    assert [tool.name for tool in listing.entries] == ["echo", "two"]
    assert [entry.name for entry in listing.bad] == ["bare", "#3"]
    assert [params for _, params in server.sessions[0].asked] == [{}, {"cursor": ""}, {"cursor": "next/é=="}]


@requirement("CAT-1")
async def test_a_listing_in_a_circle_is_refused_after_few_requests() -> None:
    server = FakeServer(answer=lambda session, method, params: {"tools": [TOOL], "nextCursor": "same"})
    async with connected(server) as connection:
        error = await failure(connection.list_tools(timeout=PATIENCE))
    assert error.kind == "protocol"
    assert len(server.sessions[0].asked) == 2


@requirement("CON-6")
async def test_a_server_that_dies_during_a_listing_fails_it_whole() -> None:
    def answer(session: FakeSession, method: str, params: Any) -> Any:
        if "cursor" in params:
            session.die()
            return lost()
        return {"tools": [TOOL], "nextCursor": "2"}

    async with connected(FakeServer(answer=answer)) as connection:
        error = await failure(connection.list_tools(timeout=PATIENCE))
    assert error.kind == "lost"


async def test_one_page_passes_the_cursors_through_untouched() -> None:
    def answer(session: FakeSession, method: str, params: Any) -> Any:
        return {"resources": [{"uri": "zoo://a", "name": "a"}], "nextCursor": "b" if params else ""}

    async with connected(FakeServer(answer=answer)) as connection:
        assert (await connection.list_resources(cursor=None, timeout=PATIENCE)).next_cursor == ""
        assert (await connection.list_resources(cursor="", timeout=PATIENCE)).next_cursor == "b"


async def test_what_a_server_does_not_offer_is_told_apart_from_failure() -> None:
    server = FakeServer()
    async with connected(server) as connection:
        await connection.ready(PATIENCE)
        for awaitable in (
            connection.list_all_prompts(timeout=PATIENCE),
            connection.list_all_resource_templates(timeout=PATIENCE),
            connection.get_prompt("p", {}, timeout=PATIENCE),
            connection.complete({"type": "ref/prompt", "name": "p"}, "a", "", context={}, timeout=PATIENCE),
        ):
            error = await failure(awaitable)
            assert (error.kind, error.effect) == ("unsupported", "none")
        assert [method for method, _ in server.sessions[0].asked] == ["resources/templates/list"]
        server.sessions[0].capabilities = {}
        assert (await connection.list_tools(timeout=PATIENCE)).entries == ()


async def test_an_error_of_the_server_to_a_call_stays_its_own() -> None:
    rejected = ServerFailed("unknown tool", server="zoo", kind="rejected", rpc_code=-32601)
    async with connected(FakeServer(answer=lambda *_: rejected)) as connection:
        assert await failure(connection.call_tool("gone", {}, timeout=PATIENCE)) is rejected


@pytest.mark.parametrize(("kind", "expected"), [("input_required", "protocol"), ("telepathy", "protocol")])
async def test_a_result_that_is_no_answer_is_never_read_as_complete(kind: str, expected: str) -> None:
    result = {"resultType": kind, "content": [{"type": "text", "text": "secret"}]}
    async with connected(FakeServer(era="stateless", answer=lambda *_: result)) as connection:
        error = await failure(connection.call_tool("odd", {}, timeout=PATIENCE))
    assert (error.kind, error.effect) == (expected, "unknown")
    assert "secret" not in error.message


@requirement("CON-14")
async def test_notices_of_the_server_reach_the_listeners() -> None:
    server = FakeServer()
    heard: list[Change] = []
    async with connected(server) as connection:
        await connection.ready(PATIENCE)
        stop = connection.listen(heard.append)
        for what in ("tools", "resources", "prompts"):
            await server.sessions[0].notify_us(f"notifications/{what}/list_changed")
        await server.sessions[0].notify_us("notifications/resources/updated", uri="zoo://a")
        await server.sessions[0].notify_us("notifications/resources/updated", uri=5)
        await server.sessions[0].notify_us("notifications/banana")
        stop()
        await server.sessions[0].notify_us("notifications/tools/list_changed")
    assert [(change.kind, change.uri) for change in heard] == [
        ("tools", None),
        ("resources", None),
        ("prompts", None),
        ("updated", "zoo://a"),
    ]


# ---- closing


@pytest.mark.parametrize("moment", range(12))
async def test_whenever_it_is_closed_the_session_ends_and_waiters_are_told(moment: int) -> None:
    server = FakeServer()
    server.refusals = [lost()]
    supervisor = Supervisor(config(), handlers=SessionHandlers(), opener=server, recovery=QUICK)
    errors: list[ServerFailed] = []
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(supervisor.run)

            async def wait() -> None:
                try:
                    await supervisor.ready_session(PATIENCE)
                except ServerFailed as error:
                    errors.append(error)

            tasks.start_soon(wait)
            for _ in range(moment):
                await anyio.lowlevel.checkpoint()
            supervisor.close()
            await supervisor.wait_closed()
    assert server.alive == 0
    assert supervisor.state.over
    assert all(error.effect == "none" for error in errors)


@pytest.mark.parametrize("moment", range(12))
async def test_whenever_the_owner_is_cancelled_it_ends_in_a_final_state(moment: int) -> None:
    server = FakeServer()
    supervisor = Supervisor(config(), handlers=SessionHandlers(), opener=server, recovery=QUICK)
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(supervisor.run)
            for _ in range(moment):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    assert server.alive == 0
    assert moment == 0 or supervisor.state.over


# ---- what is kept


def counting(ttl: int) -> Any:
    def answer(session: FakeSession, method: str, params: Any) -> Any:
        number = len(session.asked)
        if method == "resources/read":
            return {"contents": [{"uri": params["uri"], "text": str(number)}], "ttlMs": ttl}
        return {"tools": [{**TOOL, "name": f"t{number}"}], "ttlMs": ttl, "cacheScope": "private"}

    return answer


async def listed(connection: SupervisedConnection, **options: Any) -> str:
    return (await connection.list_tools(timeout=PATIENCE, **options)).entries[0].name


@requirement("CON-17")
async def test_a_fresh_listing_is_not_asked_for_again_until_the_server_says_that_it_changed() -> None:
    server = FakeServer(era="stateless", answer=counting(60_000))
    async with connected(server) as connection:
        assert [await listed(connection) for _ in range(3)] == ["t1"] * 3
        await server.sessions[0].notify_us("notifications/tools/list_changed")
        assert await listed(connection) == "t2"
        server.sessions[0].die()
        await until(lambda: len(server.sessions) == 2)
        assert await listed(connection) == "t1"
        assert len(server.sessions[1].asked) == 1


@requirement("CON-17")
async def test_an_explicit_refresh_always_reaches_the_server() -> None:
    async with connected(FakeServer(era="stateless", answer=counting(60_000))) as connection:
        assert await listed(connection) == "t1"
        assert await listed(connection, fresh=True) == "t2"
        assert await listed(connection) == "t2"


@requirement("CON-17")
@pytest.mark.parametrize(("era", "ttl"), [("stateless", 0), ("stateless", -1), ("handshake", 60_000)])
async def test_without_a_hint_of_the_newer_protocol_nothing_is_kept(era: Any, ttl: int) -> None:
    async with connected(FakeServer(era=era, answer=counting(ttl))) as connection:
        assert [await listed(connection) for _ in range(2)] == ["t1", "t2"]


@requirement("CON-17")
async def test_a_read_is_kept_by_its_uri_and_never_with_metadata_of_a_caller() -> None:
    server = FakeServer(era="stateless", answer=counting(60_000))
    async with connected(server) as connection:

        async def read(uri: str, **options: Any) -> str | None:
            return (await connection.read_resource(uri, timeout=PATIENCE, **options)).contents[0].text

        assert [await read("zoo://a"), await read("zoo://a"), await read("zoo://b")] == ["1", "1", "2"]
        assert await read("zoo://a", meta={"threadId": "t"}) == "3"
        await server.sessions[0].notify_us("notifications/resources/updated", uri="zoo://a")
        assert [await read("zoo://a"), await read("zoo://b")] == ["4", "2"]


# ---- calls of described tools


async def test_a_result_that_breaks_the_tool_s_promise_is_kept_and_noted() -> None:
    promise = {"type": "object", "properties": {"n": {"type": "integer"}}}

    def answer(session: FakeSession, method: str, params: Any) -> Any:
        if method == "tools/list":
            return {"tools": [{**TOOL, "outputSchema": promise}]}
        return {"content": [{"type": "text", "text": "n is many"}], "structuredContent": {"n": "many"}}

    server = FakeServer(answer=answer)
    async with connected(server) as connection:
        await connection.list_tools(timeout=PATIENCE)
        result = await connection.call_tool("echo", {}, timeout=PATIENCE)
    assert text(result) == "n is many"
    assert result.structured_content == {"n": "many"}
    assert [kind for kind, _ in server.sessions[0].noted] == ["output_schema"]


async def test_after_a_header_mismatch_the_tools_are_listed_again_and_the_call_repeated_once() -> None:
    mismatch = ServerFailed("header mismatch", server="zoo", kind="rejected", rpc_code=-32020)

    def answer(session: FakeSession, method: str, params: Any) -> Any:
        if method == "tools/list":
            return {"tools": [TOOL]}
        calls = [asked for asked, _ in session.asked if asked == "tools/call"]
        return mismatch if len(calls) == 1 else {"content": [{"type": "text", "text": "at last"}]}

    server = FakeServer(era="stateless", answer=answer)
    async with connected(server) as connection:
        assert text(await connection.call_tool("echo", {}, timeout=PATIENCE)) == "at last"
    assert [method for method, _ in server.sessions[0].asked] == ["tools/call", "tools/list", "tools/call"]


async def test_those_who_list_at_the_same_time_share_one_listing_until_it_changes() -> None:
    server = FakeServer()
    go = server.hold("tools/list")
    listings: list[Any] = []
    async with connected(server) as connection, anyio.create_task_group() as tasks:

        async def listing() -> None:
            listings.append(await connection.list_tools(timeout=PATIENCE))

        await connection.ready(PATIENCE)
        for _ in range(10):
            tasks.start_soon(listing)
        await server.arrivals["tools/list"].wait()
        await server.sessions[0].notify_us("notifications/tools/list_changed")
        tasks.start_soon(listing)
        await until(lambda: len(server.sessions[0].asked) == 2)
        go.set()
    assert len(listings) == 11
    assert len(server.sessions[0].asked) == 2


async def test_a_listing_that_takes_too_long_fails_those_whose_deadline_has_passed() -> None:
    server = FakeServer()
    server.hold("tools/list")
    async with connected(server) as connection:
        error = await failure(connection.list_tools(timeout=0.02))
    assert error.kind == "deadline"


@requirement("CON-8")
async def test_what_a_server_printed_in_starts_that_failed_is_counted_in_its_report() -> None:
    server = FakeServer()
    seen = (Diagnostic(kind="noise", count=2, last="Booting"),)
    server.refusals = [
        ServerFailed("no answer", server="zoo", kind="deadline", diagnostics=seen, standard_error="oops\n")
    ] * 2
    async with connected(server, recovery=QUICK) as connection:
        await until(lambda: status(connection) is ServerStatus.READY)
        report = connection.report()
        assert Diagnostic(kind="noise", count=5, last="session 1") in report.diagnostics
        assert report.standard_error.startswith("oops\noops\n")


@requirement("CON-1")
async def test_a_start_that_failed_holds_nobody_while_its_process_is_being_ended() -> None:
    over = anyio.Event()

    class Stubborn(FakeServer):
        @asynccontextmanager
        async def __call__(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
            options["handlers"].on_failing(ServerFailed("it printed nonsense", server="zoo", kind="protocol"))
            await over.wait()
            if over.is_set():
                raise ServerFailed("it printed nonsense", server="zoo", kind="protocol")
            yield

    async with connected(Stubborn()) as connection:
        error = await failure(connection.ready(PATIENCE))
        assert (error.kind, error.effect) == ("unavailable", "none")
        assert "it printed nonsense" in error.message
        over.set()


@requirement("CON-6")
async def test_a_request_without_time_left_is_not_sent() -> None:
    server = FakeServer()
    async with connected(server) as connection:
        await connection.ready(PATIENCE)
        late = await failure(connection.call_tool("echo", {}, timeout=0.0))
        assert (late.kind, late.effect) == ("deadline", "none")
        assert "no time was left" in late.message
        assert server.sessions[0].asked == []
