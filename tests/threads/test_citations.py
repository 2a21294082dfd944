"""Hidden markup on its way through a turn: deltas, items, history, and the count of uses."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.memory.usage import Accounting
from interlock.stores import open_store
from interlock.testing import Fail, Say, ScriptedModel
from interlock.vocabulary.conversation import AssistantEntry
from interlock.vocabulary.errors import StorageFailed
from interlock.vocabulary.event import ThreadStarted, TurnEnded
from interlock.vocabulary.item import AgentMessageItem
from interlock.vocabulary.memory import MemoryUse
from interlock.vocabulary.notice import DeltaNotice, PlanNotice
from tests.manifest import requirement
from tests.threads.fakes import Ticks, snapshot
from tests.threads.room import TURN, Room, open_room

pytestmark = pytest.mark.anyio

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "memory" / "vectors" / "memory_citations.json").read_text()
)
CITED = "<oai-mem-citation><rollout_ids>\nold\n</rollout_ids></oai-mem-citation>"
PLANNED = "Before\n<proposed_plan>\n1. do it\n</proposed_plan>\nafter"


def deltas(room: Room) -> list[str]:
    return [notice.text for notice in room.notices if isinstance(notice, DeltaNotice)]


def messages(room: Room) -> list[AgentMessageItem]:
    items = [item for turn in room.journal.state.turns for item in turn.items]
    return [item for item in items if isinstance(item, AgentMessageItem)]


@requirement("MEM-1", "MEM-4")
@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['case']}, {v['chunking']}")
async def test_recorded_messages_leave_what_was_recorded(tmp_path: Path, vector: dict[str, Any]) -> None:
    streamed = vector["chunking"] != "none"
    piece = int(vector["chunking"].split()[0]) if streamed else 0
    async with open_room(tmp_path, snapshot()) as room:
        turn = await room.turn(ScriptedModel(Say(vector["model_text"], piece=piece)))
        await turn.run()
        (message,) = messages(room)

        assert message.text == vector["text"]
        if streamed:
            assert deltas(room) == vector["client_deltas"]
        recorded = vector["memoryCitation"]
        assert message.citation == (
            None if recorded is None else {"entries": recorded["entries"], "rolloutIds": recorded["threadIds"]}
        )
        assert room.journal.state.entries[-1] == AssistantEntry(text=vector["model_text"])
        assert room.counted == [tuple(recorded["threadIds"] if recorded is not None else ())]


@requirement("MEM-1")
async def test_a_partial_opener_that_ends_a_message_is_shown_with_its_last_delta(tmp_path: Path) -> None:
    async with open_room(tmp_path, snapshot()) as room:
        turn = await room.turn(ScriptedModel([Say("a <oai-", piece=3), Say("mem-citation> b", piece=5)]))
        await turn.run()

        assert deltas(room) == ["a ", "<oai-", "mem-c", "itati", "on> b"]
        assert [message.text for message in messages(room)] == ["a <oai-", "mem-citation> b"]


@requirement("MEM-2")
@pytest.mark.parametrize(("plan_mode", "visible"), [(True, "Before\nafter"), (False, PLANNED)])
async def test_plans_are_hidden_where_the_turn_says_so(tmp_path: Path, plan_mode: bool, visible: str) -> None:
    async with open_room(tmp_path, snapshot()) as room:
        turn = await room.turn(ScriptedModel(Say(PLANNED, piece=4)), plan_mode=plan_mode)
        await turn.run()

        assert messages(room)[0].text == "".join(deltas(room)) == visible
        plans = [notice for notice in room.notices if isinstance(notice, PlanNotice)]
        assert "".join(notice.text for notice in plans) == ("1. do it\n" if plan_mode else "")
        assert {notice.item_id for notice in plans} <= {messages(room)[0].id}
        assert room.journal.state.entries[-1] == AssistantEntry(text=PLANNED)


@requirement("MEM-4")
async def test_a_message_of_nothing_but_a_citation_is_one_message_and_no_last_message(tmp_path: Path) -> None:
    async with open_room(tmp_path, snapshot()) as room:
        turn = await room.turn(ScriptedModel([Say("said"), Say(CITED)]))
        await turn.run()
        result = await turn.finished()

        assert [message.text for message in messages(room)] == ["said", ""]
        assert result.last_message == "said"
        assert (await room.events())[-1] == TurnEnded(turn_id=TURN, status="completed", last_message="said")


@requirement("MEM-5")
async def test_a_message_that_was_finished_before_its_sampling_broke_off_is_counted(tmp_path: Path) -> None:
    async with open_room(tmp_path, snapshot()) as room:
        turn = await room.turn(ScriptedModel([Say(CITED), Fail()]))
        await turn.run()

        assert [list(ids) for ids in room.counted] == [["old"]]


@requirement("MEM-5")
async def test_uses_are_counted_in_the_store(tmp_path: Path) -> None:
    async with open_store(tmp_path / "events.db") as store:
        await store.append("old", [ThreadStarted()], after=0, at=0)
        await Accounting(store, Ticks()).count(("old", "unknown"))
        assert await store.memory_uses() == (MemoryUse(thread_id="old", uses=1, last_used_at=0),)


@requirement("MEM-5")
async def test_a_store_that_fails_tells_nobody() -> None:
    class Failing:
        asked = 0

        async def count_memory_uses(self, thread_ids: object, *, at: int) -> None:
            self.asked += 1
            raise StorageFailed("the disk is full")

        async def memory_uses(self, *, limit: int = 50) -> tuple[MemoryUse, ...]:
            return ()

    store = Failing()
    accounting = Accounting(store, Ticks())
    await accounting.count(("a",))
    await accounting.count(())
    assert store.asked == 1
