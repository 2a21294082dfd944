"""What people see of a Thread: messages and calls.

Owns: the shapes of items (LIF-2) and of a call's outcome.
Never: decides anything; an item is a view of stored events (HIS-5).
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from interlock.vocabulary.construction import quickly_made
from interlock.vocabulary.conversation import Part
from interlock.vocabulary.errors import Effect
from interlock.vocabulary.json import JsonObject, JsonValue
from interlock.vocabulary.tool import ToolResult

ItemStatus = Literal["in_progress", "completed", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemError:
    """Why a call failed: a code ("server_failed", "not_permitted", "cancelled", "interrupted", …) and a sentence."""

    code: str
    message: str
    effect: Effect = "none"


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class McpToolCallItem:
    """One call of an MCP tool or of a resource tool. Optional facts are None when unknown.

    `id` is the model's call id. `server` and `tool` are the identity (the remote name), the
    public name is what the model used. `arguments` is the decoded JSON, or the raw text where it
    could not be decoded. `result` is kept for an is_error result too (LIF-3); its text is
    bounded (BEHAVIOUR section 5). `duration` is milliseconds, set when the item has ended.
    """

    id: str
    server: str
    tool: str
    public_name: str
    arguments: JsonValue
    status: ItemStatus = "in_progress"
    connector_id: str | None = None
    link_id: str | None = None
    mcp_app_resource_uri: str | None = None
    app_name: str | None = None
    action_name: str | None = None
    plugin_id: str | None = None
    read_only_hint: bool | None = None
    result: ToolResult | None = None
    error: ItemError | None = None
    duration: int | None = None

    def ended(
        self,
        status: ItemStatus,
        *,
        duration: int,
        arguments: JsonValue = None,
        result: ToolResult | None = None,
        error: ItemError | None = None,
    ) -> "McpToolCallItem":
        """The item at its end; `arguments` None leaves them as they are."""
        # Written out: dataclasses.replace takes three times as long, and every call pays for it.
        return McpToolCallItem(
            id=self.id,
            server=self.server,
            tool=self.tool,
            public_name=self.public_name,
            arguments=self.arguments if arguments is None else arguments,
            status=status,
            connector_id=self.connector_id,
            link_id=self.link_id,
            mcp_app_resource_uri=self.mcp_app_resource_uri,
            app_name=self.app_name,
            action_name=self.action_name,
            plugin_id=self.plugin_id,
            read_only_hint=self.read_only_hint,
            result=result,
            error=error,
            duration=duration,
        )

    @property
    def effect(self) -> Effect:
        """What the call may have changed: "done" when completed, else what its error says."""
        if self.status == "completed":
            return "done"
        return self.error.effect if self.error is not None else "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessageItem:
    """What the user said at the start of a Turn."""

    id: str
    content: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMessageItem:
    """One message of the model, as people may see it: whole, or what was said of it until its turn was cut off.

    `plan` is what it proposes in plan mode, which its text leaves out (MEM-2).
    """

    id: str
    text: str
    citation: JsonObject | None = None
    """Memory citation of the message: {"entries": […], "rolloutIds": […]} (MEM-4)."""
    plan: str | None = None


ThreadItem: TypeAlias = McpToolCallItem | UserMessageItem | AgentMessageItem
