"""The codec: what was stored comes back, or it is said why not."""

from dataclasses import replace
from types import MappingProxyType
from typing import Any, get_args

import pytest
from hypothesis import given

from interlock.stores import codec
from interlock.stores.codec import Row
from interlock.vocabulary.errors import InvalidRequest, StorageFailed
from interlock.vocabulary.event import (
    CallStarted,
    Event,
    StepCaptured,
    ThreadArchived,
    ThreadNamed,
    ThreadStarted,
    TurnEnded,
)
from interlock.vocabulary.item import McpToolCallItem
from tests.manifest import requirement
from tests.stores.events import events


def call(arguments: Any, **members: Any) -> CallStarted:
    item = replace(McpToolCallItem(id="c", server="s", tool="t", public_name="p", arguments=arguments), **members)
    return CallStarted(turn_id="u", step_id="s", item=item)


def restored(event: Event) -> Event:
    return codec.decode("thread", 1, 0, codec.encode(event)).event


@requirement("HIS-2", "LIF-2")
@given(events)
def test_every_event_comes_back_as_it_was(event: Event) -> None:
    assert restored(event) == event
    assert repr(restored(event)) == repr(event)  # tells 1 from 1.0 and from true


@given(events)
def test_a_payload_is_text_that_every_database_takes(event: Event) -> None:
    payload = codec.encode(event).payload
    assert "\0" not in payload
    assert payload.encode("utf-8").decode() == payload


def test_every_kind_of_event_can_be_stored() -> None:
    assert set(codec.KINDS) == set(get_args(Event))
    assert len({kind.name for kind in codec.KINDS.values()}) == len(codec.KINDS)


@requirement("LIF-2")
def test_what_is_unknown_is_absent_and_not_null() -> None:
    assert codec.encode(ThreadStarted()).payload == "{}"
    assert codec.encode(call({"path": None})).payload == (
        '{"turn_id":"u","step_id":"s","item":{"id":"c","server":"s","tool":"t","public_name":"p",'
        '"arguments":{"path":null},"status":"in_progress"}}'
    )


def test_a_name_that_was_taken_away_is_stored_as_such() -> None:
    assert codec.encode(ThreadNamed(name=None)).payload == '{"name":null}'


def test_a_frozen_mapping_is_stored_as_an_object() -> None:
    arguments = MappingProxyType({"huge": 2**70, "inner": MappingProxyType({"path": "\ud800"})})
    assert restored(call(arguments)) == call({"huge": 2**70, "inner": {"path": "\ud800"}})


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def endless() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        pytest.param({"x": float("nan")}, "nan is not a JSON number", id="NaN"),
        pytest.param({"x": None, "y": [float("-inf")]}, "-inf is not a JSON number", id="infinity"),
        pytest.param({"x": {1: "one"}}, "an object has a key that is no string", id="key"),
        pytest.param({"x": {1, 2}}, "a set is no JSON value", id="set"),
        pytest.param(deep(100_000), "it is nested too deeply", id="deep"),
        pytest.param(endless(), "ircular", id="endless"),
        pytest.param(10**5000, "4300 digits", id="digits"),
    ],
)
def test_what_json_cannot_carry_is_refused_in_words(arguments: Any, reason: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot store the event 'call_started'") as refused:
        codec.encode(call(arguments))
    assert reason in refused.value.message


def wrong(event: Event, **members: Any) -> Event:
    """`event` with members that types would not allow."""
    changed: Event = replace(event, **members)
    return changed


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        pytest.param(wrong(call({}), turn_id=None), "None is not a text", id="text"),
        pytest.param(call({}, tool=7), "7 is not a text", id="member of a member"),
        pytest.param(call({}, duration=True), "True is not an integer", id="flag"),
        pytest.param(call({}, status="asleep"), "'asleep' is none of", id="word"),
        pytest.param(wrong(ThreadArchived(archived=True), archived=1), "1 is not true or false", id="number"),
        pytest.param(
            wrong(StepCaptured(turn_id="u", step_id="s", generation=1, revision=1), revision=1.0),
            "1.0 is not an integer",
            id="fraction",
        ),
    ],
)
def test_what_could_not_be_read_back_is_not_written(event: Event, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        codec.encode(event)


def test_deep_values_that_a_server_can_send_come_back() -> None:
    assert restored(call(deep(500))) == call(deep(500))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        pytest.param(Row("thread_dreamt", 1, "{}"), "kind 'thread_dreamt' is unknown", id="kind"),
        pytest.param(Row("turn_ended", 2, "{}"), "version 2", id="version"),
        pytest.param(Row("turn_ended", 1, '{"turn_id":"u"'), "payload is broken", id="cut"),
        pytest.param(Row("turn_ended", 1, ""), "payload is broken", id="empty"),
        pytest.param(Row("turn_ended", 1, "[]"), "not an object", id="array"),
        pytest.param(Row("turn_ended", 1, '{"turn_id":"u"}'), "member 'status' is missing", id="missing"),
        pytest.param(Row("turn_ended", 1, '{"turn_id":1,"status":"failed"}'), "1 is not a text", id="type"),
        pytest.param(Row("turn_ended", 1, '{"turn_id":"u","status":"asleep"}'), "'asleep' is none of", id="word"),
        pytest.param(Row("turn_ended", 1, '{"turn_id":"u","status":"failed","x":1}'), "'x' is unknown", id="member"),
        pytest.param(Row("usage_recorded", 1, '{"turn_id":"u","usage":{"input_tokens":NaN}}'), "NaN", id="NaN"),
        pytest.param(Row("message_completed", 1, '{"turn_id":"u","item":{"type":[]}}'), "type [] is none of", id="tag"),
        pytest.param(Row("entries_recorded", 1, '{"turn_id":"u","entries":{}}'), "not an array", id="entries"),
        pytest.param(Row("thread_named", 1, "[" * 100_000), "", id="deep"),
    ],
)
def test_a_row_that_cannot_be_read_names_its_place(row: Row, reason: str) -> None:
    with pytest.raises(StorageFailed) as failed:
        codec.decode("thread-7", 41, 0, row)
    assert failed.value.message.startswith("cannot read event 41 of thread 'thread-7': its")
    assert reason in failed.value.message
    assert (failed.value.facts["thread_id"], failed.value.facts["sequence"]) == ("thread-7", 41)


def test_an_error_in_the_depth_names_the_way_to_it() -> None:
    with pytest.raises(StorageFailed, match="member 'entries': member 'content': member 'text': 5 is not a text"):
        codec.decode(
            "t",
            1,
            0,
            Row(
                "entries_recorded",
                1,
                '{"turn_id":"u","entries":[{"type":"user","content":[{"type":"text","text":5}]}]}',
            ),
        )


def test_equal_events_have_equal_rows() -> None:
    event = TurnEnded(turn_id="u", status="completed")
    assert codec.encode(event) == codec.encode(TurnEnded(turn_id="u", status="completed"))
