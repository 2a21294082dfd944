"""Whether a tool call may go out.

Owns: the one place where a call is allowed, refused or approved before its request is prepared (APR-3); what the
Thread remembers of its approvals (APR-2).
Never: decides by itself (`questions.approval` does), or judges resource tools: they never enter approval (RES-9).
"""

from dataclasses import dataclass, field
from typing import Literal, Protocol, assert_never

from interlock.questions.approval import Remembered, ToolKey, Verdict, decide, definition_of, wants_approval
from interlock.questions.asking import Asking, Settled
from interlock.questions.rules import CallFacts
from interlock.vocabulary.catalog import ToolEntry
from interlock.vocabulary.errors import NotPermitted
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.question import Accept, Approval, Cancel, Decline
from interlock.vocabulary.server import ServerConfig

Approvals = Literal["ask", "allow", "deny"]
"""What becomes of a call that somebody has to approve: people are asked, or all of them pass, or none."""


class Keeper(Protocol):
    """Where approvals that shall hold for ever are written down."""

    def keeps(self, server: str) -> bool:
        """Whether there is a place for approvals of this server."""
        ...

    async def keep(self, server: str, tool: str) -> None:
        """Write down that calls of the tool are approved from now on; must not raise for a file that cannot be
        written, since the call itself is approved."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A call that wants to go out; `item` tells whose it is and what it does, `arguments` are what would be sent."""

    entry: ToolEntry
    item: McpToolCallItem
    arguments: JsonObject
    turn_id: str

    @property
    def facts(self) -> CallFacts:
        return CallFacts(
            server=self.entry.server,
            tool=self.entry.tool.name,
            annotations=self.entry.tool.annotations,
            arguments=self.arguments,
            connector_id=self.item.connector_id,
        )

    @property
    def key(self) -> ToolKey:
        return ToolKey(self.entry.server, self.item.connector_id, self.entry.tool.name)


def goes_without_saying(entry: ToolEntry, policy: Policy, config: ServerConfig) -> bool:
    """Whether a call of the tool may go out, as `decide` would say, without an explanation that nobody reads."""
    return not (policy.approval_rules or wants_approval(config.approval_mode(entry.tool.name), entry.tool.annotations))


@dataclass(slots=True, kw_only=True)
class Permission:
    """The permissions of one Thread."""

    asking: Asking
    remembered: Remembered = field(default_factory=Remembered)

    async def permit(
        self,
        call: Wanted,
        policy: Policy,
        config: ServerConfig,
        *,
        approvals: Approvals,
        keeper: Keeper | None = None,
    ) -> None:
        """Return once the call may go out. Without a `keeper` an approval holds for the session at most.

        Asked of a call that does not go without saying; of another, it says yes as well.

        Raises:
            NotPermitted: it may not; the sentence says who or what refused it.
            StorageFailed: a question could not be stored.
        """
        mode = config.approval_mode(call.entry.tool.name)
        verdict = decide(call.facts, mode, policy, remembered=self._holds(call))
        match verdict.decision:
            case "allow":
                return
            case "deny":
                raise _refused(call, verdict.reason)
            case "ask":
                pass
            case _:
                assert_never(verdict.decision)
        if approvals == "deny":
            raise _refused(call, "it needs an approval and nobody can be asked")
        if approvals == "ask":
            await self._ask(call, verdict, policy, keeper)

    def refuse_denied(self, facts: CallFacts, policy: Policy, config: ServerConfig) -> None:
        """Return if a call that was allowed before may go on. People are not asked a second time.

        Raises:
            NotPermitted: the filters of its server or a rule forbid the tool now.
        """
        verdict = decide(facts, config.approval_mode(facts.tool), policy, remembered=True)
        reason = verdict.reason if verdict.decision == "deny" else None
        if not config.allows(facts.tool):
            reason = "the filters of its server leave it out now"
        if reason is not None:
            raise NotPermitted(
                f"the call of tool {facts.tool!r} of server {facts.server!r} did not go on: {reason}",
                server=facts.server,
                tool=facts.tool,
            )

    def _holds(self, call: Wanted) -> bool:
        return len(self.remembered) > 0 and self.remembered.holds(call.key, definition_of(call.entry.tool))

    async def _ask(self, call: Wanted, verdict: Verdict, policy: Policy, keeper: Keeper | None) -> None:
        settled = await self.asking.approve(
            call.entry.server,
            _subject(call, verdict, can_keep=keeper is not None and keeper.keeps(call.entry.server)),
            message=f"Allow server {call.entry.server!r} to run its tool {call.entry.tool.name!r}?",
            policy=policy,
            turn_id=call.turn_id,
            call_id=call.item.id,
        )
        match settled.answer:
            case Accept(remember="once"):
                pass
            case Accept(remember=remember):
                self.remembered.remember(call.key, definition_of(call.entry.tool))
                if remember == "always" and keeper is not None:
                    await keeper.keep(call.entry.server, call.entry.tool.name)
            case Decline() | Cancel():
                raise _declined(call, settled)


def _subject(call: Wanted, verdict: Verdict, *, can_keep: bool) -> Approval:
    tool = call.entry.tool
    return Approval(
        tool=tool.name,
        public_name=call.entry.public_name,
        arguments=call.arguments,
        annotations=tool.annotations,
        title=tool.title or tool.annotations.title,
        description=tool.description,
        connector_id=call.item.connector_id,
        connector_name=call.item.app_name,
        persist=tuple(kind for kind in verdict.persist if kind != "always" or can_keep),
        reason=verdict.reason,
    )


def _declined(call: Wanted, settled: Settled) -> NotPermitted:
    message = settled.answer.message if isinstance(settled.answer, Decline) else None
    match settled.by:
        case "user" | "reviewer":
            who = "user" if settled.by == "user" else "application's reviewer"
            how = "dismissed the question" if isinstance(settled.answer, Cancel) else "declined it"
            return _not_permitted(call, f"the {who} {how}" + (f": {message}" if message else ""))
        case "policy" | "nobody":
            return _refused(call, f"it needs an approval and {message or 'the question was withdrawn'}")
        case _:
            assert_never(settled.by)


def _refused(call: Wanted, reason: str) -> NotPermitted:
    """A refusal that a setting could turn."""
    table = f"[mcp_servers.{call.entry.server}.tools.{call.entry.tool.name}]"
    return _not_permitted(call, f"{reason}; set approval_mode = 'approve' in {table} to allow it")


def _not_permitted(call: Wanted, reason: str) -> NotPermitted:
    return NotPermitted(
        f"tool {call.entry.tool.name!r} of server {call.entry.server!r} was not called: {reason}",
        server=call.entry.server,
        tool=call.entry.tool.name,
    )
