"""The public face: few names, loaded when they are used."""

import subprocess
import sys

import pytest

import interlock

HEAVY = {"anyio", "mcp", "aiohttp", "sqlalchemy", "pydantic", "openai", "jsonschema_rs", "tomlkit"}


def test_there_are_at_most_twenty_public_names_and_each_can_be_had() -> None:
    assert len(interlock.__all__) <= 20
    for name in interlock.__all__:
        assert getattr(interlock, name) is not None
    assert dir(interlock) == interlock.__all__


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'interlock' has no attribute 'Hots'"):
        interlock.Hots  # noqa: B018 -- the point of the test


@pytest.mark.parametrize(
    "statement", ["import interlock", "import interlock; interlock.Policy, interlock.ServerFailed"]
)
def test_importing_the_package_loads_nothing_heavy(statement: str) -> None:
    code = f"{statement}\nimport sys\nprint(*sorted({HEAVY!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
