"""Whether a tool call may go out.

Owns: the one place where a call is allowed or refused before its request is prepared (APR-3).
Never: asks anybody, or judges resource tools: they never enter approval (RES-9).
"""

from typing import Literal

from interlock.vocabulary.catalog import ToolEntry
from interlock.vocabulary.errors import NotPermitted
from interlock.vocabulary.policy import Decision, Policy
from interlock.vocabulary.server import ServerConfig

Approvals = Literal["allow", "deny"]
"""What becomes of a call that somebody would have to approve, as long as nobody can be asked."""


def decide(entry: ToolEntry, policy: Policy, config: ServerConfig) -> Decision:
    """What mode, annotations and policy say of a call of `entry`: "ask" where a person would have to."""
    mode = config.approval_mode(entry.tool.name)
    if mode == "approve" or (policy.approval == "never" and policy.full_access):
        return "allow"
    if mode != "prompt" and _reads_only(entry, destructive_asks=mode == "auto"):
        return "allow"
    return "deny" if policy.approval == "never" else "ask"


def permit(entry: ToolEntry, policy: Policy, config: ServerConfig, approvals: Approvals) -> None:
    """Return if the call may go out.

    Raises:
        NotPermitted: it may not; the sentence names the setting that would let it through.
    """
    decision = decide(entry, policy, config)
    if decision == "allow" or (decision == "ask" and approvals == "allow"):
        return
    reason = "approval_policy is 'never'" if decision == "deny" else "nobody can be asked"
    raise NotPermitted(
        f"tool {entry.tool.name!r} of server {entry.server!r} may not be called: it needs an approval and {reason}; "
        f"set approval_mode = 'approve' in [mcp_servers.{entry.server}.tools.{entry.tool.name}] to allow it",
        server=entry.server,
        tool=entry.tool.name,
    )


def _reads_only(entry: ToolEntry, *, destructive_asks: bool) -> bool:
    hints = entry.tool.annotations
    return hints.read_only_hint is True and not (destructive_asks and hints.destructive_hint is True)
