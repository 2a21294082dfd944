"""Kept results: fresh for as long as the server said, gone as soon as it says that they changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.connections.cache import LONGEST, MAXIMUM_RESULTS, MAXIMUM_WEIGHT, Cache
from tests.manifest import requirement

LIST = "tools/list"


def result(ttl: object = 1000, **members: object) -> dict[str, object]:
    return {"ttlMs": ttl, "cacheScope": "private", **members}


@requirement("CON-17")
def test_a_result_is_fresh_for_its_ttl_and_not_a_moment_longer() -> None:
    cache, kept = Cache(), result(1500)
    cache.put(LIST, {}, kept, 10.0)
    assert cache.get(LIST, {}, 11.4) is kept
    assert cache.get(LIST, {"cursor": "a"}, 11.4) is None
    assert cache.get("prompts/list", {}, 11.4) is None
    assert cache.get(LIST, {}, 11.5) is None
    assert len(cache) == 0


@requirement("CON-17")
@pytest.mark.parametrize("ttl", [None, 0, -1, "1000", True, [1], -(10**400)], ids=lambda ttl: repr(ttl)[:10])
def test_a_ttl_that_is_no_positive_number_keeps_nothing(ttl: object) -> None:
    cache = Cache()
    cache.put(LIST, {}, result(ttl), 0.0)
    assert len(cache) == 0


def test_a_stale_result_replaces_a_fresh_one() -> None:
    cache = Cache()
    cache.put(LIST, {}, result(1000), 0.0)
    cache.put(LIST, {}, result(0), 0.1)
    assert cache.get(LIST, {}, 0.2) is None


@pytest.mark.parametrize("ttl", [10**15, 1e300, 10**400], ids=["long", "float", "no float"])
def test_nothing_is_kept_for_longer_than_a_day(ttl: float) -> None:
    cache = Cache()
    cache.put(LIST, {}, result(ttl), 0.0)
    assert cache.get(LIST, {}, LONGEST - 1)
    assert cache.get(LIST, {}, LONGEST) is None


@requirement("CON-17")
def test_a_change_drops_all_pages_of_a_list_or_one_read() -> None:
    cache = Cache()
    for params in ({}, {"cursor": "a"}):
        cache.put(LIST, params, result(), 0.0)
    for uri in ("zoo://a", "zoo://b"):
        cache.put("resources/read", {"uri": uri}, result(), 0.0)
    cache.drop(LIST)
    cache.drop("resources/read", {"uri": "zoo://a"})
    assert len(cache) == 1
    assert cache.get("resources/read", {"uri": "zoo://b"}, 0.5)


@requirement("CON-17")
def test_the_result_of_a_call_is_never_kept() -> None:
    cache = Cache()
    cache.put("tools/call", {}, result(), 0.0)
    assert len(cache) == 0


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 4)), max_size=400))
def test_what_is_kept_is_bounded_in_number_and_weight(reads: list[tuple[int, int]]) -> None:
    cache = Cache()
    for number, megabytes in reads:
        content = {"uri": "zoo://a", "text": "x" * (megabytes * 1024 * 1024)}
        cache.put("resources/read", {"uri": str(number)}, result(contents=[content]), 0.0)
    assert len(cache) <= MAXIMUM_RESULTS
    assert cache.weight <= MAXIMUM_WEIGHT
    cache.drop("resources/read")
    assert (len(cache), cache.weight) == (0, 0)
