"""What one Thread has otherwise than the configuration says.

Owns: the overrides of a Thread, and how they lie over a policy, over servers and over one another.
Never: says who may set them; whoever starts a Thread may.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.server import ServerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadOverrides:
    """None leaves a member of the Policy to the configuration. `servers`: whether those, by name, are enabled.

    A name that the configuration does not know has no effect, until a reload brings a server of that name. They hold
    for as long as the Thread is loaded, over every reload; they are not stored. What a policy does not allow has no
    effect for as long as it does not.
    """

    approval: Literal["on-request", "never"] | None = None
    mcp_elicitations: bool | None = None
    full_access: bool | None = None
    servers: Mapping[str, bool] = field(default_factory=dict[str, bool])

    def over(self, earlier: "ThreadOverrides") -> "ThreadOverrides":
        """Both; where both say something, these hold."""
        return ThreadOverrides(
            approval=earlier.approval if self.approval is None else self.approval,
            mcp_elicitations=earlier.mcp_elicitations if self.mcp_elicitations is None else self.mcp_elicitations,
            full_access=earlier.full_access if self.full_access is None else self.full_access,
            servers={**earlier.servers, **self.servers},
        )

    def policy(self, configured: Policy) -> Policy:
        approval, full_access = self.approval, self.full_access
        if approval is None or not configured.allows_approval(approval):
            approval = configured.approval
        if full_access is None or (full_access and not configured.allows_full_access):
            full_access = configured.full_access
        elicitations = configured.mcp_elicitations if self.mcp_elicitations is None else self.mcp_elicitations
        return replace(configured, approval=approval, mcp_elicitations=elicitations, full_access=full_access)

    def refuse_beyond(self, configured: Policy) -> None:
        """InvalidRequest where something is wanted that would have no effect, because the policy does not allow it."""
        if self.approval is not None and not configured.allows_approval(self.approval):
            allowed = ", ".join(configured.allowed_approvals or ())
            raise InvalidRequest(
                f"the approval policy {self.approval!r} is not among the configuration's allowed_approval_policies: "
                f"{allowed}"
            )
        if self.full_access and not configured.allows_full_access:
            allowed = ", ".join(configured.allowed_sandboxes or ())
            raise InvalidRequest(f"full access is not among the configuration's allowed_sandbox_modes: {allowed}")

    def enabled_servers(self, configured: Iterable[ServerConfig]) -> tuple[ServerConfig, ...]:
        """All of them in their order, each enabled or not as is said here."""
        return tuple(self._enabled(config) for config in configured)

    def _enabled(self, config: ServerConfig) -> ServerConfig:
        enabled = self.servers.get(config.name, config.enabled)
        return config if enabled is config.enabled else replace(config, enabled=enabled)
