"""What the configuration allows threads to have otherwise than it says itself."""

from pathlib import Path

import pytest

from interlock.configuration.load import load
from interlock.vocabulary.policy import Policy
from tests.manifest import requirement


def policy_of(folder: Path, text: str) -> tuple[Policy, list[str]]:
    (folder / "config.toml").write_text(text, encoding="utf-8")
    configuration = load(home=folder, environment={})
    return configuration.policy, [problem.key for problem in configuration.problems]


@requirement("CFG-3")
@pytest.mark.parametrize(
    ("text", "approvals", "sandboxes", "warned"),
    [
        ("", None, None, []),
        ('allowed_approval_policies = ["untrusted", "on-request"]', ("on-request",), None, []),
        ('allowed_approval_policies = ["never", "on-request"]', ("never", "on-request"), None, []),
        ('allowed_sandbox_modes = ["read-only"]', None, ("read-only",), []),
        ('allowed_approval_policies = "never"', ("on-request",), None, ["allowed_approval_policies"]),
        ("allowed_approval_policies = []", ("on-request",), None, ["allowed_approval_policies"]),
        ('allowed_sandbox_modes = ["none", 1]', None, ("read-only",), ["allowed_sandbox_modes"]),
    ],
)
def test_limits_are_read_and_what_cannot_be_read_is_the_strictest(
    tmp_path: Path,
    text: str,
    approvals: tuple[str, ...] | None,
    sandboxes: tuple[str, ...] | None,
    warned: list[str],
) -> None:
    policy, problems = policy_of(tmp_path, text)
    assert (policy.allowed_approvals, policy.allowed_sandboxes, problems) == (approvals, sandboxes, warned)


@requirement("CFG-3")
def test_the_configurations_own_settings_are_held_to_its_limits(tmp_path: Path) -> None:
    text = """
approval_policy = "never"
sandbox_mode = "danger-full-access"
allowed_approval_policies = ["on-request"]
allowed_sandbox_modes = ["workspace-write"]
"""
    policy, problems = policy_of(tmp_path, text)
    assert (policy.approval, policy.full_access) == ("on-request", False)
    assert problems == ["approval_policy", "sandbox_mode"]
