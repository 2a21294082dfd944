"""What the user allows.

Owns: approval modes and the frozen policy of a Host.
Never: decides a case; the pure rules that do are in `questions`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from interlock.vocabulary.json import JsonValue

ApprovalMode = Literal["auto", "prompt", "writes", "approve"]
"""Who is asked before a tool call (APR-1)."""

Decision = Literal["allow", "deny", "ask"]

ApprovalPolicy = Literal["on-request", "never"]
SandboxMode = Literal["read-only", "workspace-write", "danger-full-access"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppPolicy:
    """`[apps.CONNECTOR]`: whether the connector may be used at all."""

    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    """A text that matches the shell pattern (`*`, `?`, `[...]`; case counts, `*` crosses slashes)."""

    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """A text that is a path in or below `folder` once its `.` and `..` are worked out; links are not looked at."""

    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf:
    """A value that equals one of these JSON values."""

    values: tuple[JsonValue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The argument is there (`expected` True) or is not."""

    expected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """A number within bounds, which are included; None: no bound."""

    minimum: float | None = None
    maximum: float | None = None


ArgumentTest: TypeAlias = Like | Within | OneOf | Present | Between

Hint = Literal["read_only", "destructive", "idempotent", "open_world"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRule:
    """One `[[approval_rules]]` table (APR-4). It matches a call when all that it names does.

    `server` and `tool` are shell patterns over the identity (the remote name). `hints` want an annotation to be
    exactly that: an annotation that the server does not give is neither True nor False. `arguments` are tests by
    the path of a member, dots between levels. `source` is the place it came from.
    """

    action: Decision
    server: str = "*"
    tool: str = "*"
    hints: Mapping[Hint, bool] = field(default_factory=dict[Hint, bool])
    arguments: Mapping[str, ArgumentTest] = field(default_factory=dict[str, ArgumentTest])
    reason: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The answers that the configuration gives before anybody is asked.

    `approval` "never": nobody is asked. `full_access`: `sandbox_mode = "danger-full-access"`.
    `approval_rules`: the first that matches decides. `store_answers`: keep the content of accepted answers
    in the store (it may hold personal data). `allowed_approvals` and `allowed_sandboxes`: what Threads may have
    otherwise; None: anything.
    """

    approval: ApprovalPolicy = "on-request"
    mcp_elicitations: bool = True
    full_access: bool = False
    orchestrator_mcp_enabled: bool = True
    apps: Mapping[str, AppPolicy] = field(default_factory=dict[str, AppPolicy])
    apps_default: AppPolicy = AppPolicy()
    approval_rules: tuple[ApprovalRule, ...] = ()
    store_answers: bool = False
    allowed_approvals: tuple[ApprovalPolicy, ...] | None = None
    allowed_sandboxes: tuple[SandboxMode, ...] | None = None

    def allows_approval(self, approval: ApprovalPolicy) -> bool:
        return self.allowed_approvals is None or approval in self.allowed_approvals

    @property
    def allows_full_access(self) -> bool:
        return self.allowed_sandboxes is None or "danger-full-access" in self.allowed_sandboxes

    def app(self, connector_id: str) -> AppPolicy:
        return self.apps.get(connector_id, self.apps_default)
