"""Server-sent events: the same events however the bytes are cut, and never more held than allowed."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.connections.event_stream import EventStream, ServerSentEvent
from tests.manifest import requirement


def events(*chunks: bytes, limit: int = 1000) -> list[ServerSentEvent]:
    stream = EventStream(limit)
    return [event for chunk in chunks for event in stream.feed(chunk)]


def message(data: bytes, name: str = "message") -> ServerSentEvent:
    return ServerSentEvent(name=name, data=data)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_each_kind_of_line_end_is_read(end: bytes) -> None:
    stream = EventStream(1000)
    got = stream.feed(
        end.join([b"event: ping", b"data: 1", b"data:2", b"data:  3", b"id: 7", b"retry: 1500", b"", b""])
    )
    got += stream.feed(b"data: next\n\n")
    assert got == [message(b"1\n2\n 3", "ping"), message(b"next")]
    assert stream.last_event_id == "7"
    assert stream.retry == 1.5


def test_comments_unknown_fields_and_a_byte_order_mark_are_not_events() -> None:
    assert events(b"\xef\xbb\xbf: hello\n\nfoo: bar\nbaz\n\ndata\n\n:\n\n") == [message(b"")]
    assert events(b"\xef\xbb\xbfdata: x\n\n") == [message(b"x")]


def test_the_id_of_an_event_that_was_cut_off_does_not_count() -> None:
    stream = EventStream(1000)
    stream.feed(b"id: 1\ndata: a\n\nid: 2\ndata: b\n")
    assert stream.last_event_id == "1"
    assert stream.end() == [message(b"b")]
    assert stream.last_event_id == "1"


def test_an_event_without_data_still_gives_its_id() -> None:
    stream = EventStream(1000)
    assert stream.feed(b"id: 9\n\n") == []
    assert stream.last_event_id == "9"


@pytest.mark.parametrize(
    "line", [b"retry: soon", b"retry: -1", b"retry:", b"retry: 1e3", b"id: a\0b", b"retry: 99999999999999999"]
)
def test_fields_with_values_that_the_standard_refuses_change_nothing(line: bytes) -> None:
    stream = EventStream(1000)
    stream.feed(line + b"\n\n")
    assert (stream.retry, stream.last_event_id) == (None, "")


def test_an_endless_retry_is_bounded() -> None:
    stream = EventStream(1000)
    stream.feed(b"retry: 999999999999\n")
    assert stream.retry == 3600


@requirement("CON-8")
def test_an_event_over_the_limit_is_told_once_and_the_next_one_is_read() -> None:
    stream = EventStream(10)
    got = [event for _ in range(50) for event in stream.feed(b"data: 0123456789"[:7])]
    assert got == [ServerSentEvent(too_large=True)]
    assert stream.feed(b"\ndata: more\ndata: of it\n\ndata: small\n\n") == [message(b"small")]


@requirement("CON-8")
def test_an_endless_line_or_comment_is_not_collected() -> None:
    stream = EventStream(100)
    for start in (b"data: ", b": ", b"unknown: "):
        stream.feed(start)
        for _ in range(1000):
            stream.feed(b"x" * 100)
        assert sum(map(len, stream._pieces)) <= 200
        stream.feed(b"\n\n")
    assert stream.feed(b"data: ok\n\n") == [message(b"ok")]


def test_many_short_data_lines_are_bounded_too() -> None:
    assert events(*[b"data:\n"] * 20, b"\n", limit=10) == [ServerSentEvent(too_large=True)]


def test_what_is_within_the_limit_passes_however_it_is_cut() -> None:
    text = b"data: 012345678\n\n"  # nine bytes and a line end
    assert (
        events(text, limit=16)
        == events(*[text[i : i + 1] for i in range(len(text))], limit=16)
        == [message(b"012345678")]
    )


def test_the_last_event_may_lack_its_blank_line() -> None:
    stream = EventStream(1000)
    assert stream.feed(b"data: {}") == []
    assert stream.end() == [message(b"{}")]
    assert stream.end() == []


lines = st.sampled_from(
    [
        *(b"data: one", b"data:two", b"data", b"event: ping", b"id: 5", b"id", b": comment", b":", b"", b""),
        *("data: 漢字 é".encode(), b"retry: 20", b"\xef\xbb\xbfdata: marked", b"data: \xff\xfe", b"foo: bar"),
    ]
)


@given(
    st.lists(st.tuples(lines, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=30),
    st.lists(st.integers(min_value=0, max_value=400), max_size=20),
)
def test_any_chunking_gives_the_same_events(script: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    text = b"".join(line + end for line, end in script)
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    whole, cut, bytewise = EventStream(1000), EventStream(1000), EventStream(1000)
    expected = whole.feed(text) + whole.end()
    got = [event for a, b in pairwise(places) for event in cut.feed(text[a:b])] + cut.end()
    single = [event for i in range(len(text)) for event in bytewise.feed(text[i : i + 1])] + bytewise.end()
    assert expected == got == single
    assert whole.last_event_id == cut.last_event_id == bytewise.last_event_id
    assert whole.retry == cut.retry == bytewise.retry


def test_a_byte_order_mark_stands_at_the_beginning_of_a_stream_and_nowhere_else() -> None:
    mark = "\ufeff".encode()
    assert events(mark + b"data: 1\n\n" + mark + b"data: 2\n\ndata: 3\n\n") == [message(b"1"), message(b"3")]
