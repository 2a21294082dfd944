"""What the user allows.

Owns: approval modes and the frozen policy of a Host.
Never: decides a case; the pure rules that do are in `questions`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

ApprovalMode = Literal["auto", "prompt", "writes", "approve"]
"""Who is asked before a tool call (APR-1)."""

Decision = Literal["allow", "deny", "ask"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppPolicy:
    """`[apps.CONNECTOR]`: whether the connector may be used at all."""

    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The answers that the configuration gives before anybody is asked.

    `approval` "never": nobody is asked. `full_access`: `sandbox_mode = "danger-full-access"`.
    """

    approval: Literal["on-request", "never"] = "on-request"
    mcp_elicitations: bool = True
    full_access: bool = False
    orchestrator_mcp_enabled: bool = True
    apps: Mapping[str, AppPolicy] = field(default_factory=dict[str, AppPolicy])
    apps_default: AppPolicy = AppPolicy()

    def app(self, connector_id: str) -> AppPolicy:
        return self.apps.get(connector_id, self.apps_default)
