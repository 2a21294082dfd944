"""Deadlines on a clock of the test's own, with all that can make them stand still."""

import asyncio
import gc
import heapq
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.connections import standstill
from interlock.connections.deadlines import Deadlines
from interlock.connections.standstill import Deadline, Spans
from interlock.connections.waiter import Waiter
from tests.manifest import requirement


@dataclass
class Timer:
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class Time:
    """An event loop's clock and timers, which go on only when the test says so."""

    now: float = 100.0
    timers: list[tuple[float, int, Timer, Callable[..., None]]] = field(default_factory=list)

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, call: Callable[..., None], **_: Any) -> Timer:
        timer = Timer()
        heapq.heappush(self.timers, (at, len(self.timers), timer, call))
        return timer

    def go_on(self, seconds: float) -> None:
        end, calls = self.now + seconds, 0
        while self.timers and self.timers[0][0] <= end:
            at, _, timer, call = heapq.heappop(self.timers)
            self.now = max(self.now, at)
            if not timer.cancelled:
                calls += 1
                assert calls < 50, "the timer runs in circles"
                call()
        self.now = end


@dataclass
class Person:
    standstill: Spans | None
    call_id: str = "c1"
    turn_id: str = "t1"

    async def answers(self, elicitations: Any) -> Any:
        raise NotImplementedError


class Future:
    """As much of a future as a waiter wants."""

    def __init__(self, loop: Time) -> None:
        self._loop = loop
        self.result: Any = None

    def get_loop(self) -> Time:
        return self._loop

    def done(self) -> bool:
        return self.result is not None

    def set_result(self, result: Any) -> None:
        self.result = result


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    clock = Time()
    monkeypatch.setattr(standstill, "now", clock.time)
    return clock


def waiting(time: Time, spans: Spans | None, timeout: float = 10.0) -> tuple[Waiter, list[float]]:
    """A request that waits, and when it expired."""
    expired: list[float] = []
    outcome = cast("asyncio.Future[Any]", Future(time))
    deadlines = Deadlines(outcome.get_loop())
    waiter = Waiter(
        1, "tools/call", outcome, timeout, deadlines, lambda _: expired.append(time.now), None, Person(spans)
    )
    return waiter, expired


@requirement("CON-11")
def test_a_deadline_moves_on_by_what_stood_still(time: Time) -> None:
    spans = Spans()
    waiter, expired = waiting(time, spans)
    waiter.run()
    time.go_on(9)
    with spans.span(), spans.span():
        time.go_on(1000)
    time.go_on(0.5)
    with spans.span():
        time.go_on(50)
        assert expired == []
    time.go_on(10)
    assert expired == [pytest.approx(100 + 10 + 1050)]


@requirement("CON-11")
def test_of_two_reasons_to_stand_still_at_once_the_time_counts_once(time: Time) -> None:
    spans = Spans()
    waiter, expired = waiting(time, spans)
    waiter.run()
    time.go_on(4)
    with spans.span():
        time.go_on(3)
        waiter.hold()
        time.go_on(3)
    time.go_on(3)
    waiter.run()
    time.go_on(20)
    assert expired == [pytest.approx(100 + 10 + 9)]


@requirement("CON-11")
def test_a_settled_request_does_not_expire_when_time_goes_on_again(time: Time) -> None:
    spans = Spans()
    waiter, expired = waiting(time, spans)
    waiter.run()
    with spans.span():
        time.go_on(20)  # it was looked at, and waits for the end of the standstill
        waiter.settle({})
        waiter.stop()
    time.go_on(100)
    assert expired == []


@requirement("CON-11")
@given(
    st.lists(
        st.one_of(st.sampled_from(["hold", "run", "stand", "go"]), st.floats(0.0, 7.0).map(lambda s: round(s, 3))),
        max_size=40,
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_stands_still_when_exactly_the_active_time_counts(acts: list[str | float]) -> None:
    time, spans, active = Time(), Spans(), 0.0
    with pytest.MonkeyPatch.context() as patch, ExitStack() as last:
        patch.setattr(standstill, "now", time.time)
        waiter, expired = waiting(time, spans)
        waiter.run()
        held, standing = False, ExitStack()
        last.callback(lambda: standing.close())
        for act in acts:
            if isinstance(act, float):
                time.go_on(act)
                active += 0.0 if held or standing_still(spans) else act
            elif act == "hold" and not held:
                held = True
                waiter.hold()
            elif act == "run" and held:
                held = False
                waiter.run()
            elif act == "stand":
                standing.enter_context(spans.span())
            elif act == "go":
                standing.close()
            if expired:
                break
            assert active < 10 + 1e-6
        if expired:
            assert active > 10 - 1e-6
        elif not held:
            standing.close()
            time.go_on(10 - active + 1e-6)
            assert len(expired) == 1


def standing_still(spans: Spans) -> bool:
    return spans.at_end(lambda: None)


@requirement("CON-11")
def test_what_remains_of_a_deadline_leaves_out_questions_and_standstills_once_each(time: Time) -> None:
    spans = Spans()
    deadline = Deadline(time.now + 10, spans)
    time.go_on(2)
    with deadline.pausing():
        time.go_on(3)
        with spans.span():
            time.go_on(4)
    with spans.span():
        time.go_on(5)
    assert deadline.remaining() == pytest.approx(8)


def test_a_span_that_is_dropped_with_its_event_loop_does_nothing(time: Time) -> None:
    spans = Spans()
    span = spans.span()
    span.__enter__()
    del span
    gc.collect()
    assert spans.at_end(lambda: None)
