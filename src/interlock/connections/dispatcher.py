"""Requests out, answers in: the JSON-RPC side of one connection.

Owns: request ids and who waits for which, deadlines and their pauses, cancellation, progress.
Never: knows eras, stamps `_meta`, or trusts the shape of anything that comes in.

It does what the SDK's JSONRPCDispatcher does, but a message costs no task, stream or queue: the transport calls
`message`, which resolves the future that a caller awaits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any, TypeAlias

import anyio
import anyio.abc

from interlock.connections.bell import Once
from interlock.connections.callbacks import callback_context
from interlock.connections.channel import Channel
from interlock.connections.deadlines import Deadlines
from interlock.connections.diagnostics import Diagnostics, printable
from interlock.connections.lines import MOST_TOGETHER
from interlock.connections.masking import Mask, masked_json
from interlock.connections.notifications import NotificationQueue
from interlock.connections.posting import Outbox
from interlock.connections.serving import OnRequest, ServerRequests
from interlock.connections.waiter import OnLateAnswer, RequestId, Waiter
from interlock.vocabulary.errors import Effect, ServerFailed, ServerFailure
from interlock.vocabulary.json import JsonObject, JsonValue, excerpt
from interlock.vocabulary.ports import OnProgress, Respondent
from interlock.vocabulary.tool import Progress

OnNotification: TypeAlias = Callable[[str, JsonObject], Awaitable[None] | None]
"""Called with method and params of a notification, one at a time, in the order of arrival. A function that returns
nothing is called at once, between the messages; what it returns to be awaited is awaited by one consumer, before which
at most 256 notifications wait and list_changed storms fold into one."""

MISTYPED_GRACE = 0.05
"""Seconds that an answer with id "7" for our request 7 waits for a proper one, which would win (CON-9). Servers that
turn ids into strings exist, so such an answer is better than none."""
END_WAIT = 2.0
"""Seconds that a request which met the first sign of an end waits for the end itself: more than any channel takes from
the one to the other. Then it can be asked again of the next session (CON-6)."""
ABANDON_TIMEOUT = 1.0
"""Seconds that a caller who gives up may be held by a transport that does not even take the notice of it."""
FLUSH_SECONDS = 1.0
"""For what is owed to a server before its channel is closed."""
LONGEST_REASON = 2000
"""Characters of a server's error message that go into ours."""


class _Started(anyio.abc.TaskStatus[None]):
    """Passes `started` on, and tells of it."""

    def __init__(self, outer: anyio.abc.TaskStatus[None], opened: Once) -> None:
        self._outer = outer
        self._opened = opened

    def started(self, value: None = None) -> None:
        self._opened.set()
        self._outer.started()


class Dispatcher:
    """One connection's requests. Made and used in one event loop; `message` and its like are for the Channel."""

    def __init__(
        self,
        channel: Channel,
        *,
        server: str,
        on_notification: OnNotification | None = None,
        on_request: Mapping[str, OnRequest] | None = None,
        farewells: Mapping[str, JsonObject] | None = None,
        mask: Mask = str,
    ) -> None:
        self.channel = channel
        self.diagnostics = Diagnostics(mask)
        self.requests = ServerRequests(on_request or {}, self._post, self.diagnostics, farewells or {})
        self.opened = Once()
        self.over = Once()
        self.failure: ServerFailed | None = None
        """Why the connection is over; None while it lives."""
        self._server = server
        self._mask = mask
        self._on_notification = on_notification
        self._loop = asyncio.get_running_loop()
        self._last_id = 0
        self._deadlines = Deadlines(self._loop)
        self._waiters: dict[RequestId, Waiter] = {}
        self._late: dict[RequestId, Waiter] = {}
        """Given up without a word to the server, so that an answer is still to be expected."""
        self._pauses = 0
        self._group: anyio.abc.TaskGroup | None = None
        self._notifications = NotificationQueue()
        self._delivering: Awaitable[None] | None = None
        """What the one consumer awaits; kept here so that it can be closed if the consumer never began."""
        self._outbox = Outbox(channel, self.diagnostics)

    def __repr__(self) -> str:
        state = "over" if self.failure else "live"
        return f"<Dispatcher {self._server!r} {state} in_flight={len(self._waiters)} pauses={self._pauses}>"

    # ------------------------------------------------------------------ life

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run the channel until it ends or this task is cancelled.

        Raises:
            ServerFailed: the channel could not be opened (effect none).
        """
        opened = _Started(task_status, self.opened)
        try:
            async with anyio.create_task_group() as self._group:
                try:
                    await self.channel.run(self, task_status=opened)
                except ServerFailed as error:
                    self.ended(error)
                except Exception as error:  # a fault of ours must end this connection, not its owner
                    self.ended(self._failed(f"broke its transport: {type(error).__name__}: {error}", "lost"))
                self._group.cancel_scope.cancel()
        finally:
            self._group = None
            if asyncio.iscoroutine(self._delivering):
                self._delivering.close()
            self.ended(self._failed("was closed", "unavailable"))
        if not self.opened.is_set() and self.failure is not None:
            raise self.failure

    async def flush(self, seconds: float = FLUSH_SECONDS) -> None:
        """Before the channel is closed: answer what the server still waits for, and see all answers off."""
        with anyio.move_on_after(seconds, shield=True):
            if self.failure is None:
                await self.requests.give_up()
                await self._outbox.drain()

    # ------------------------------------------------------------------ requests

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        timeout: float | None,
        on_progress: OnProgress | None = None,
        headers: Mapping[str, str] | None = None,
        request_id: RequestId | None = None,
        cancellable: bool = True,
        respondent: Respondent | None = None,
        on_late_answer: OnLateAnswer | None = None,
    ) -> JsonObject:
        """Send a request and return its result object as it came.

        `timeout` is seconds of active time; None waits for ever. With `on_progress` the request's id goes into
        `_meta` as progress token. `request_id` replaces the counted id. `cancellable` False: initialize.
        `respondent` answers what the server asks on the stream of this very request. With `on_late_answer` nobody
        tells the server when the request is given up, and an answer that comes then is no oddity.

        Raises:
            ServerFailed: rejected (the server's own error), protocol, deadline or lost (effect unknown), unavailable.
        """
        if self.failure is not None:
            raise self._over("none")
        if request_id is None:
            request_id = self._last_id = self._last_id + 1
        elif request_id in self._waiters:
            raise ValueError(f"request id {request_id!r} is in use")
        if on_progress is not None:
            params = {**(params or {}), "_meta": {**(params or {}).get("_meta", {}), "progressToken": request_id}}
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method}
        if params is not None:
            message["params"] = params
        future = self._loop.create_future()
        waiter = Waiter(
            request_id, method, future, timeout, self._deadlines, self._expire, on_progress, respondent, on_late_answer
        )
        self._waiters[request_id] = waiter
        if self._pauses:
            waiter.hold()
        else:
            waiter.run()
        try:
            await self.channel.send(message, headers=headers)
            outcome = await waiter.outcome
        except ServerFailed as error:  # not sent
            self._waiters.pop(request_id, None)
            raise await self._reason_not_sent(error, timeout) from error
        finally:
            waiter.stop()
            if self._given_up(request_id) is not None:  # our caller was cancelled
                await self._abandon(request_id, "the caller gave up", cancellable)
        if isinstance(outcome, ServerFailed):
            if outcome.kind == "deadline":
                await self._abandon(request_id, "timed out", cancellable)
            raise outcome
        return outcome

    async def _reason_not_sent(self, error: ServerFailed, timeout: float | None) -> ServerFailed:
        """A broken pipe is the first sign of an end whose reason (exit status, last words) is known a moment later."""
        if error.kind == "lost":
            await self.over.wait(self._loop.time() + (END_WAIT if timeout is None else min(END_WAIT, timeout)))
        return error if self.failure is None else self._over("none")

    async def notify(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        deadline: float = inf,
    ) -> None:
        """Send a notification, by `deadline` on the loop's clock. ServerFailed if that cannot be done."""
        if self.failure is not None:
            raise self._over("none")
        message = {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})
        if deadline == inf or not self.channel.sending_waits:
            await self.channel.send(message, headers=headers)
            return
        with anyio.CancelScope(deadline=deadline) as sending:
            await self.channel.send(message, headers=headers)
        if sending.cancelled_caught:
            raise self._failed(f"did not take {method} in time", "deadline")

    def stop_late_requests(self) -> None:
        """What was given up without a word shall not be carried on where the transport can stop it (HTTP)."""
        for request_id in tuple(self._late):
            self.channel.abandon(request_id)

    async def _abandon(self, request_id: RequestId, reason: str, cancellable: bool) -> None:
        """Tell the server that nobody waits any more, in the way of its transport (CON-10)."""
        if request_id in self._late or self.failure is not None:
            return
        if self.channel.abandon(request_id) or not cancellable:
            return
        params = {"requestId": request_id, "reason": reason}
        with anyio.move_on_after(ABANDON_TIMEOUT, shield=True):
            await self._outbox.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    # ------------------------------------------------------------------ deadlines

    def pause(self) -> None:
        """From now on deadlines stand still, until as many calls of `resume` as of this (CON-11)."""
        self._pauses += 1
        if self._pauses == 1:
            for waiter in self._waiters.values():
                waiter.hold()

    def resume(self) -> None:
        self._pauses -= 1
        if self._pauses == 0:
            for waiter in self._waiters.values():
                waiter.run()

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def _given_up(self, request_id: RequestId) -> Waiter | None:
        waiter = self._waiters.pop(request_id, None)
        if waiter is not None and waiter.on_late_answer is not None:
            self._late[request_id] = waiter
        return waiter

    def _expire(self, request_id: RequestId) -> None:
        waiter = self._given_up(request_id)
        if waiter is not None:
            text = f"did not answer {waiter.method} within {round(waiter.timeout or 0.0, 2):g} s"
            waiter.settle(self._failed(text, "deadline", "unknown"))

    # ------------------------------------------------------------------ what the channel tells (Receiver)

    def message(self, message: JsonValue, within: RequestId | None = None) -> None:
        if type(message) is dict:
            if "method" in message:
                self._take(message, within)
            elif _is_foreign(message.get("id"), within):
                self.diagnostic(
                    "foreign_answer", f"an answer to {excerpt(message['id'], 200)} in the response to {within!r}"
                )
            else:
                self._answer(message)
        elif type(message) is list:  # a batch of 2025-03-26
            if len(message) > MOST_TOGETHER:
                self.diagnostic("noise", f"a batch of {len(message)} messages, of which {MOST_TOGETHER} are read")
            for part in message[:MOST_TOGETHER]:
                if type(part) is dict:
                    self.message(part, within)
                else:
                    self.diagnostic("noise", excerpt(part, 1000))
        else:
            self.diagnostic("noise", excerpt(message, 1000))

    def failed(self, request_id: RequestId, error: ServerFailed) -> None:
        waiter = self._waiters.pop(request_id, None) or self._late.pop(request_id, None)
        if waiter is not None:
            waiter.settle(error)

    def ended(self, error: ServerFailed) -> None:
        if self.failure is not None:
            return
        self.failure = error
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters.values():
            waiter.settle(self._over("unknown"))
        self._deadlines.close()
        self.over.set()

    def diagnostic(self, kind: str, text: str) -> None:
        self.diagnostics.count(kind, text)

    # ------------------------------------------------------------------ answers

    def _answer(self, message: dict[str, Any]) -> None:
        request_id = message.get("id")
        waiter = None
        if isinstance(request_id, int | str) and type(request_id) is not bool:  # True would pass for 1
            waiter = self._waiters.pop(request_id, None) or self._late.pop(request_id, None)
        if waiter is None:
            self._answer_for_nobody(request_id, message)
            return
        result = message.get("result")
        if type(result) is dict and message.get("error") is None:
            waiter.settle(result)
        else:
            waiter.settle(self._unhappy(waiter.method, message))

    def _answer_for_nobody(self, request_id: Any, message: dict[str, Any]) -> None:
        if type(request_id) is str and request_id.isdecimal() and len(request_id) < 19:
            waiter = self._waiters.get(int(request_id))
            self.diagnostic("wrong_id_type", f"an answer to request {request_id} has its id as a string")
            if waiter is not None and not waiter.mistyped:
                waiter.mistyped = True
                proper = message | {"id": int(request_id)}
                context = callback_context()
                self._loop.call_later(MISTYPED_GRACE, self._answer_late, waiter, proper, context=context)
        elif type(request_id) is int and 0 < request_id <= self._last_id:
            self.diagnostic("late_or_repeated_answer", f"an answer to request {request_id}, which is settled")
        elif "id" in message or "result" in message or "error" in message:
            said = f": {excerpt(message['error'], 500)}" if message.get("error") else ""
            self.diagnostic("unknown_id", f"an answer with id {excerpt(request_id, 200)}{said}")
        else:
            self.diagnostic("noise", excerpt(message, 1000))

    def _answer_late(self, waiter: Waiter, message: dict[str, Any]) -> None:
        if self._waiters.get(message["id"]) is waiter:
            self._answer(message)

    def _unhappy(self, method: str, message: dict[str, Any]) -> ServerFailed:
        """The error of an answer that has no usable result."""
        if message.get("error") is not None:
            return self._rejected(method, message["error"])
        shape = "a result that is no object" if "result" in message else "neither result nor error"
        return self._failed(f"answered {method} with {shape}", "protocol", "unknown")

    def _rejected(self, method: str, error: Any) -> ServerFailed:
        shaped = error if isinstance(error, dict) else {"message": error}
        code, said = shaped.get("code"), shaped.get("message")
        code = code if type(code) is int else None
        said = said if isinstance(said, str) else "" if said is None else excerpt(said, LONGEST_REASON)
        reason = printable(self._mask(said), LONGEST_REASON) or "it gave no reason"
        number = "" if code is None else f" (code {code})"
        return self._failed(
            f"refused {method}: {reason}{number}",
            "rejected",
            "unknown",
            rpc_code=code,
            rpc_data=masked_json(shaped.get("data"), self._mask),
            rpc_message=self._mask(said),
        )

    def _failed(self, text: str, kind: ServerFailure, effect: Effect = "none", **facts: Any) -> ServerFailed:
        return ServerFailed(f"server {self._server!r} {text}", server=self._server, kind=kind, effect=effect, **facts)

    def _over(self, effect: Effect) -> ServerFailed:
        """The end of the connection as the error of one request."""
        end = self.failure
        if end is None:
            raise AssertionError("the connection is not over")
        facts = {name: value for name, value in end.facts.items() if name not in ("server", "kind", "effect")}
        kind: ServerFailure = end.kind if effect == "none" or end.kind != "unavailable" else "lost"
        return ServerFailed(end.message, server=end.server, kind=kind, effect=effect, **facts)

    # ------------------------------------------------------------------ notifications and requests of the server

    def _take(self, message: dict[str, Any], within: RequestId | None) -> None:
        method, params = message["method"], message.get("params")
        if type(method) is not str:
            self.diagnostic("noise", excerpt(message, 1000))
            return
        if type(params) is not dict:
            params = {}
        if "id" in message:
            if self._group is not None:
                asked = self._waiters.get(within) if within is not None else None
                self.requests.take(
                    message["id"], method, params, self._group, respondent=asked.respondent if asked else None
                )
        elif method == "notifications/progress":
            self._progress(params)
        elif method == "notifications/cancelled":
            self._cancelled(params.get("requestId"))
        else:
            self._notification(method, params)

    def _cancelled(self, request_id: Any) -> None:
        if self.requests.enabled:
            self.requests.withdraw(request_id)
        elif isinstance(request_id, int | str) and self._is_subscription(request_id):
            self.failed(request_id, self._failed("ended the subscription", "lost"))

    def _is_subscription(self, request_id: RequestId) -> bool:
        """In 2026-07-28 a server may end its listen streams so, and nothing else (basic/patterns/cancellation): what
        it says of a call would leave us without an answer, and with a wrong word about its effect."""
        waiter = self._waiters.get(request_id)
        return waiter is not None and waiter.method == "subscriptions/listen"

    def _progress(self, params: dict[str, Any]) -> None:
        token = params.get("progressToken")
        waiter = self._waiters.get(token) if isinstance(token, int | str) and type(token) is not bool else None
        if waiter is None or waiter.on_progress is None:
            self.diagnostic("unknown_progress", f"progress for token {excerpt(token, 200)}")
            return
        progress = _progress(params)
        if progress is None:
            self.diagnostic("bad_progress", excerpt(params, 1000))
            return
        try:
            waiter.on_progress(progress)
        except (Exception, asyncio.CancelledError) as error:  # nothing is awaited here, so it is none of ours
            self.diagnostic("handler_failed", f"progress: {type(error).__name__}: {error}")

    def _notification(self, method: str, params: dict[str, Any]) -> None:
        if self._on_notification is None or self._group is None:
            return
        if self._delivering is not None:
            if not self._notifications.put(method, params):
                self.diagnostic("dropped_notification", f"{method}: too many wait for the host")
            return
        self._delivering = self._call_handler(method, params)
        if self._delivering is not None:
            self._group.start_soon(self._deliver, method)

    def _call_handler(self, method: str, params: JsonObject) -> Awaitable[None] | None:
        if self._on_notification is None:
            return None
        try:
            return self._on_notification(method, params)
        except (Exception, asyncio.CancelledError) as error:
            self.diagnostic("handler_failed", f"{method}: {type(error).__name__}: {error}")
            return None

    async def _deliver(self, method: str) -> None:
        """The one consumer; it lives while something waits."""
        while self._delivering is not None:
            try:
                await self._delivering
            except Exception as error:
                self.diagnostic("handler_failed", f"{method}: {type(error).__name__}: {error}")
            self._delivering = None
            while self._notifications and self._delivering is None:
                method, params = self._notifications.take()
                self._delivering = self._call_handler(method, params)

    def _post(self, message: JsonObject) -> None:
        if self._group is not None and self.failure is None:
            self._outbox.post(message, self._group)


def _is_foreign(request_id: Any, within: RequestId | None) -> bool:
    """Whether an answer came in the response to another request (specification 2025-11-25 basic/transports: a
    response holds the answer to its own request). Ids of another type are told apart by their text alone."""
    return within is not None and isinstance(request_id, int | str) and str(request_id) != str(within)


def _progress(params: Mapping[str, Any]) -> Progress | None:
    """A typed view of notifications/progress; None if `progress` is no number."""
    progress, total, message = params.get("progress"), params.get("total"), params.get("message")
    if isinstance(progress, bool) or not isinstance(progress, int | float):
        return None
    return Progress(
        progress=progress,
        total=total if isinstance(total, int | float) and not isinstance(total, bool) else None,
        message=message if isinstance(message, str) else None,
    )
