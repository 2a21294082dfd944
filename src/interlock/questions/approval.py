"""Whether a call goes out, is refused, or must be approved first.

Owns: the table of modes and annotations (APR-1, BEHAVIOUR section 7), the order in which rules, memory, mode and
policy speak, and what a Thread remembers of its approvals (APR-2).
Never: asks anybody, sends anything, or writes a file.

The order: the first of the user's rules that matches; else, in mode auto, what was approved for the session;
else mode and annotations. Whoever says "ask", `approval_policy = "never"` then turns that into a refusal, or
into an allowance with full access: this is what the user chose by setting both.
"""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, NamedTuple, assert_never

from interlock.questions.rules import CallFacts, Examined, deciding, examine
from interlock.vocabulary.json import canonical
from interlock.vocabulary.policy import ApprovalMode, Decision, Policy
from interlock.vocabulary.question import Remember
from interlock.vocabulary.tool import Tool, ToolAnnotations

Basis = Literal["rule", "remembered", "mode", "policy"]
"""What had the last word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A decision with its explanation. `persist`: what an approval may be offered to hold for besides once.

    `examined` are the rules that were looked at; the one that matched is the last, if any did.
    """

    decision: Decision
    basis: Basis
    reason: str
    persist: tuple[Remember, ...] = ()
    examined: tuple[Examined, ...] = ()


def decide(call: CallFacts, mode: ApprovalMode, policy: Policy, *, remembered: bool) -> Verdict:
    """What becomes of a call. `remembered`: the Thread holds an approval for it (only mode auto looks at it)."""
    verdict = _first_word(call, mode, policy, remembered)
    if verdict.decision != "ask" or policy.approval != "never":
        return verdict
    decision: Decision = "allow" if policy.full_access else "deny"
    because = "with full access nobody needs to be" if policy.full_access else "nobody may be"
    return Verdict(
        decision=decision,
        basis="policy",
        reason=f"{verdict.reason}, but approval_policy is 'never': {because} asked",
        examined=verdict.examined,
    )


def wants_approval(mode: ApprovalMode, annotations: ToolAnnotations) -> bool:
    """The table of APR-1. A hint that the server does not give counts as the careful answer."""
    match mode:
        case "approve":
            return False
        case "prompt":
            return True
        case "writes":
            return annotations.read_only_hint is not True
        case "auto":
            if annotations.read_only_hint is True and annotations.destructive_hint is not True:
                return False
            return not (annotations.destructive_hint is False and annotations.open_world_hint is False)
        case _:
            assert_never(mode)


def _first_word(call: CallFacts, mode: ApprovalMode, policy: Policy, remembered: bool) -> Verdict:
    examined = examine(policy.approval_rules, call)
    rule = deciding(examined)
    if rule is not None:
        return Verdict(decision=rule.rule.action, basis="rule", reason=_rule_reason(rule), examined=examined)
    if mode == "auto" and remembered:
        reason = "it was approved for this session"
        return Verdict(decision="allow", basis="remembered", reason=reason, examined=examined)
    asks = wants_approval(mode, call.annotations)
    return Verdict(
        decision="ask" if asks else "allow",
        basis="mode",
        reason=_mode_reason(mode, call.annotations, asks),
        persist=("session", "always") if mode == "auto" and asks else (),
        examined=examined,
    )


def _rule_reason(examined: Examined) -> str:
    rule = examined.rule
    place = f" ({rule.source})" if rule.source else ""
    because = f": {rule.reason}" if rule.reason else ""
    return f"approval rule {examined.number}{place} says {rule.action}{because}"


def _mode_reason(mode: ApprovalMode, annotations: ToolAnnotations, asks: bool) -> str:
    match mode:
        case "approve":
            return "approval_mode 'approve' asks for nothing"
        case "prompt":
            return "approval_mode 'prompt' always asks"
        case "writes":
            return "approval_mode 'writes' asks: the tool does not say that it only reads" if asks else _READS
        case "auto":
            return _auto_reason(annotations, asks)
        case _:
            assert_never(mode)


_READS = "the tool says that it only reads"


def _auto_reason(annotations: ToolAnnotations, asks: bool) -> str:
    if not asks:
        only_reads = annotations.read_only_hint is True and annotations.destructive_hint is not True
        return _READS if only_reads else "the tool says that it neither destroys anything nor reaches outside"
    if annotations.destructive_hint is True:
        return "the tool says that it may destroy something"
    if annotations.destructive_hint is False:
        return "the tool may change something outside"
    return "the tool does not say what it may change"


# ---- what is remembered


class ToolKey(NamedTuple):
    """Under what an approval is remembered: never under a public name (BEHAVIOUR section 7)."""

    server: str
    connector_id: str | None
    tool: str


def definition_of(tool: Tool) -> str:
    """A digest of what the tool says it is: an approval for one definition does not cover another."""
    hints = tool.annotations
    facts = [
        tool.name,
        tool.title,
        tool.description,
        tool.input_schema,
        [hints.title, hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint],
    ]
    return sha256(canonical(facts).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(slots=True)
class Remembered:
    """The approvals that hold for a session; owned by one Thread, and gone with it."""

    _definitions: dict[ToolKey, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._definitions)

    def remember(self, key: ToolKey, definition: str) -> None:
        """From now on calls of this tool are approved, as long as its definition stays the same."""
        self._definitions[key] = definition

    def holds(self, key: ToolKey, definition: str) -> bool:
        return self._definitions.get(key) == definition
