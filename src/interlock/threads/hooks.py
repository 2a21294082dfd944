"""What an application may do before and after a call of the model (LIF-7).

Owns: the order in which hooks run, what they may answer, and what their failure means: a call whose hook failed is
not sent, and output whose hook failed is not shown.
Never: approves anything; approval comes after the hooks that rewrite arguments, so that people see what is sent.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeAlias

from interlock.connections.cancelled import stop_if_cancelled
from interlock.questions import application
from interlock.vocabulary.errors import NotPermitted
from interlock.vocabulary.json import JsonObject, JsonValue
from interlock.vocabulary.tool import ToolAnnotations, ToolResult

HOOK_PATIENCE: Final = 60.0
"""Seconds that one hook may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedCall:
    """A call as hooks see it. `server` and `tool` are its identity; `builtin`: a resource tool of the host."""

    call_id: str
    turn_id: str
    server: str
    tool: str
    public_name: str
    arguments: JsonObject
    annotations: ToolAnnotations = field(default_factory=ToolAnnotations)
    builtin: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """The call is refused; the model reads `reason`."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The call goes on with these arguments."""

    arguments: JsonObject


Before: TypeAlias = Callable[[HookedCall], "Awaitable[Block | Rewrite | None] | Block | Rewrite | None"]
"""Looks at a call before it is approved and sent; None lets it pass as it is."""

After: TypeAlias = Callable[[HookedCall, ToolResult], "Awaitable[ToolResult | None] | ToolResult | None"]
"""Looks at the result of a call before anybody else does; a ToolResult replaces it, None leaves it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Each hook sees what the ones before it made of the call or of its result."""

    before: tuple[Before, ...] = ()
    after: tuple[After, ...] = ()
    patience: float = HOOK_PATIENCE

    def __bool__(self) -> bool:
        return bool(self.before or self.after)

    async def run_before(self, call: HookedCall) -> HookedCall:
        """The call as it shall go on.

        Raises:
            NotPermitted: a hook blocks it, or failed.
        """
        for hook in self.before:
            await stop_if_cancelled()
            match await self._run_before(hook, call):
                case None:
                    pass
                case Block(reason=reason):
                    raise NotPermitted(f"the call of {call.public_name!r} was blocked: {reason}")
                case Rewrite(arguments=arguments) if isinstance(arguments, Mapping):
                    call = replace(call, arguments=arguments)
                case other:
                    raise _failed(call, f"returned a {type(other).__name__}")
        return call

    async def run_after(self, call: HookedCall, result: ToolResult) -> ToolResult:
        """The result as everybody shall see it; an error in its place when a hook failed."""
        for hook in self.after:
            try:
                replaced: JsonValue = await application.run(partial(hook, call, result), patience=self.patience)
            except Exception as error:
                return _withheld(call, type(error).__name__)
            if isinstance(replaced, ToolResult):
                result = replaced
            elif replaced is not None:
                return _withheld(call, f"it returned a {type(replaced).__name__}")
        return result

    async def _run_before(self, hook: Before, call: HookedCall) -> JsonValue:
        """What the hook returns, which may be anything."""
        try:
            return await application.run(partial(hook, call), patience=self.patience)
        except Exception as error:
            raise _failed(call, f"failed ({type(error).__name__})") from error


def _failed(call: HookedCall, how: str) -> NotPermitted:
    return NotPermitted(f"the call of {call.public_name!r} was not sent: a hook before it {how}")


def _withheld(call: HookedCall, why: str) -> ToolResult:
    text = f"the call of {call.public_name!r} was made, but its result is withheld: a hook after it failed ({why})"
    return ToolResult(content=({"type": "text", "text": text},), is_error=True)
