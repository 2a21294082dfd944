"""Cited memories through a whole Host: the answer stands, the use is counted beside it."""

from pathlib import Path

import pytest

from interlock import Host
from interlock.testing import Say, ScriptedModel
from interlock.vocabulary.memory import MemoryUse
from tests.manifest import requirement

pytestmark = pytest.mark.anyio


@requirement("MEM-5")
async def test_an_answer_that_cites_an_old_thread_is_counted_for_it(tmp_path: Path) -> None:
    place = tmp_path / "interlock.db"
    async with Host(store=place) as host:
        old = (await host.start_thread()).id
    cited = f"yes<oai-mem-citation><thread_ids>\n{old}\nnobody\n</thread_ids></oai-mem-citation>"
    async with Host(store=place, model=ScriptedModel(Say(cited, piece=3))) as host:
        turn = await (await host.start_thread()).start_turn("do you remember?")
        assert (await turn.finished()).last_message == "yes"
    async with Host(store=place) as host:
        (use,) = await host.memory_uses()
    assert use == MemoryUse(thread_id=old, uses=1, last_used_at=use.last_used_at)
