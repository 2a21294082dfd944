"""json: one text for one value."""

from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.vocabulary.json import JsonValue, canonical, compact, excerpt, ordered
from tests.manifest import requirement

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def test_compact_keeps_order_and_characters() -> None:
    assert compact({"b": [1, 2.5, None], "a": "é\n"}) == '{"b":[1,2.5,null],"a":"é\\n"}'


def test_integers_over_64_bits_and_lone_surrogates_are_written_too() -> None:
    assert compact({"n": 2**70}) == '{"n":1180591620717411303424}'
    assert compact("\ud800é") == '"\\ud800\\u00e9"'
    assert compact(MappingProxyType({"a": (1,)})) == '{"a":[1]}'


@requirement("CAT-7")
@settings(deadline=None)
@given(value=st.dictionaries(st.text(max_size=5), VALUES))
def test_canonical_text_does_not_depend_on_the_order_of_members(value: dict[str, object]) -> None:
    assert canonical(dict(reversed(value.items()))) == canonical(value)


@settings(deadline=None)
@given(value=VALUES)
def test_an_ordered_copy_is_equal_and_sorted(value: object) -> None:
    copy = ordered(value)
    assert copy == value
    assert compact(copy) == canonical(value)


def test_an_ordered_copy_keeps_wide_integers() -> None:
    assert ordered({"maximum": 2**70}) == {"maximum": 2**70}


def test_what_is_no_json_or_too_deep_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="object is not JSON"):
        compact({"a": object()})
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ValueError, match="recursion"):
        compact(deep)


def test_an_excerpt_is_short_whatever_it_is_of() -> None:
    deep: JsonValue = []
    for _ in range(100_000):
        deep = [deep]
    assert excerpt(deep, 100) == "[[[[[…]]]]]"
    assert excerpt({"a": {"b": {"c": {"d": {}}}}}, 100) == "{'a': {'b': {'c': {'d': {}}}}}"
    assert excerpt(list(range(1_000_000)), 100) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …]"
    assert excerpt("x" * 1_000_000, 5) == "'xxxx"
    assert excerpt({"k" * 100: None}, 10) == "{'kkkkkkkk"
    assert [excerpt(value, 100) for value in (None, True, 1.5, -7)] == ["None", "True", "1.5", "-7"]
    assert excerpt(10**5000, 100) == "a huge number"
