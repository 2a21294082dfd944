"""Ids, deadlines, cancellation, progress and notifications, over a channel that the test plays itself."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import pytest

from interlock.connections.channel import Receiver
from interlock.connections.dispatcher import Dispatcher
from interlock.connections.lines import MOST_TOGETHER
from interlock.connections.notifications import FOLDED_LIMIT, QUEUE_LIMIT, NotificationQueue
from interlock.connections.serving import AT_ONCE, RequestRefused
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.server import Era
from interlock.vocabulary.tool import Progress
from tests.clock import let_pass
from tests.connections.servers import PATIENCE
from tests.manifest import requirement

pytestmark = pytest.mark.anyio


class PlayedChannel:
    """A channel whose other end is the test: what was sent can be awaited, what arrives is given to the receiver."""

    standard_error = ""
    process_id = None
    sending_waits = False

    def __init__(self) -> None:
        self.sent: list[JsonObject] = []
        self.refuse: ServerFailed | None = None
        self.closes_streams = False
        self.flushed = False
        self._sent = anyio.Event()

    async def run(
        self, receiver: Receiver, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        task_status.started()
        await anyio.sleep_forever()

    async def send(self, message: JsonObject, *, headers: Mapping[str, str] | None = None) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.sent.append(message)
        self._sent.set()
        self._sent = anyio.Event()

    async def flush(self) -> None:
        self.flushed = True

    def abandon(self, request_id: int | str) -> bool:
        return self.closes_streams

    def adopted(self, era: Era, protocol_version: str) -> None:
        raise AssertionError("nothing is negotiated here")

    async def until_sent(self, number: int) -> JsonObject:
        with anyio.fail_after(PATIENCE):
            while len(self.sent) < number:
                await self._sent.wait()
        return self.sent[number - 1]


@asynccontextmanager
async def live(**settings: Any) -> AsyncIterator[tuple[Dispatcher, PlayedChannel]]:
    channel = PlayedChannel()
    dispatcher = Dispatcher(channel, server="played", **settings)
    before = asyncio.all_tasks()
    async with anyio.create_task_group() as group:
        await group.start(dispatcher.serve)
        yield dispatcher, channel
        group.cancel_scope.cancel()
    assert asyncio.all_tasks() == before


class Call:
    """One request in a task of its own, and what became of it."""

    def __init__(self, group: anyio.abc.TaskGroup, dispatcher: Dispatcher, method: str = "tools/call", **how: Any):
        self.scope = anyio.CancelScope()
        self.result: JsonObject | None = None
        self.error: ServerFailed | None = None
        self.cancelled = False
        self.done = anyio.Event()
        group.start_soon(self._run, dispatcher, method, {"timeout": PATIENCE} | how)

    async def _run(self, dispatcher: Dispatcher, method: str, how: dict[str, Any]) -> None:
        with self.scope:
            try:
                self.result = await dispatcher.request(method, {}, **how)
            except ServerFailed as error:
                self.error = error
        self.cancelled = self.scope.cancelled_caught
        self.done.set()

    async def outcome(self) -> JsonObject | ServerFailed | None:
        with anyio.fail_after(PATIENCE):
            await self.done.wait()
        return self.result if self.error is None else self.error


async def turns(number: int = 5) -> None:
    for _ in range(number):
        await anyio.lowlevel.checkpoint()


def kinds(dispatcher: Dispatcher) -> dict[str, int]:
    return {diagnostic.kind: diagnostic.count for diagnostic in dispatcher.diagnostics.report()}


# ---------------------------------------------------------------- answers and their ids


async def test_each_caller_gets_its_own_answer_in_any_order() -> None:
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        calls = [Call(group, dispatcher) for _ in range(50)]
        await channel.until_sent(50)
        for message in reversed(channel.sent):
            dispatcher.message({"jsonrpc": "2.0", "id": message["id"], "result": {"for": message["id"]}})
        assert [await call.outcome() for call in calls] == [{"for": message["id"]} for message in channel.sent]
    assert kinds(dispatcher) == {}


@requirement("CON-9")
@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"id": 987654}, "unknown_id"),
        ({"id": ""}, "unknown_id"),
        ({"id": "seven"}, "unknown_id"),
        ({"id": None}, "unknown_id"),
        ({}, "unknown_id"),
        ({"id": 1.0}, "unknown_id"),
        ({"id": True}, "unknown_id"),
        ({"id": [1]}, "unknown_id"),
        ({"id": {"a": 1}}, "unknown_id"),
        ({"id": "1"}, "wrong_id_type"),
    ],
)
async def test_an_answer_with_another_id_is_dropped_and_counted(wrong: dict[str, Any], kind: str) -> None:
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        call = Call(group, dispatcher)
        await channel.until_sent(1)
        dispatcher.message({"jsonrpc": "2.0", **wrong, "result": {"v": "wrong"}})
        dispatcher.message({"jsonrpc": "2.0", "id": 1, "result": {"v": "right"}})
        assert await call.outcome() == {"v": "right"}
    assert kinds(dispatcher) == {kind: 1}


@requirement("CON-7", "CON-9")
async def test_the_response_to_one_request_cannot_answer_another() -> None:
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        calls = [Call(group, dispatcher) for _ in range(2)]
        await channel.until_sent(2)
        for foreign in (2, "2"):
            dispatcher.message({"jsonrpc": "2.0", "id": foreign, "result": {"v": "forged"}}, 1)
        dispatcher.message([{"jsonrpc": "2.0", "id": 2, "error": {"code": 1, "message": "forged"}}], 1)
        dispatcher.message({"jsonrpc": "2.0", "id": 1, "result": {"v": "first"}}, 1)
        dispatcher.message({"jsonrpc": "2.0", "id": 2, "result": {"v": "second"}})
        assert [await call.outcome() for call in calls] == [{"v": "first"}, {"v": "second"}]
    assert kinds(dispatcher) == {"foreign_answer": 3}


async def test_an_id_that_comes_back_as_a_string_is_better_than_no_answer() -> None:
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        call = Call(group, dispatcher)
        await channel.until_sent(1)
        dispatcher.message({"jsonrpc": "2.0", "id": "1", "result": {"v": 1}})
        assert await call.outcome() == {"v": 1}
    assert kinds(dispatcher) == {"wrong_id_type": 1}


@requirement("CON-9")
async def test_the_second_answer_reaches_nobody() -> None:
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        call = Call(group, dispatcher)
        await channel.until_sent(1)
        dispatcher.message({"jsonrpc": "2.0", "id": 1, "result": {"v": 1}})
        dispatcher.message({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "changed my mind"}})
        assert await call.outcome() == {"v": 1}
        other = Call(group, dispatcher)
        await channel.until_sent(2)
        dispatcher.message({"jsonrpc": "2.0", "id": 1, "result": {"v": "again"}})
        dispatcher.message({"jsonrpc": "2.0", "id": 2, "result": {"v": 2}})
        assert await other.outcome() == {"v": 2}
    assert kinds(dispatcher) == {"late_or_repeated_answer": 2}


async def test_a_batch_is_read_up_to_a_bound() -> None:
    async with live() as (dispatcher, _), anyio.create_task_group() as group:
        call = Call(group, dispatcher)
        await turns()
        answer = {"id": 1, "result": {"content": []}}
        dispatcher.message([*([0] * MOST_TOGETHER), answer])
        await turns()
        assert not call.done.is_set()
        assert kinds(dispatcher) == {"noise": MOST_TOGETHER + 1}
        dispatcher.message([*([0] * (MOST_TOGETHER - 1)), answer])
        assert await call.outcome() == {"content": []}


async def test_a_batch_is_read_part_by_part() -> None:
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        call = Call(group, dispatcher)
        await channel.until_sent(1)
        dispatcher.message([7, {"method": "notifications/x"}, [], {"id": 1, "result": {"v": 1}}])
        assert await call.outcome() == {"v": 1}
    assert kinds(dispatcher) == {"noise": 2}


@pytest.mark.parametrize("noise", [None, 5, "text", True, {}, {"jsonrpc": "2.0"}, {"method": 5, "id": 1}])
async def test_json_that_is_no_message_is_noise(noise: Any) -> None:
    async with live() as (dispatcher, _):
        dispatcher.message(noise)
    assert kinds(dispatcher) == {"noise": 1}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"result": None}, "a result that is no object"),
        ({"result": [1]}, "a result that is no object"),
        ({}, "neither result nor error"),
        ({"error": None}, "neither result nor error"),
    ],
)
async def test_a_malformed_answer_fails_its_call_at_once(answer: dict[str, Any], words: str) -> None:
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        call = Call(group, dispatcher)
        await channel.until_sent(1)
        dispatcher.message({"jsonrpc": "2.0", "id": 1, **answer})
        error = await call.outcome()
    assert isinstance(error, ServerFailed)
    assert words in error.message
    assert (error.kind, error.effect) == ("protocol", "unknown")


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ({"error": {"code": -32603, "message": "database is locked"}}, -32603, "database is locked (code -32603)"),
        ({"error": {"code": -32050}}, -32050, "it gave no reason (code -32050)"),
        ({"error": "plain text"}, None, "plain text"),
        ({"error": {"code": "E1", "message": {"a": 1}}}, None, "{'a': 1}"),
        ({"error": {"message": "\x1b[31mred"}}, None, "\\x1b[31mred"),
        ({"error": {"code": 5, "message": "e"}, "result": {}}, 5, "e (code 5)"),
        ({"error": {"code": 5, "message": "e" * 3_000_000}}, 5, "…"),
        ({"error": []}, None, "[]"),
    ],
)
async def test_an_error_of_any_shape_is_told_in_the_servers_words(
    answer: dict[str, Any], code: int | None, words: str
) -> None:
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        call = Call(group, dispatcher)
        await channel.until_sent(1)
        dispatcher.message({"jsonrpc": "2.0", "id": 1, **answer})
        error = await call.outcome()
    assert isinstance(error, ServerFailed)
    assert (error.kind, error.rpc_code) == ("rejected", code)
    assert words in error.message
    assert len(error.message) < 3000


async def test_a_result_beside_a_null_error_is_a_result() -> None:
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        call = Call(group, dispatcher)
        await channel.until_sent(1)
        dispatcher.message({"id": 1, "result": {"v": 1}, "error": None})
        assert await call.outcome() == {"v": 1}


# ---------------------------------------------------------------- the end of the connection


async def test_the_end_fails_what_is_in_flight_as_unknown_and_what_follows_as_none() -> None:
    end = ServerFailed("server went away", server="played", kind="lost", exit_code=3)
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        call = Call(group, dispatcher)
        await channel.until_sent(1)
        dispatcher.ended(end)
        error = await call.outcome()
        assert isinstance(error, ServerFailed)
        assert (error.kind, error.effect, error.facts["exit_code"]) == ("lost", "unknown", 3)
        with pytest.raises(ServerFailed) as caught:
            await dispatcher.request("ping", None, timeout=1)
        assert (caught.value.kind, caught.value.effect) == ("lost", "none")
        with pytest.raises(ServerFailed):
            await dispatcher.notify("x")
    assert dispatcher.over.is_set()


async def test_closing_fails_what_is_in_flight() -> None:
    channel = PlayedChannel()
    dispatcher = Dispatcher(channel, server="played")
    async with anyio.create_task_group() as outer:
        async with anyio.create_task_group() as group:
            await group.start(dispatcher.serve)
            call = Call(outer, dispatcher)
            await channel.until_sent(1)
            group.cancel_scope.cancel()
        error = await call.outcome()
    assert isinstance(error, ServerFailed)
    assert (error.kind, error.effect) == ("lost", "unknown")


async def test_a_request_that_cannot_be_sent_leaves_nothing_behind() -> None:
    async with live() as (dispatcher, channel):
        channel.refuse = ServerFailed("full", server="played")
        with pytest.raises(ServerFailed, match="full"):
            await dispatcher.request("tools/call", {}, timeout=5)
        channel.refuse = None
        await turns()
        assert channel.sent == []
        assert "in_flight=0" in repr(dispatcher)


async def test_a_notification_that_a_transport_does_not_take_is_given_up_at_its_deadline() -> None:
    class Stuck(PlayedChannel):
        sending_waits = True

        async def send(self, message: JsonObject, *, headers: Mapping[str, str] | None = None) -> None:
            await anyio.sleep_forever()

    dispatcher = Dispatcher(Stuck(), server="played")
    with anyio.fail_after(PATIENCE), pytest.raises(ServerFailed, match="did not take x in time") as caught:
        await dispatcher.notify("x", deadline=anyio.current_time())
    assert caught.value.kind == "deadline"


async def test_a_broken_pipe_is_told_as_the_end_that_it_is_the_sign_of() -> None:
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        channel.refuse = ServerFailed("broken pipe", server="played", kind="lost")
        call = Call(group, dispatcher)
        await turns()
        dispatcher.ended(ServerFailed("ended with exit code 3", server="played", kind="lost", exit_code=3))
        error = await call.outcome()
    assert isinstance(error, ServerFailed)
    assert (error.message, error.effect) == ("ended with exit code 3", "none")


async def test_a_channel_that_breaks_ends_the_connection_and_not_its_owner() -> None:
    class Broken(PlayedChannel):
        async def run(self, receiver: Receiver, *, task_status: Any = anyio.TASK_STATUS_IGNORED) -> None:
            task_status.started()
            raise RuntimeError("a fault of ours")

    dispatcher = Dispatcher(Broken(), server="played")
    async with anyio.create_task_group() as group:
        await group.start(dispatcher.serve)
        with anyio.fail_after(PATIENCE):
            await dispatcher.over.wait()
    assert dispatcher.failure is not None
    assert "a fault of ours" in dispatcher.failure.message


# ---------------------------------------------------------------- deadlines and cancellation


def cancellations(channel: PlayedChannel) -> list[Any]:
    return [m["params"]["requestId"] for m in channel.sent if m.get("method") == "notifications/cancelled"]


@requirement("CON-9", "CON-10")
async def test_a_deadline_tells_the_server_and_a_late_answer_changes_nothing() -> None:
    async with live() as (dispatcher, channel):
        with pytest.raises(ServerFailed, match=r"did not answer tools/call within 0.05 s") as caught:
            await dispatcher.request("tools/call", {}, timeout=0.05)
        assert (caught.value.kind, caught.value.effect) == ("deadline", "unknown")
        await channel.until_sent(2)
        assert cancellations(channel) == [1]
        dispatcher.message({"id": 1, "result": {"v": "late"}})
    assert kinds(dispatcher) == {"late_or_repeated_answer": 1}


@requirement("CON-10")
async def test_a_cancelled_caller_tells_the_server() -> None:
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        call = Call(group, dispatcher)
        await channel.until_sent(1)
        call.scope.cancel()
        await channel.until_sent(2)
        await call.outcome()
        assert call.cancelled
        assert cancellations(channel) == [1]


@requirement("CON-10")
@pytest.mark.parametrize("why", ["stream closed instead", "never for initialize", "answered already"])
async def test_no_cancellation_is_sent_where_the_protocol_has_none(why: str) -> None:
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        channel.closes_streams = why == "stream closed instead"
        call = Call(group, dispatcher, cancellable=why != "never for initialize")
        await channel.until_sent(1)
        if why == "answered already":
            dispatcher.message({"id": 1, "result": {}})
        call.scope.cancel()
        await call.outcome()
        await turns()
        assert cancellations(channel) == []


@requirement("CON-10")
@pytest.mark.parametrize("moment", range(8))
async def test_cancelled_at_any_moment_a_request_leaves_nothing(moment: int) -> None:
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        call = Call(group, dispatcher)
        for turn in range(moment):
            await anyio.lowlevel.checkpoint()
            if turn == 3 and channel.sent:
                dispatcher.message({"id": 1, "result": {}})
        call.scope.cancel()
        await call.outcome()
        await turns()
        answered = call.result is not None or kinds(dispatcher) or moment > 3
        assert len(cancellations(channel)) == (0 if answered or not channel.sent else 1)
        assert "in_flight=0" in repr(dispatcher)


@requirement("CON-11")
async def test_deadlines_stand_still_while_a_question_is_open() -> None:
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        before = Call(group, dispatcher, timeout=PATIENCE)
        await channel.until_sent(1)
        with dispatcher.paused():
            with dispatcher.paused():
                during = Call(group, dispatcher, timeout=PATIENCE)
                await channel.until_sent(2)
                let_pass(PATIENCE)
                await turns()
            let_pass(PATIENCE)
            await turns()
        await turns()
        assert not before.done.is_set()
        assert not during.done.is_set()
        let_pass(PATIENCE)
        for call in (before, during):
            error = await call.outcome()
            assert isinstance(error, ServerFailed)
            assert error.kind == "deadline"
    assert "pauses=0" in repr(dispatcher)


async def test_a_request_without_a_timeout_waits() -> None:
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        call = Call(group, dispatcher, timeout=None, request_id="listen-1")
        assert (await channel.until_sent(1))["id"] == "listen-1"
        with dispatcher.paused():
            await turns()
        dispatcher.message({"id": "listen-1", "result": {}})
        assert await call.outcome() == {}


# ---------------------------------------------------------------- progress


async def test_progress_reaches_its_own_call_and_no_other() -> None:
    heard: list[Progress] = []
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        call = Call(group, dispatcher, on_progress=heard.append)
        message = await channel.until_sent(1)
        assert message["params"]["_meta"]["progressToken"] == message["id"]
        for token in ("ghost", 99999, "", None, [1], True, 1):
            params = {"progressToken": token, "progress": 0.5, "total": 2, "message": "half"}
            dispatcher.message({"method": "notifications/progress", "params": params})
        dispatcher.message({"method": "notifications/progress", "params": {"progressToken": 1, "progress": "x"}})
        dispatcher.message({"id": 1, "result": {}})
        await call.outcome()
        dispatcher.message({"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}})
    assert heard == [Progress(progress=0.5, total=2, message="half")]
    assert kinds(dispatcher) == {"unknown_progress": 7, "bad_progress": 1}


async def test_a_progress_callback_that_fails_costs_only_itself() -> None:
    def broken(_: Progress) -> None:
        raise RuntimeError("no")

    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        call = Call(group, dispatcher, on_progress=broken)
        await channel.until_sent(1)
        dispatcher.message({"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}})
        dispatcher.message({"id": 1, "result": {}})
        assert await call.outcome() == {}
    assert kinds(dispatcher) == {"handler_failed": 1}


# ---------------------------------------------------------------- notifications


async def test_a_quick_handler_hears_every_notification_in_order() -> None:
    heard: list[Any] = []
    async with live(on_notification=lambda method, params: heard.append(params["n"])) as (dispatcher, _):
        for number in range(50_000):
            dispatcher.message({"method": "notifications/message", "params": {"n": number}})
    assert heard == list(range(50_000))


@requirement("CON-14")
async def test_a_storm_meets_a_slow_handler_in_bounded_memory_and_tasks() -> None:
    heard: list[str] = []
    go_on = anyio.Event()

    async def slow(method: str, params: JsonObject) -> None:
        await go_on.wait()
        heard.append(method)

    async with live(on_notification=slow) as (dispatcher, _):
        before = len(asyncio.all_tasks())
        for _ in range(25_000):
            dispatcher.message({"method": "notifications/message", "params": {"data": "x"}})
            dispatcher.message({"method": "notifications/tools/list_changed"})
        assert len(asyncio.all_tasks()) <= before + 1
        go_on.set()
        with anyio.fail_after(PATIENCE):
            while len(heard) < QUEUE_LIMIT:
                await anyio.lowlevel.checkpoint()
        await turns()
    assert heard.count("notifications/tools/list_changed") == 1
    assert len(heard) <= QUEUE_LIMIT + FOLDED_LIMIT + 1
    assert kinds(dispatcher)["dropped_notification"] >= 25_000 - QUEUE_LIMIT - 1


async def test_an_update_during_the_handling_of_one_is_not_folded_away() -> None:
    heard: list[Any] = []
    entered, go_on = anyio.Event(), anyio.Event()

    async def slow(method: str, params: JsonObject) -> None:
        heard.append(params.get("uri"))
        entered.set()
        await go_on.wait()

    def updated(uri: str) -> JsonObject:
        return {"method": "notifications/resources/updated", "params": {"uri": uri}}

    async with live(on_notification=slow) as (dispatcher, _):
        dispatcher.message(updated("a"))
        await entered.wait()
        for uri in ("a", "b", "a", "b"):
            dispatcher.message(updated(uri))
        go_on.set()
        with anyio.fail_after(PATIENCE):
            while len(heard) < 3:
                await anyio.lowlevel.checkpoint()
    assert heard == ["a", "a", "b"]


@pytest.mark.parametrize("slow", [False, True])
async def test_a_handler_that_fails_costs_only_its_notification(slow: bool) -> None:
    heard: list[str] = []

    def broken(method: str, params: JsonObject) -> None:
        heard.append(method)
        raise RuntimeError("no")

    async def broken_slowly(method: str, params: JsonObject) -> None:
        broken(method, params)

    async with live(on_notification=broken_slowly if slow else broken) as (dispatcher, _):
        dispatcher.message({"method": "notifications/a"})
        dispatcher.message({"method": "notifications/b", "params": "no object"})
        await turns()
    assert heard == ["notifications/a", "notifications/b"]
    assert kinds(dispatcher) == {"handler_failed": 2}


async def test_closing_before_the_consumer_began_leaves_no_coroutine() -> None:
    async def slow(method: str, params: JsonObject) -> None:
        raise AssertionError("it never began")

    async with live(on_notification=slow) as (dispatcher, _):
        dispatcher.message({"method": "notifications/a"})


def test_a_crowd_of_log_messages_leaves_room_for_what_must_not_be_lost() -> None:
    queue = NotificationQueue()
    taken = [queue.put("notifications/message", {}) for _ in range(QUEUE_LIMIT + 5)]
    assert taken.count(True) == QUEUE_LIMIT
    assert queue.put("notifications/tools/list_changed", {})
    assert queue.put("notifications/tools/list_changed", {})
    assert len(queue) == QUEUE_LIMIT + 1


def test_notices_of_two_subscriptions_do_not_fold_into_one() -> None:
    queue = NotificationQueue()
    for name in ("a", "b", "a"):
        meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": name}}
        queue.put("notifications/tools/list_changed", meta)
    assert len(queue) == 2


# ---------------------------------------------------------------- requests of the server

Handler = Callable[[JsonObject], Awaitable[JsonObject]]


@requirement("CON-12")
async def test_ping_is_answered_and_what_was_not_advertised_is_unknown() -> None:
    async with live() as (dispatcher, channel):
        dispatcher.message({"jsonrpc": "2.0", "id": "p", "method": "ping"})
        dispatcher.message({"jsonrpc": "2.0", "id": 5, "method": "sampling/createMessage", "params": {}})
        dispatcher.message({"jsonrpc": "2.0", "id": None, "method": "ping"})
        dispatcher.message({"jsonrpc": "2.0", "method": "notifications/nobody/knows"})
        await channel.until_sent(2)
        await turns()
        assert channel.sent[0] == {"jsonrpc": "2.0", "id": "p", "result": {}}
        assert (channel.sent[1]["id"], channel.sent[1]["error"]["code"]) == (5, -32601)
        assert len(channel.sent) == 2
    assert kinds(dispatcher) == {"bad_request": 1}


@requirement("CON-12")
async def test_a_stateless_server_is_never_answered() -> None:
    async with live() as (dispatcher, channel):
        dispatcher.requests.enabled = False
        dispatcher.message({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        await turns()
        assert channel.sent == []
    assert kinds(dispatcher) == {"bad_request": 1}


async def test_the_two_directions_have_their_own_ids() -> None:
    async def answer(params: JsonObject) -> JsonObject:
        return {"action": "accept"}

    handlers: dict[str, Handler] = {"elicitation/create": answer}
    async with live(on_request=handlers) as (dispatcher, channel), anyio.create_task_group() as group:
        call = Call(group, dispatcher)
        await channel.until_sent(1)
        dispatcher.message({"id": 1, "method": "elicitation/create", "params": {}})
        assert (await channel.until_sent(2)) == {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}}
        assert not call.done.is_set()
        dispatcher.message({"method": "notifications/cancelled", "params": {"requestId": 1}})
        dispatcher.message({"id": 1, "result": {}})
        assert await call.outcome() == {}


async def test_a_server_of_2026_ends_its_listen_streams_and_no_call_of_ours() -> None:
    async with live() as (dispatcher, channel), anyio.create_task_group() as group:
        dispatcher.requests.enabled = False
        call = Call(group, dispatcher)
        await channel.until_sent(1)
        dispatcher.message({"method": "notifications/cancelled", "params": {"requestId": 1}})
        await turns()
        assert not call.done.is_set()
        dispatcher.message({"id": 1, "result": {"content": []}})
        assert await call.outcome() == {"content": []}
        listening = Call(group, dispatcher, "subscriptions/listen", request_id="listen-1")
        await channel.until_sent(2)
        dispatcher.message({"method": "notifications/cancelled", "params": {"requestId": "listen-1"}})
        assert "ended the subscription" in str(await listening.outcome())


async def test_a_withdrawn_request_is_cancelled_and_not_answered() -> None:
    entered, left = anyio.Event(), anyio.Event()

    async def wait(params: JsonObject) -> JsonObject:
        entered.set()
        try:
            await anyio.sleep_forever()
        finally:
            left.set()
        return {}

    async with live(on_request={"elicitation/create": wait}) as (dispatcher, channel):
        dispatcher.message({"id": "q", "method": "elicitation/create", "params": {}})
        await entered.wait()
        for wrong in (None, 7, [1], "other"):
            dispatcher.message({"method": "notifications/cancelled", "params": {"requestId": wrong}})
        dispatcher.message({"method": "notifications/cancelled"})
        await turns()
        assert not left.is_set()
        dispatcher.message({"method": "notifications/cancelled", "params": {"requestId": "q"}})
        with anyio.fail_after(PATIENCE):
            await left.wait()
        await turns()
        assert channel.sent == []


async def test_a_flood_of_requests_is_refused_beyond_a_few_at_once() -> None:
    go_on = anyio.Event()

    async def wait(params: JsonObject) -> JsonObject:
        await go_on.wait()
        return {}

    async with live(on_request={"elicitation/create": wait}) as (dispatcher, channel):
        for number in range(1000):
            dispatcher.message({"id": number, "method": "elicitation/create", "params": {}})
        await channel.until_sent(1000 - AT_ONCE)
        assert all("error" in message for message in channel.sent)
        go_on.set()
        await channel.until_sent(1000)
        assert sum("result" in message for message in channel.sent) == AT_ONCE


async def test_a_handler_refuses_in_its_own_words_and_breaks_without_any() -> None:
    async def handler(params: JsonObject) -> JsonObject:
        if params.get("mode") == "odd":
            raise RequestRefused(-32602, "unknown mode", {"mode": "odd"})
        raise RuntimeError("secret of the host")

    async with live(on_request={"elicitation/create": handler}) as (dispatcher, channel):
        dispatcher.message({"id": 1, "method": "elicitation/create", "params": {"mode": "odd"}})
        dispatcher.message({"id": 2, "method": "elicitation/create"})
        await channel.until_sent(2)
        answers = {message["id"]: message["error"] for message in channel.sent}
    assert answers[1] == {"code": -32602, "message": "unknown mode", "data": {"mode": "odd"}}
    assert answers[2]["code"] == -32603
    assert "secret" not in str(answers[2])
    assert kinds(dispatcher) == {"handler_failed": 1}


async def test_what_was_posted_goes_out_before_the_end() -> None:
    async with live() as (dispatcher, channel):
        dispatcher.message({"id": 1, "method": "ping"})
        await dispatcher.flush()
        assert channel.sent == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


@requirement("QST-5")
async def test_who_still_asks_at_the_end_gets_the_last_word_and_who_took_it_back_nothing() -> None:
    entered = anyio.Semaphore(0)

    async def wait(params: JsonObject) -> JsonObject:
        entered.release()
        await anyio.sleep_forever()
        return {}

    farewells = {"elicitation/create": {"action": "cancel"}}
    handlers = {"elicitation/create": wait, "roots/list": wait}
    async with live(on_request=handlers, farewells=farewells) as (dispatcher, channel):
        for number, method in enumerate(("elicitation/create", "elicitation/create", "roots/list")):
            dispatcher.message({"id": number, "method": method})
            await entered.acquire()
        dispatcher.message({"method": "notifications/cancelled", "params": {"requestId": 1}})
        await dispatcher.flush()
        answers = {message["id"]: message for message in channel.sent}
        assert answers[0]["result"] == {"action": "cancel"}
        assert "ends this session" in answers[2]["error"]["message"]
        assert answers.keys() == {0, 2}
        assert channel.flushed
        dispatcher.message({"id": 3, "method": "elicitation/create"})
        assert (await channel.until_sent(3))["result"] == {"action": "cancel"}


@requirement("QST-5")
async def test_an_answer_that_was_given_already_is_not_replaced_by_the_last_word() -> None:
    entered, stored = anyio.Event(), anyio.Event()

    async def answered(params: JsonObject) -> JsonObject:
        with anyio.CancelScope(shield=True):  # as a fact that is being stored
            entered.set()
            await stored.wait()
        return {"action": "accept"}

    farewells = {"elicitation/create": {"action": "cancel"}}
    async with live(on_request={"elicitation/create": answered}, farewells=farewells) as (dispatcher, channel):
        dispatcher.message({"id": 1, "method": "elicitation/create"})
        await entered.wait()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(dispatcher.flush)
            await turns()
            stored.set()
        assert [message["result"] for message in channel.sent] == [{"action": "accept"}]


async def test_examples_are_short_printable_and_without_secrets() -> None:
    async with live(mask=lambda text: text.replace("token", "***")) as (dispatcher, _):
        dispatcher.diagnostic("noise", "\x1b[2J token " + "x" * 1000)
        dispatcher.diagnostic("noise", "\x1b[2J token " + "x" * 1000)
    (entry,) = dispatcher.diagnostics.report()
    assert (entry.kind, entry.count) == ("noise", 2)
    assert entry.last.startswith("\\x1b[2J *** xxx")
    assert len(entry.last) < 220
