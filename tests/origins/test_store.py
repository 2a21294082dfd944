"""What is remembered of completed calls, and how it is forgotten."""

from typing import Any

import pytest

from interlock.origins.store import BYTES_LIMIT, MAXIMUM_ORIGINS, MAXIMUM_TURNS, Origin, Origins
from interlock.vocabulary.event import CallEnded, Event, StoredEvent, ThreadCompacted, ThreadRolledBack, TurnStarted
from interlock.vocabulary.item import McpToolCallItem
from tests.manifest import requirement


def call(call_id: str = "c1", turn_id: str = "t1", **facts: Any) -> CallEnded:
    """A completed call that makes an origin, unless `facts` say otherwise."""
    described: dict[str, Any] = {
        "status": "completed",
        "arguments": {},
        "connector_id": "calendar",
        "mcp_app_resource_uri": "ui://week",
        **facts,
    }
    item = McpToolCallItem(id=call_id, server="codex_apps", tool="show", public_name="p", **described)
    return CallEnded(turn_id=turn_id, step_id="s", item=item, effect="done")


def origins(*events: Event) -> Origins:
    followed = Origins()
    for sequence, event in enumerate(events, 1):
        followed.observe(StoredEvent(thread_id="a", sequence=sequence, at=0, event=event))
    return followed


def known(followed: Origins) -> list[str]:
    return [origin.call_id for origin in followed.all]


@requirement("ORI-1")
def test_a_completed_call_with_connector_and_resource_is_an_origin() -> None:
    followed = origins(TurnStarted(turn_id="t1"), call(link_id="work", arguments={"link_id": "work"}))
    assert followed.find("c1") == Origin(
        server="codex_apps",
        call_id="c1",
        turn_id="t1",
        tool="show",
        connector_id="calendar",
        link_id="work",
        uri="ui://week",
        ambiguous_account=False,
    )
    assert followed.find("c2") is None


@requirement("ORI-1", "LIF-2")
@pytest.mark.parametrize(
    "facts", [{"status": "failed"}, {"status": "in_progress"}, {"connector_id": None}, {"mcp_app_resource_uri": None}]
)
def test_nothing_else_is_an_origin(facts: dict[str, Any]) -> None:
    assert known(origins(call(**facts))) == []


@requirement("ORI-3")
@pytest.mark.parametrize(
    ("link", "arguments", "ambiguous"),
    [
        ("work", {"link_id": "home"}, True),
        (None, {"link_id": "home"}, True),
        ("work", {"link_id": "work"}, False),
        ("work", {"link_id": " "}, False),
        ("work", {"link_id": 7}, False),
        ("work", {}, False),
        ("work", "not an object", False),
    ],
)
def test_a_link_that_contradicts_the_tools_own_makes_the_account_ambiguous(
    link: str | None, arguments: Any, ambiguous: bool
) -> None:
    (origin,) = origins(call(link_id=link, arguments=arguments)).all
    assert origin.ambiguous_account is ambiguous


@requirement("ORI-2")
def test_the_oldest_origins_and_turns_go_first() -> None:
    events: list[Event] = []
    for number in range(MAXIMUM_TURNS + 2):
        events += [TurnStarted(turn_id=f"t{number}"), call(f"c{number}", f"t{number}")]
    followed = origins(*events)
    assert known(followed) == [f"c{number}" for number in range(2, MAXIMUM_ORIGINS + 2)]
    assert followed.checkpoint()["turns"] == [f"t{number}" for number in range(2, MAXIMUM_TURNS + 2)]


@requirement("ORI-2")
def test_an_origin_over_the_bound_is_not_stored_and_takes_the_one_of_its_id_along() -> None:
    room = BYTES_LIMIT - len("c1" + "t1" + "show" + "calendar")
    assert known(origins(call(mcp_app_resource_uri="é" * (room // 2)))) == ["c1"]
    assert known(origins(call(), call(mcp_app_resource_uri="é" * (room // 2) + "xx"))) == []


@requirement("ORI-2")
def test_the_same_call_id_replaces() -> None:
    followed = origins(call(), call("c2"), call(mcp_app_resource_uri="ui://month"))
    assert known(followed) == ["c2", "c1"]
    assert [origin.uri for origin in followed.all] == ["ui://week", "ui://month"]


@requirement("ORI-6")
def test_a_rollback_drops_turns_from_the_back_with_their_origins() -> None:
    turns = [TurnStarted(turn_id=f"t{number}") for number in range(3)]
    events = [event for number, turn in enumerate(turns) for event in (turn, call(f"c{number}", f"t{number}"))]
    assert known(origins(*events, ThreadRolledBack(turns=1))) == ["c0", "c1"]
    assert known(origins(*events, ThreadRolledBack(turns=2))) == ["c0"]
    assert known(origins(*events, ThreadRolledBack(turns=1), ThreadRolledBack(turns=1))) == ["c0"]


@requirement("ORI-6")
def test_a_rollback_drops_origins_of_no_turn_and_everything_when_no_turn_is_left() -> None:
    unknown = {"origins": [{**written(), "call_id": "c9"}], "turns": ["t1", "t2"]}
    followed = origins(ThreadCompacted(summary="", entries=(), origins=unknown), call("c1", "t1"))
    assert known(followed) == ["c9", "c1"]
    followed.observe(StoredEvent(thread_id="a", sequence=3, at=0, event=ThreadRolledBack(turns=1)))
    assert known(followed) == ["c1"]
    assert known(origins(TurnStarted(turn_id="t1"), call("c1", "another"), ThreadRolledBack(turns=1))) == []


def written(**members: Any) -> dict[str, Any]:
    """An origin of a checkpoint."""
    return {
        "call_id": "c1",
        "tool": "show",
        "connector_id": "calendar",
        "uri": "ui://week",
        "ambiguous_account": False,
        **members,
    }


def restored(checkpoint: Any) -> Origins:
    """What a Thread has that knew an origin before it met the checkpoint."""
    return origins(
        TurnStarted(turn_id="t0"), call("c0", "t0"), ThreadCompacted(summary="", entries=(), origins=checkpoint)
    )


@requirement("ORI-7")
def test_a_checkpoint_gives_back_what_was_and_later_events_follow() -> None:
    before = origins(TurnStarted(turn_id="t1"), call(link_id="work"), TurnStarted(turn_id="t2"), call("c2", "t2"))
    checkpoint = before.checkpoint()
    after = restored(checkpoint)
    assert after.all == before.all
    assert after.checkpoint() == checkpoint
    assert checkpoint["current_turn_id"] == "t2"
    after.observe(StoredEvent(thread_id="a", sequence=9, at=0, event=ThreadRolledBack(turns=1)))
    assert known(after) == ["c1"]


@requirement("ORI-7")
def test_an_origin_without_a_server_is_of_codex_apps() -> None:
    followed = restored({"origins": [written()], "turns": []})
    assert [origin.server for origin in followed.all] == ["codex_apps"]


@requirement("ORI-7")
@pytest.mark.parametrize(
    "checkpoint",
    [
        {"origins": [written(call_id=str(number)) for number in range(MAXIMUM_ORIGINS + 1)], "turns": []},
        {"origins": [written()], "turns": [str(number) for number in range(MAXIMUM_TURNS + 1)]},
        {"origins": [written()], "turns": ["t" * (BYTES_LIMIT + 1)]},
        {"origins": [written()], "turns": [], "current_turn_id": "t" * (BYTES_LIMIT + 1)},
        {"origins": [written(), written(call_id="c2", uri="u" * BYTES_LIMIT)], "turns": []},
        {"origins": [written(), written(call_id="c2", connector_id=" ")], "turns": []},
        {"origins": [written(), written(call_id=7)], "turns": []},
        {"origins": [written(link_id=7)], "turns": []},
        {"origins": [written(server=7)], "turns": []},
        {"origins": [written(ambiguous_account="no")], "turns": []},
        {"origins": [{"call_id": "c1"}], "turns": []},
        {"origins": ["c1"], "turns": []},
        {"origins": [written()], "turns": [7]},
        {"origins": [written()], "turns": None},
        {"origins": {"c1": written()}, "turns": []},
        {},
    ],
)
def test_a_checkpoint_that_is_not_as_it_must_be_empties_everything(checkpoint: dict[str, Any]) -> None:
    followed = restored(checkpoint)
    assert followed.all == ()
    assert followed.checkpoint() == {"origins": [], "turns": []}


def test_a_turn_id_over_the_bound_is_not_kept_and_a_rollback_forgets_more_rather_than_less() -> None:
    long = "t" * (BYTES_LIMIT + 1)
    followed = origins(TurnStarted(turn_id="t1"), call(), TurnStarted(turn_id=long), ThreadRolledBack(turns=1))
    assert known(followed) == []
