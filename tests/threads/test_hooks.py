"""Hooks: block, rewrite, replace; and what their failure means."""

import asyncio
from typing import Any

import anyio
import pytest

from interlock.threads.hooks import Block, HookedCall, Hooks, Rewrite
from interlock.vocabulary.errors import NotPermitted
from interlock.vocabulary.tool import ToolResult
from tests.manifest import requirement
from tests.threads.fakes import text_result

pytestmark = pytest.mark.anyio

CALL = HookedCall(
    call_id="c1", turn_id="t1", server="git", tool="push", public_name="mcp__git__push", arguments={"branch": "main"}
)
RESULT = text_result("done")


@requirement("LIF-7")
async def test_hooks_run_in_their_order_and_see_what_came_before() -> None:
    async def first(call: HookedCall) -> Rewrite:
        return Rewrite({**call.arguments, "first": True})

    def second(call: HookedCall) -> Rewrite:
        return Rewrite({**call.arguments, "second": "first" in call.arguments})

    passed = await Hooks(before=(first, second, lambda call: None)).run_before(CALL)

    assert passed.arguments == {"branch": "main", "first": True, "second": True}
    assert CALL.arguments == {"branch": "main"}


@requirement("LIF-7")
async def test_a_hook_blocks_a_call_and_later_hooks_are_not_asked() -> None:
    seen: list[HookedCall] = []
    hooks = Hooks(before=(lambda call: Block("not today"), seen.append))

    with pytest.raises(NotPermitted, match="'mcp__git__push' was blocked: not today"):
        await hooks.run_before(CALL)
    assert seen == []


@requirement("LIF-7")
async def test_a_hook_replaces_output_and_the_next_one_sees_the_replacement() -> None:
    async def shout(call: HookedCall, result: ToolResult) -> ToolResult:
        return text_result(result.content[0]["text"].upper())

    hooks = Hooks(after=(shout, lambda call, result: text_result(result.content[0]["text"] + "!")))

    assert await hooks.run_after(CALL, RESULT) == text_result("DONE!")
    assert await Hooks(after=(lambda call, result: None,)).run_after(CALL, RESULT) == RESULT


async def hangs(*args: Any) -> Any:
    await anyio.sleep_forever()


def raises(*args: Any) -> Any:
    raise RuntimeError("boom")


def babbles(*args: Any) -> Any:
    return "yes"


async def waits_for_what_was_cancelled(*args: Any) -> Any:
    task = asyncio.ensure_future(anyio.sleep_forever())
    task.cancel()
    await task


@requirement("LIF-7")
@pytest.mark.parametrize(
    "hook", [hangs, raises, babbles, waits_for_what_was_cancelled, lambda call: Rewrite(["no object"])]
)  # type: ignore[arg-type] # what an application may pass
async def test_a_call_whose_hook_fails_is_not_sent(hook: Any) -> None:
    with pytest.raises(NotPermitted, match="was not sent: a hook before it"):
        await Hooks(before=(hook,), patience=0.01).run_before(CALL)


@requirement("LIF-7")
@pytest.mark.parametrize("hook", [hangs, raises, babbles, waits_for_what_was_cancelled])
async def test_output_whose_hook_fails_is_not_shown(hook: Any) -> None:
    secret = text_result("the password is swordfish")

    shown = await Hooks(after=(hook,), patience=0.01).run_after(CALL, secret)

    assert shown.is_error
    assert "withheld" in shown.content[0]["text"]
    assert "swordfish" not in shown.content[0]["text"]


def test_no_hooks_are_false() -> None:
    assert not Hooks()
    assert Hooks(before=(raises,))
    assert Hooks(after=(raises,))


@requirement("LIF-7")
@pytest.mark.parametrize(
    "run", [Hooks(before=(hangs,)).run_before, lambda call: Hooks(after=(hangs,)).run_after(call, RESULT)]
)
async def test_a_caller_that_is_cancelled_during_a_hook_stays_cancelled(run: Any) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await run(CALL)
    assert scope.cancelled_caught
