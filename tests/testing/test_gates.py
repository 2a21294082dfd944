import anyio
import pytest

from interlock.testing import Gate, Sequencer

pytestmark = pytest.mark.anyio


async def test_a_gate_holds_until_it_is_opened_and_tells_that_it_was_reached() -> None:
    gate, passed = Gate("calls"), anyio.Event()

    async def held() -> None:
        await gate.wait()
        passed.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(held)
        await gate.reached()
        assert not passed.is_set()
        assert repr(gate) == "<Gate 'calls' held>"
        gate.open()
        await passed.wait()
    await gate.wait()


async def test_a_gate_that_nobody_opens_fails_the_wait_with_its_name() -> None:
    with pytest.raises(TimeoutError, match="the gate 'calls' was never opened"):
        await Gate("calls", patience=0.01).wait()
    with pytest.raises(TimeoutError, match="nobody came to the gate 'calls'"):
        await Gate("calls", patience=0.01).reached()


async def test_a_sequencer_lets_steps_of_several_tasks_happen_in_the_order_of_its_names() -> None:
    sequencer, seen = Sequencer("first", "second", "third"), list[str]()

    async def walk(*names: str) -> None:
        for name in names:
            await sequencer.step(name)
            seen.append(name)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(walk, "second")
        tasks.start_soon(walk, "first", "third")
    assert seen == ["first", "second", "third"]


async def test_a_sequencer_names_the_step_that_did_not_happen() -> None:
    sequencer = Sequencer("first", "second", patience=0.01)
    with pytest.raises(TimeoutError, match="the step 'first' did not happen before 'second'"):
        await sequencer.step("second")
    assert repr(sequencer) == "<Sequencer 0 of 2 steps happened: none>"


def test_a_sequence_with_a_name_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="a name of its own"):
        Sequencer("a", "a")
