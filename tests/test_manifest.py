"""The manifest of promises and the tests agree, in both directions."""

import ast
import functools
import tomllib
from pathlib import Path

from tests.manifest import DELIVERED

TESTS = Path(__file__).parent


@functools.cache
def marked_ids() -> set[str]:
    """Every id that stands in a @requirement(...) of a test module."""
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "requirement":
                found |= {str(arg.value) for arg in node.args if isinstance(arg, ast.Constant)}
    return found


def promised_ids() -> set[str]:
    return set(tomllib.loads((TESTS / "requirements.toml").read_text(encoding="utf-8")))


def test_every_delivered_promise_has_a_test_that_names_it() -> None:
    assert sorted(set(DELIVERED) - marked_ids()) == []


def test_every_marked_id_is_a_promise() -> None:
    assert sorted((marked_ids() | set(DELIVERED)) - promised_ids()) == []
