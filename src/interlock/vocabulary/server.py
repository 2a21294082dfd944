"""A configured server, and what can be observed of it.

Owns: the settings of one server, the identity of a connection made from them, server states.
Never: starts anything, or resolves a variable (a value is here resolved, or is a problem).
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, TypeAlias

from interlock.vocabulary.json import JsonObject, JsonValue
from interlock.vocabulary.policy import ApprovalMode
from interlock.vocabulary.secret import Secret, reveal

Text: TypeAlias = str | Secret
Era = Literal["handshake", "stateless"]
"""handshake: initialize, protocol 2024-11-05 to 2025-11-25. stateless: server/discover, 2026-07-28."""

DEFAULT_STARTUP_TIMEOUT = 30.0
DEFAULT_TOOL_TIMEOUT = 300.0
DEFAULT_LINE_LIMIT = 32 * 1024 * 1024
MAXIMUM_LINE_LIMIT = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioTransport:
    """A server that is a child process. `env` holds only what its own table names."""

    command: Text
    args: tuple[Text, ...] = ()
    env: Mapping[str, Secret] = field(default_factory=dict[str, Secret])
    cwd: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTransport:
    """A server at a URL. `headers` are complete: bearer token and environment headers included."""

    url: Text
    headers: Mapping[str, Secret] = field(default_factory=dict[str, Secret])
    legacy_sse: bool | None = None
    """True: HTTP+SSE of 2024-11-05 only. False: Streamable HTTP only. None: find out."""
    scopes: tuple[str, ...] = ()
    oauth_client_id: Text | None = None
    oauth_callback_port: int | None = None
    oauth_resource: Text | None = None


Transport: TypeAlias = StdioTransport | HttpTransport


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """One table `[mcp_servers.NAME]`, checked and with its references resolved.

    Timeouts are seconds. `problem` is set when the table cannot be used: such a server is shown
    as failed with that sentence, and never started (CFG-3).
    """

    name: str
    transport: Transport
    enabled: bool = True
    required: bool = False
    startup_timeout: float = DEFAULT_STARTUP_TIMEOUT
    tool_timeout: float = DEFAULT_TOOL_TIMEOUT
    enabled_tools: tuple[str, ...] | None = None
    disabled_tools: tuple[str, ...] = ()
    supports_parallel_tool_calls: bool = False
    default_tools_approval_mode: ApprovalMode = "auto"
    tool_approval_modes: Mapping[str, ApprovalMode] = field(default_factory=dict[str, ApprovalMode])
    grants_origins: bool = False
    gated: bool = False
    protocol: str = "auto"
    """"auto" or one protocol version, such as "2025-11-25"."""
    on_bad_tool: Literal["refuse", "skip"] = "refuse"
    restart: Literal["always", "never"] = "always"
    line_limit: int = DEFAULT_LINE_LIMIT
    shared: bool | None = None
    """Whether Threads share the connection; None follows the era (stateless: shared)."""
    source: str = ""
    """The file and table that it came from, for messages."""
    problem: str | None = None

    def allows(self, tool: str) -> bool:
        """Whether the filters let the remote tool `tool` be used; deny wins (CAT-8)."""
        if tool in self.disabled_tools:
            return False
        return self.enabled_tools is None or tool in self.enabled_tools

    def approval_mode(self, tool: str) -> ApprovalMode:
        return self.tool_approval_modes.get(tool, self.default_tools_approval_mode)

    def whereabouts(self) -> str:
        """Equal as long as the same server stands behind the name: what is started where, or which URL.

        Unlike `identity` it is stored, and outlives other credentials. The digest does not let a secret be read back.
        """
        match self.transport:
            case StdioTransport(command=command, args=args, cwd=folder):
                facts = [reveal(command), [reveal(arg) for arg in args], folder and reveal(folder)]
            case HttpTransport(url=url):
                facts = [reveal(url)]
        return _digest([self.name, *facts])

    def identity(self, capabilities: JsonObject) -> str:
        """Equal for two configurations whose connections are interchangeable (CON-15).

        Made of the transport with the values of its variables, the protocol pin, the line limit
        and the capabilities that we advertise; not of timeouts, filters or approval modes. The
        digest does not let a secret be read back.
        """
        facts = [
            self.name,
            _transport_facts(self.transport),
            self.protocol,
            self.line_limit,
            self.restart,
            capabilities,
        ]
        return _digest(facts)


def _digest(facts: JsonValue) -> str:
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _transport_facts(transport: Transport) -> dict[str, Any]:
    match transport:
        case StdioTransport():
            return {
                "command": reveal(transport.command),
                "args": [reveal(arg) for arg in transport.args],
                "env": {name: value.reveal() for name, value in transport.env.items()},
                "cwd": transport.cwd and reveal(transport.cwd),
            }
        case HttpTransport():
            return {
                "url": reveal(transport.url),
                "headers": {name: value.reveal() for name, value in transport.headers.items()},
                "legacy_sse": transport.legacy_sse,
                "scopes": list(transport.scopes),
                "client": [
                    transport.oauth_client_id and reveal(transport.oauth_client_id),
                    transport.oauth_callback_port,
                    transport.oauth_resource and reveal(transport.oauth_resource),
                ],
            }


class ServerStatus(Enum):
    """What can be observed of a server without starting it (CON-16)."""

    NOT_STARTED = "not_started"
    STARTING = "starting"
    READY = "ready"
    AUTHENTICATION_REQUIRED = "authentication_required"
    FAILED = "failed"
    CANCELLED = "cancelled"
    CLOSED = "closed"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """What a server says of itself (specification: Implementation). For display only."""

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    icons: tuple[JsonObject, ...] | None = None
    website_url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """Something odd that a server did, counted instead of fatal (CON-8, CON-9).

    `kind` is a short stable word such as "noise", "invalid_utf8", "line_too_long", "unknown_id",
    "bad_tool", "dropped_notification"; `last` is the newest example in words, shortened.
    """

    kind: str
    count: int
    last: str


COMPLETIONS_ADVERTISED_SINCE = "2025-03-26"
"""Before, servers could complete arguments without saying so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """What a server offers beside its life itself (RES-11). `completions` None: its protocol version does not say."""

    tools: bool = False
    resources: bool = False
    prompts: bool = False
    completions: bool | None = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReport:
    """The state of one server at one moment; a frozen copy, never an authority."""

    name: str
    status: ServerStatus
    reason: str | None = None
    required: bool = False
    transport: Literal["stdio", "http"] = "stdio"
    info: ServerInfo | None = None
    protocol_version: str | None = None
    era: Era | None = None
    capabilities: JsonObject = field(default_factory=dict[str, Any])
    instructions: str | None = None
    seconds_to_ready: float | None = None
    restarts: int = 0
    process_id: int | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    standard_error: str = ""
    """The newest lines of a stdio server's stderr, bounded."""

    @property
    def offers(self) -> Offers | None:
        """What it offers, as it said when it was ready last; None: it never was."""
        if self.protocol_version is None:
            return None
        said: bool | None = "completions" in self.capabilities
        return Offers(
            tools="tools" in self.capabilities,
            resources="resources" in self.capabilities,
            prompts="prompts" in self.capabilities,
            completions=said or (None if self.protocol_version < COMPLETIONS_ADVERTISED_SINCE else False),
        )


def unstarted_report(config: ServerConfig) -> ServerReport:
    """The report of a configured server that has no connection: disabled, unusable, or not started."""
    status = ServerStatus.NOT_STARTED
    if not config.enabled:
        status = ServerStatus.DISABLED
    elif config.problem is not None:
        status = ServerStatus.FAILED
    return ServerReport(
        name=config.name,
        status=status,
        reason=config.problem,
        required=config.required,
        transport="http" if isinstance(config.transport, HttpTransport) else "stdio",
    )
