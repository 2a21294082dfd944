"""naming: valid for every provider, and a function of the identity alone."""

import hashlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.catalog.naming import public_name as named
from tests.manifest import requirement

VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")
# Names made to be confused with each other: underscores at every seam, odd characters, long tails.
PIECES = st.lists(st.sampled_from(["a", "b", "_", "__", "-", ".", "é", "x" * 30, "\ud800", "A"]), max_size=5)
NAMES = st.one_of(PIECES.map("".join), st.text(max_size=80))


def public_name(server: str, tool: str) -> str:
    return named(server, tool).text


def digest(server: str, tool: str) -> str:
    return hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:8]


@requirement("CAT-4")
def test_an_ordinary_tool_has_its_plain_name() -> None:
    assert public_name("git", "git_status") == "mcp__git__git_status"
    assert public_name("my-server", "a__b") == "mcp__my-server__a__b"
    assert named("git", "git_status").why_not_plain is None


@requirement("CAT-4")
@pytest.mark.parametrize(
    ("server", "tool", "spelling"),
    [
        ("s", "get.user", "mcp__s__get_user"),
        ("s", "größe", "mcp__s__gr__e"),
        ("a__b", "c", "mcp__a__b__c"),
        ("a_", "b", "mcp__a___b"),
        ("a", "_b", "mcp__a___b"),
        ("s", "", None),
    ],
)
def test_a_digest_follows_where_the_plain_spelling_is_not_enough(server: str, tool: str, spelling: str | None) -> None:
    if spelling is None:
        assert public_name(server, tool) == "mcp__s__"  # an empty remote name is a bad tool, refused elsewhere
        return
    assert public_name(server, tool) == f"{spelling}_{digest(server, tool)}"
    assert named(server, tool).why_not_plain is not None


@requirement("CAT-4")
def test_sixty_four_characters_are_plain_and_one_more_is_cut_before_the_digest() -> None:
    fits, long = "t" * (64 - len("mcp__s__")), "t" * (65 - len("mcp__s__"))
    assert public_name("s", fits) == f"mcp__s__{fits}"
    assert public_name("s", long) == f"mcp__s__{'t' * 47}_{digest('s', long)}"


@requirement("CAT-4")
@settings(deadline=None)
@given(server=NAMES, tool=NAMES)
def test_every_public_name_is_valid_and_begins_as_promised(server: str, tool: str) -> None:
    name = public_name(server, tool)
    assert VALID.fullmatch(name)
    assert name.startswith("mcp__")
    assert public_name(server, tool) == name


@requirement("CAT-4")
@settings(deadline=None, max_examples=300)
@given(first=st.tuples(PIECES.map("".join), PIECES.map("".join)), second=st.tuples(PIECES.map("".join), NAMES))
def test_two_identities_made_to_be_confused_have_two_names(first: tuple[str, str], second: tuple[str, str]) -> None:
    if first != second:
        assert public_name(*first) != public_name(*second)


@requirement("CAT-4")
def test_all_ways_to_split_one_spelling_have_their_own_name() -> None:
    spelling = "a__b__c___d"
    splits = {(spelling[:at], spelling[at + 2 :]) for at in range(len(spelling) - 1) if spelling[at : at + 2] == "__"}
    assert len({public_name(*split) for split in splits}) == len(splits)
