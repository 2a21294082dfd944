"""What a configuration is once it has been read.

Owns: the frozen shapes: Configuration, ModelConfig, ProviderConfig, Problem.
Never: reads a file; a value is here checked, or is named in a problem.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.secret import Secret
from interlock.vocabulary.server import ServerConfig, Text

WireApi = Literal["responses", "chat"]

DEFAULT_TOOL_OUTPUT_TOKENS = 10_000
DEFAULT_REQUEST_RETRIES = 4
DEFAULT_STREAM_RETRIES = 5
DEFAULT_STREAM_IDLE_TIMEOUT = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something wrong in a file (CFG-3).

    `table` is dotted ("mcp_servers.git", "" for the top level), `key` the setting in it. `fatal`: the server (or the
    model provider) of that table cannot be used; else it is a warning. `str()` is one sentence with the place.
    """

    file: str
    table: str
    key: str | None
    sentence: str
    fatal: bool = False

    @property
    def place(self) -> str:
        parts = [self.file, f"[{self.table}]" if self.table else "", f"`{self.key}`" if self.key else ""]
        return " ".join(part for part in parts if part)

    def __str__(self) -> str:
        return f"{self.place}: {self.sentence}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """One table `[model_providers.NAME]`, or the built-in "openai".

    `stream_idle_timeout` is seconds. `problem` is a sentence when the provider cannot be used; it becomes an error only
    when a model is used.
    """

    key: str = "openai"
    name: str = "OpenAI"
    base_url: Text = "https://api.openai.com/v1"
    wire_api: WireApi = "responses"
    env_key: str | None = "OPENAI_API_KEY"
    bearer_token: Secret | None = None
    http_headers: Mapping[str, Secret] = field(default_factory=dict[str, Secret])
    query_params: Mapping[str, Text] = field(default_factory=dict[str, Text])
    request_max_retries: int = DEFAULT_REQUEST_RETRIES
    stream_max_retries: int = DEFAULT_STREAM_RETRIES
    stream_idle_timeout: float = DEFAULT_STREAM_IDLE_TIMEOUT
    problem: str | None = None

    def api_key(self, environment: Mapping[str, str]) -> Secret | None:
        """The key to send, looked up when a model is used; None: this provider takes none (a local one, say).

        Raises:
            InvalidRequest: the table has a problem, or its `env_key` is not set in `environment`.
        """
        if self.problem is not None:
            raise InvalidRequest(self.problem)
        if self.env_key is None:
            return self.bearer_token
        value = environment.get(self.env_key, "").strip()
        if value:
            return Secret(value, f"environment variable {self.env_key}")
        if self.bearer_token is not None:
            return self.bearer_token
        raise InvalidRequest(
            f"cannot use the model provider {self.key}: the environment variable {self.env_key} is not set; "
            f"set it to the provider's key"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Which model a Turn uses by default, and how much of a tool's output it is shown (RES-10).

    `auto_compact_token_limit`: a history of so many tokens is replaced by a summary (HIS-4); None: never by itself.
    """

    name: str | None = None
    provider: ProviderConfig = field(default_factory=ProviderConfig)
    tool_output_token_limit: int = DEFAULT_TOOL_OUTPUT_TOKENS
    auto_compact_token_limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One reading of all files. `servers` are sorted by name; a server with a fatal problem is among them."""

    servers: Mapping[str, ServerConfig] = field(default_factory=dict[str, ServerConfig])
    policy: Policy = field(default_factory=Policy)
    model: ModelConfig = field(default_factory=ModelConfig)
    problems: tuple[Problem, ...] = ()
    files: tuple[str, ...] = ()
    """The files that were read, nearest last."""
    editable: Mapping[str, str] = field(default_factory=dict[str, str])
    """By server name, the file of the user's own in which the server's approval modes may be written down."""
