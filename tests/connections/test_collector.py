"""The collector rests while something large grows, and only then."""

import gc
from collections.abc import Iterator

import pytest

from interlock.connections import lines
from interlock.connections.collector import Rest
from interlock.connections.lines import LARGE
from interlock.connections.slices import TURN, Turns
from interlock.vocabulary.slices import Sliced

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _left_as_it_was() -> Iterator[None]:
    gc.enable()  # a command that another test ran in this process may have left it off, and objects frozen
    gc.unfreeze()
    yield
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_it_rests_until_the_last_span_is_over_and_after_a_fault() -> None:
    rest = Rest()
    rest.begin()
    with pytest.raises(ValueError, match="mine"), rest.span():
        raise ValueError("mine")
    assert not gc.isenabled()
    rest.end()
    assert gc.isenabled()


def test_what_an_application_has_turned_off_stays_off() -> None:
    gc.disable()
    try:
        with Rest().span():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_an_application_has_frozen_stays_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with Rest().span():
            pass
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()


@pytest.mark.parametrize(("size", "rests"), [(LARGE - 3, False), (LARGE - 2, True)])
def test_it_rests_while_a_large_message_is_read(size: int, rests: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def loads(text: bytes) -> str:
        seen.append(not gc.isenabled())
        return text.decode()

    monkeypatch.setattr(lines.orjson, "loads", loads)
    lines.decode(b'"' + b"x" * size + b'"')
    assert seen == [rests]


async def test_work_of_many_turns_is_done_without_a_look() -> None:
    resting: list[bool] = []

    def work() -> Sliced[None]:
        for _ in range(5):
            resting.append(not gc.isenabled())
            yield

    times = iter(n * TURN for n in range(100))
    await Turns(clock=lambda: next(times)).do(work())
    assert resting == [False, True, True, True, True]
