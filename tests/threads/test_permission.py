"""permit: what may go out before anybody can be asked."""

import pytest

from interlock.threads.permission import Approvals, decide, permit
from interlock.vocabulary.errors import NotPermitted
from interlock.vocabulary.policy import ApprovalMode, Policy
from interlock.vocabulary.tool import ToolAnnotations
from tests.threads.fakes import READ_ONLY, config, entry, tool

WRITES = ToolAnnotations()
FULL = Policy(approval="never", full_access=True)
NEVER = Policy(approval="never")


@pytest.mark.parametrize(
    ("mode", "annotations", "policy", "decision"),
    [
        ("auto", READ_ONLY, Policy(), "allow"),
        ("auto", WRITES, Policy(), "ask"),
        ("auto", ToolAnnotations(read_only_hint=True, destructive_hint=True), Policy(), "ask"),
        ("writes", ToolAnnotations(read_only_hint=True, destructive_hint=True), Policy(), "allow"),
        ("writes", WRITES, Policy(), "ask"),
        ("prompt", READ_ONLY, Policy(), "ask"),
        ("approve", WRITES, NEVER, "allow"),
        ("auto", WRITES, NEVER, "deny"),
        ("prompt", READ_ONLY, NEVER, "deny"),
        ("prompt", WRITES, FULL, "allow"),
        ("auto", WRITES, Policy(full_access=True), "ask"),
    ],
)
def test_mode_annotations_and_policy_decide(
    mode: ApprovalMode, annotations: ToolAnnotations, policy: Policy, decision: str
) -> None:
    server = config("git", default_tools_approval_mode=mode)

    assert decide(entry("git", tool("commit", annotations)), policy, server) == decision


@pytest.mark.parametrize(("policy", "approvals"), [(Policy(), "deny"), (NEVER, "deny"), (NEVER, "allow")])
def test_a_refusal_names_the_setting_that_would_let_the_call_through(policy: Policy, approvals: Approvals) -> None:
    with pytest.raises(NotPermitted) as refused:
        permit(entry("git", tool("commit", WRITES)), policy, config("git"), approvals)

    assert "approval_mode = 'approve' in [mcp_servers.git.tools.commit]" in refused.value.message


def test_a_mode_for_one_tool_holds_for_that_tool_alone() -> None:
    server = config("git", tool_approval_modes={"commit": "approve"})

    permit(entry("git", tool("commit", WRITES)), Policy(), server, "deny")
    with pytest.raises(NotPermitted):
        permit(entry("git", tool("push", WRITES)), Policy(), server, "deny")
    permit(entry("git", tool("push", WRITES)), Policy(), server, "allow")
