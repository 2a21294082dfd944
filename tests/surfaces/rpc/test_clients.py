"""Clients that other people wrote for this wire, unchanged (RPC-7)."""

from pathlib import Path
from typing import Any

import pytest
from codex_agent_sdk import AppServerClient, AppServerConfig

from tests.manifest import requirement
from tests.surfaces.rpc.programs import INTERLOCK, configured

pytestmark = pytest.mark.anyio


@requirement("RPC-7", "RPC-5")
async def test_a_published_client_runs_a_turn_answers_and_reads_it_back_after_a_restart(tmp_path: Path) -> None:
    async with configured(tmp_path) as home:
        config = AppServerConfig(codex_bin=str(INTERLOCK), env=home.environment, startup_timeout=45)
        asked: list[object] = []

        async def answer(request: object) -> object:
            asked.append(request)
            return {"action": "accept", "content": {"name": "Ada"}}

        async with AppServerClient(config) as client:
            await client.initialize()
            client.register_server_request_handler("mcpServer/elicitation/request", answer)
            thread_id = (await client.thread_start()).thread.id
            turn = await client.turn_start(thread_id=thread_id, input="call it")
            completion = await client.wait_for_turn_completed(thread_id=thread_id, turn_id=turn.turn.id)
            assert completion.status == "completed"
            assert len(asked) == 1

        async with AppServerClient(config) as client:
            await client.initialize()
            read = await client.thread_read(thread_id=thread_id, include_turns=True)
            items: list[Any] = [item.root for item in read.thread.turns[0].items]
            assert [item.type for item in items] == ["userMessage", "mcpToolCall", "agentMessage"]
            assert "Ada" in str(items[1].result)
            assert items[2].text == "All done"
            await client.thread_resume(thread_id=thread_id)
            await client.thread_set_name(thread_id=thread_id, name="a talk")
            (listed,) = (await client.thread_list()).data
            assert (listed.id, listed.name) == (thread_id, "a talk")
