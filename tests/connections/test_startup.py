"""States, backoff and breaker: what may follow what, and when a failing server is tried again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.connections.startup import MOVES, Backoff, Breaker, IllegalMove, Recovery, State
from interlock.vocabulary.server import ServerStatus
from tests.manifest import requirement

S = ServerStatus
statuses = st.sampled_from(list(ServerStatus))
randomness = st.floats(min_value=0, max_value=1, exclude_max=True)

WALKS = [
    (S.NOT_STARTED, S.STARTING, S.READY, S.CLOSED),
    (S.NOT_STARTED, S.STARTING, S.READY, S.FAILED, S.STARTING, S.READY),
    (S.NOT_STARTED, S.STARTING, S.FAILED, S.STARTING),
    (S.NOT_STARTED, S.STARTING, S.CANCELLED),
    (S.NOT_STARTED, S.STARTING, S.AUTHENTICATION_REQUIRED, S.STARTING),
]


@requirement("CON-16")
@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: "-".join(status.value for status in walk))
def test_the_walks_of_the_table_are_allowed(walk: tuple[ServerStatus, ...]) -> None:
    state = State()
    for at, status in enumerate(walk[1:], 1):
        state = state.moved(status, at=float(at), reason="because")
    assert (state.status, state.since, state.reason) == (walk[-1], len(walk) - 1.0, "because")


@given(start=statuses, goal=statuses)
def test_an_illegal_move_raises_and_changes_nothing(start: ServerStatus, goal: ServerStatus) -> None:
    state = State(status=start, reason="old", since=1.0)
    if goal in MOVES[start]:
        assert state.moved(goal, at=2.0).status is goal
    else:
        with pytest.raises(IllegalMove, match=goal.value):
            state.moved(goal, at=2.0)
    assert state == State(status=start, reason="old", since=1.0)


def test_nothing_follows_a_state_that_is_over() -> None:
    over = {status for status in ServerStatus if State(status=status).over}
    assert over == {S.CANCELLED, S.CLOSED, S.DISABLED}


@given(attempt=st.integers(0, 10_000), random=randomness)
def test_a_delay_lies_between_half_of_the_doubled_one_and_the_limit(attempt: int, random: float) -> None:
    whole = min(30.0, 0.5 * 2.0 ** min(attempt, 20))
    assert whole / 2 <= Backoff().delay(attempt, random) <= whole


def test_delays_double_from_half_a_second_to_half_a_minute() -> None:
    assert [Backoff().delay(attempt, 1.0) for attempt in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]


def breaker_after(*times: float) -> Breaker:
    breaker = Breaker()
    for time in times:
        breaker = breaker.failed(time)
    return breaker


def test_the_breaker_opens_at_the_fifth_failure_within_a_minute() -> None:
    assert breaker_after(0, 10, 20, 30).wait(31) == 0
    assert breaker_after(0, 10, 20, 30, 40).wait(41) == 59


def test_failures_that_are_a_minute_apart_do_not_add_up() -> None:
    assert breaker_after(0, 10, 20, 30, 60).wait(61) == 0


def test_the_breaker_is_half_open_after_a_minute_and_one_failure_opens_it_again() -> None:
    opened = breaker_after(0, 1, 2, 3, 4)
    assert opened.wait(64) == 0
    again = opened.failed(70)
    assert again.wait(71) == 59


def test_a_recovered_breaker_has_forgotten() -> None:
    assert breaker_after(0, 1, 2, 3, 4).recovered() == Breaker()


@given(st.lists(st.floats(0, 1000), max_size=40))
def test_the_breaker_keeps_no_more_failures_than_it_needs(gaps: list[float]) -> None:
    now, breaker = 0.0, Breaker()
    for gap in gaps:
        now += gap
        breaker = breaker.failed(now)
    assert len(breaker.failures) <= breaker.threshold


def test_a_server_that_dies_after_each_handshake_waits_longer_each_time() -> None:
    recovery, delays, now = Recovery(), [], 0.0
    for _ in range(4):
        recovery = recovery.failed(now, lived=0.1)
        delays.append(recovery.delay(now, 1.0))
        now += delays[-1]
    assert delays == [0.5, 1, 2, 4]
    assert recovery.failed(now, lived=0.1).delay(now, 1.0) == 60
    assert recovery.failed(now, lived=0.1).given_up


def test_a_long_life_ends_the_row_of_failures() -> None:
    recovery = Recovery()
    for time in range(5):
        recovery = recovery.failed(float(time))
    assert recovery.failed(1000.0, lived=600.0).delay(1000.0, 1.0) == 0.5


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 200), randomness), min_size=1, max_size=30))
def test_the_next_try_is_never_further_away_than_the_breaker_s_rest(lives: list[tuple[float, float, float]]) -> None:
    recovery, now = Recovery(), 0.0
    for gap, lived, random in lives:
        now += gap
        recovery = recovery.failed(now, lived=lived)
        assert 0 < recovery.delay(now, random) <= recovery.breaker.rest + 1e-9 * now
