"""What goes out: threads, turns and items, member by member.

Owns: the TypedDicts from which the schema of results and notifications is made.
Never: holds a value, or knows where one comes from.

Names and types follow the Codex app server (v2); a member that we have nothing for is null, as there.
Times ending in `At` are whole seconds since the Unix epoch, those ending in `Ms` milliseconds.
"""

from typing import Any, Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict


class IdleStatus(TypedDict):
    type: Literal["idle"]


class NotLoadedStatus(TypedDict):
    type: Literal["notLoaded"]


class ActiveStatus(TypedDict):
    type: Literal["active"]
    activeFlags: list[Literal["waitingOnApproval", "waitingOnUserInput"]]


ThreadStatus: TypeAlias = IdleStatus | NotLoadedStatus | ActiveStatus


class TextInput(TypedDict):
    type: Literal["text"]
    text: str
    text_elements: list[Any]


class UrlInput(TypedDict):
    type: Literal["image", "audio"]
    url: str


UserInput: TypeAlias = TextInput | UrlInput


class UserMessage(TypedDict):
    type: Literal["userMessage"]
    id: str
    clientId: None
    content: list[UserInput]


class CitationEntry(TypedDict):
    path: str
    lineStart: int
    lineEnd: int
    note: str


class MemoryCitation(TypedDict):
    entries: list[CitationEntry]
    threadIds: list[str]


class AgentMessage(TypedDict):
    type: Literal["agentMessage"]
    id: str
    text: str
    phase: None
    memoryCitation: MemoryCitation | None
    delivery: None


class Plan(TypedDict):
    type: Literal["plan"]
    id: str
    text: str


class ContextCompaction(TypedDict):
    type: Literal["contextCompaction"]
    id: str


class AppContext(TypedDict):
    connectorId: str
    linkId: str | None
    resourceUri: str | None
    appName: str | None
    actionName: str | None


class CallResult(TypedDict):
    content: list[Any]
    structuredContent: Any
    _meta: Any


class CallError(TypedDict):
    message: str


class McpToolCall(TypedDict):
    type: Literal["mcpToolCall"]
    id: str
    server: str
    tool: str
    status: Literal["inProgress", "completed", "failed"]
    arguments: Any
    appContext: AppContext | None
    mcpAppResourceUri: NotRequired[str]
    pluginId: str | None
    readOnlyHint: bool | None
    result: CallResult | None
    error: CallError | None
    durationMs: int | None


ThreadItem: TypeAlias = UserMessage | AgentMessage | Plan | ContextCompaction | McpToolCall

TurnStatus: TypeAlias = Literal["inProgress", "completed", "failed", "interrupted"]
ItemsView: TypeAlias = Literal["notLoaded", "summary", "full"]


class TurnError(TypedDict):
    message: str
    codexErrorInfo: Literal["other"] | None
    additionalDetails: None


class Turn(TypedDict):
    id: str
    items: list[ThreadItem]
    itemsView: ItemsView
    status: TurnStatus
    error: TurnError | None
    startedAt: int | None
    completedAt: int | None
    durationMs: int | None


class Thread(TypedDict):
    id: str
    extra: None
    sessionId: str
    forkedFromId: str | None
    parentThreadId: None
    preview: str
    ephemeral: bool
    section: None
    sectionEnteredAt: None
    projectId: None
    historyMode: Literal["legacy"]
    modelProvider: str
    createdAt: int
    updatedAt: int
    recencyAt: int
    status: ThreadStatus
    path: None
    cwd: str
    cliVersion: str
    source: Literal["appServer"]
    canAcceptDirectInput: bool | None
    threadSource: None
    agentNickname: None
    agentRole: None
    gitInfo: None
    name: str | None
    turns: list[Turn]


class Granular(TypedDict):
    mcp_elicitations: bool
    rules: bool
    sandbox_approval: bool


class GranularApproval(TypedDict):
    granular: Granular


ApprovalPolicy: TypeAlias = Literal["on-request", "never"] | GranularApproval


class FullAccess(TypedDict):
    type: Literal["dangerFullAccess"]


class ReadOnly(TypedDict):
    type: Literal["readOnly"]
    networkAccess: bool


SandboxPolicy: TypeAlias = FullAccess | ReadOnly


class TokenUsage(TypedDict):
    totalTokens: int
    inputTokens: int
    cachedInputTokens: int
    cacheWriteInputTokens: int
    outputTokens: int
    reasoningOutputTokens: int


class ThreadTokenUsage(TypedDict):
    total: TokenUsage
    last: TokenUsage
    modelContextWindow: int | None


class CollaborationSettings(TypedDict):
    model: str
    reasoning_effort: None
    developer_instructions: str | None


class CollaborationMode(TypedDict):
    mode: Literal["plan", "default"]
    settings: CollaborationSettings


class ThreadSettings(TypedDict):
    cwd: str
    approvalPolicy: ApprovalPolicy
    approvalsReviewer: Literal["user"]
    sandboxPolicy: SandboxPolicy
    activePermissionProfile: None
    model: str
    modelProvider: str
    serviceTier: None
    effort: None
    summary: None
    collaborationMode: CollaborationMode
    multiAgentMode: Literal["explicitRequestOnly"]
    personality: None
