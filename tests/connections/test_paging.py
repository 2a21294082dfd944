"""PageWalk: every page once, and an end to every listing."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.connections.paging import MAXIMUM_CURSOR_BYTES, MAXIMUM_ITEMS, MAXIMUM_PAGES, PageWalk
from interlock.vocabulary.errors import ServerFailed
from tests.manifest import requirement

START = PageWalk(server="docs", method="tools/list")


def walked(*cursors: str | None, count: int = 1) -> PageWalk:
    walk = START
    for cursor in cursors:
        walk = walk.fed(count, cursor)
    return walk


@requirement("CAT-1")
@pytest.mark.parametrize("cursors", [(None,), ("a", None), ("a", "b", "c", None), ("", None), ("", "a", None)])
def test_a_listing_ends_at_a_missing_cursor(cursors: tuple[str | None, ...]) -> None:
    walk = walked(*cursors)
    assert walk.done
    assert (walk.pages, walk.items) == (len(cursors), len(cursors))


@requirement("CAT-1")
def test_the_next_page_is_asked_for_with_the_cursor_as_it_came() -> None:
    assert walked("next/é==").cursor == "next/é=="
    assert walked("").cursor == ""
    assert not walked("").done


@requirement("CAT-1")
@pytest.mark.parametrize("cursors", [("", ""), ("", "a", "")])
def test_an_empty_cursor_that_comes_back_means_the_end(cursors: tuple[str, ...]) -> None:
    walk = walked(*cursors)
    assert walk.done
    assert walk.cursor is None


@requirement("CAT-1")
@pytest.mark.parametrize("cursors", [("a", "a"), ("a", "b", "a"), ("", "x", "y", "x")])
def test_a_cursor_that_came_before_refuses_the_listing(cursors: tuple[str, ...]) -> None:
    before = walked(*cursors[:-1])
    kept = before
    with pytest.raises(ServerFailed, match="came twice") as failed:
        before.fed(1, cursors[-1])
    assert failed.value.kind == "protocol"
    assert before == kept


@requirement("CAT-1")
def test_a_hundred_pages_are_read_and_the_next_one_refuses_the_listing() -> None:
    almost = walked(*(str(number) for number in range(MAXIMUM_PAGES - 1)))
    assert almost.fed(1, None).done
    with pytest.raises(ServerFailed, match="more than 100 pages"):
        almost.fed(1, "one more")


@requirement("CAT-1")
def test_a_hundred_thousand_items_are_read_and_one_more_refuses_the_listing() -> None:
    assert START.fed(MAXIMUM_ITEMS, None).done
    with pytest.raises(ServerFailed, match="more than 100,000 items"):
        START.fed(MAXIMUM_ITEMS, "a").fed(1, None)


@requirement("CAT-1")
def test_a_cursor_over_64_kib_of_utf_8_refuses_the_listing() -> None:
    assert START.fed(0, "x" * MAXIMUM_CURSOR_BYTES).cursor
    with pytest.raises(ServerFailed, match="64 KiB"):
        START.fed(0, "é" * (MAXIMUM_CURSOR_BYTES // 2 + 1))


@requirement("CAT-1")
@pytest.mark.parametrize("cursor", [0, False, 7, ["a"], {"c": 1}])
def test_a_cursor_that_is_no_string_refuses_the_listing(cursor: object) -> None:
    with pytest.raises(ServerFailed, match="not a string"):
        START.fed(1, cursor)


@requirement("CAT-1")
@given(st.lists(st.tuples(st.integers(0, 3000), st.sampled_from([None, "", "a", "b"]) | st.text(max_size=3))))
def test_whatever_a_server_says_a_walk_ends_within_its_bounds(pages: list[tuple[int, str | None]]) -> None:
    walk, asked = START, [START.cursor]
    with suppress(ServerFailed):
        for count, cursor in pages:
            if walk.done:
                break
            walk = walk.fed(count, cursor)
            if not walk.done:
                asked.append(walk.cursor)
    assert walk.pages <= MAXIMUM_PAGES
    assert walk.items <= MAXIMUM_ITEMS
    assert len(asked) == len(set(asked))
