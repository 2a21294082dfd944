"""What Threads may have otherwise than the configuration says.

Owns: reading `allowed_approval_policies` and `allowed_sandbox_modes`, and holding the configuration itself to them.
Never: takes a list that cannot be read for a permission.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

from interlock.vocabulary.policy import ApprovalPolicy, SandboxMode

APPROVALS: Final[Mapping[str, ApprovalPolicy]] = {
    "on-request": "on-request",
    "untrusted": "on-request",
    "on-failure": "on-request",
    "never": "never",
}
SANDBOXES: Final[Mapping[str, SandboxMode]] = {mode: mode for mode in get_args(SandboxMode)}


@dataclass(frozen=True, slots=True)
class Setting:
    """One top-level value and the file it won from."""

    value: Any
    file: Path


Warn = Callable[[Setting, str, str], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """None: anything is allowed. `warn` tells of the configuration's own settings that are not."""

    approvals: tuple[ApprovalPolicy, ...] | None
    sandboxes: tuple[SandboxMode, ...] | None
    warn: Callable[[str, str], None]

    def approval(self, own: ApprovalPolicy) -> ApprovalPolicy:
        if self.approvals is None or own in self.approvals:
            return own
        self.warn("approval_policy", f"is not among allowed_approval_policies; {self.approvals[0]!r} is used")
        return self.approvals[0]

    def full_access(self, own: bool) -> bool:
        if not own or self.sandboxes is None or "danger-full-access" in self.sandboxes:
            return own
        self.warn("sandbox_mode", "is not among allowed_sandbox_modes; access does not count as full")
        return False


def read_limits(settings: Mapping[str, Setting], warn: Warn) -> Limits:
    """The limits of all layers' settings; one that cannot be read leaves the strictest value only."""

    def names(key: str, known: Collection[str]) -> list[str] | None:
        setting = settings.get(key)
        if setting is None:
            return None
        listed = setting.value if isinstance(setting.value, list) else []
        if listed and all(isinstance(name, str) and name in known for name in listed):
            return listed
        warn(setting, key, f"must be a list of some of {', '.join(known)}; the strictest alone is allowed until then")
        return []

    def warn_of(key: str, sentence: str) -> None:
        if (setting := settings.get(key)) is not None:
            warn(setting, key, sentence)

    approvals, sandboxes = names("allowed_approval_policies", APPROVALS), names("allowed_sandbox_modes", SANDBOXES)
    return Limits(
        None if approvals is None else tuple(dict.fromkeys(APPROVALS[name] for name in approvals or ["on-request"])),
        None if sandboxes is None else tuple(SANDBOXES[name] for name in sandboxes or ["read-only"]),
        warn_of,
    )
