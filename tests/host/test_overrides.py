"""What one Thread has otherwise than the configuration: it holds over reloads, and leaves a running turn alone."""

import pytest

from interlock import Policy
from interlock.testing import Say, ScriptedModel
from interlock.vocabulary.overrides import ThreadOverrides
from tests.host.conftest import OpenHost, answering
from tests.host.test_host import Servers
from tests.host.test_reload import tools_of
from tests.manifest import requirement

pytestmark = pytest.mark.anyio

NEVER = ThreadOverrides(approval="never")


@requirement("CFG-6")
async def test_overrides_hold_over_a_reload_and_for_their_thread_only(open_host: OpenHost, servers: Servers) -> None:
    configs = servers(off={"tools": [answering("a", "1")]}, on={"tools": [answering("b", "2")]})
    overrides = ThreadOverrides(approval="never", servers={"off": False})
    async with open_host(configs) as host:
        thread, other = await host.start_thread(overrides=overrides), await host.start_thread()
        assert await tools_of(thread) == ["mcp__on__b"]
        assert await tools_of(other) == ["mcp__off__a", "mcp__on__b"]

        more = servers(added={"tools": [answering("c", "3")]})
        await host.reload({**configs, **more}, policy=Policy(store_answers=True))

        assert await tools_of(thread) == ["mcp__added__c", "mcp__on__b"]
        assert await tools_of(other) == ["mcp__added__c", "mcp__off__a", "mcp__on__b"]
        assert thread.snapshot.policy == Policy(approval="never", store_answers=True)
        assert other.snapshot.policy == Policy(store_answers=True)


async def test_a_running_turn_keeps_its_own_and_the_next_one_has_those_that_came_meanwhile(
    open_host: OpenHost, servers: Servers
) -> None:
    async with open_host(servers(s={"tools": [answering("a", "1")]})) as host:
        thread = await host.start_thread()
        async with thread.step():
            again = await host.resume_thread(
                thread.id, overrides=ThreadOverrides(full_access=True, servers={"s": False})
            )
            assert again is thread
            await host.reload(policy=Policy(store_answers=True))
            assert thread.snapshot.policy == Policy(store_answers=True)
            assert thread.next_policy == Policy(store_answers=True, full_access=True)
        assert await tools_of(thread) == []
        assert thread.snapshot.policy == Policy(store_answers=True, full_access=True)


async def test_a_turn_brings_overrides_that_a_refused_one_does_not(open_host: OpenHost) -> None:
    async with open_host({}, model=ScriptedModel(Say("one"))) as host:
        thread = await host.start_thread(overrides=ThreadOverrides(full_access=True))
        async with thread.step():
            with pytest.raises(Exception, match="is running"):
                await thread.start_turn("go", overrides=NEVER)
        assert thread.next_policy == Policy(full_access=True)
        turn = await thread.start_turn("go", overrides=NEVER)
        await turn.finished()
        assert thread.snapshot.policy == thread.next_policy == Policy(approval="never", full_access=True)


async def test_overrides_end_with_the_loaded_thread_and_a_fork_has_its_own(open_host: OpenHost) -> None:
    async with open_host({}, model=ScriptedModel(Say("one"))) as host:
        thread = await host.start_thread(overrides=NEVER)
        await (await thread.start_turn("go")).finished()
        fork = await host.fork_thread(thread.id, overrides=ThreadOverrides(full_access=True))
        assert fork.snapshot.policy == Policy(full_access=True)
        await thread.close()
        assert (await host.resume_thread(thread.id)).snapshot.policy == Policy()
