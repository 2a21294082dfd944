"""The tables of a configuration file as they are written.

Owns: which keys there are, of which type (Codex's names, and ours besides).
Never: resolves a reference, gives a default that a frozen value already gives, or fails for an unknown key.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from interlock.configuration.references import Reference, text_setting
from interlock.vocabulary.policy import ApprovalMode
from interlock.vocabulary.secret import Secret
from interlock.vocabulary.server import MAXIMUM_LINE_LIMIT

TextSetting = Annotated[str | Secret | Reference, BeforeValidator(text_setting)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]

PROTOCOL_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


class Table(BaseModel):
    """Unknown keys are ignored here and named by `unknown_keys`."""

    model_config = ConfigDict(strict=True, extra="ignore", arbitrary_types_allowed=True, hide_input_in_errors=True)


class EnvironmentVariable(Table):
    """The long form in `env_vars`; "remote" is a place that only Codex has."""

    name: str
    source: Literal["local", "remote"] = "local"


def _long_form(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class OAuthTable(Table):
    client_id: TextSetting | None = None
    callback_port: Annotated[int, Field(ge=0, le=65535)] | None = None


class ToolTable(Table):
    approval_mode: ApprovalMode | None = None


class ServerTable(Table):
    """`[mcp_servers.NAME]`. `bearer_token` is here only to be refused."""

    command: TextSetting | None = None
    args: list[TextSetting] | None = None
    env: dict[str, TextSetting] | None = None
    env_vars: list[Annotated[EnvironmentVariable, BeforeValidator(_long_form)]] | None = None
    cwd: TextSetting | None = None

    url: TextSetting | None = None
    bearer_token: Any = None
    bearer_token_env_var: str | None = None
    http_headers: dict[str, TextSetting] | None = None
    env_http_headers: dict[str, str] | None = None
    scopes: list[str] | None = None
    oauth: OAuthTable | None = None
    oauth_resource: TextSetting | None = None
    legacy_sse: bool | None = None

    enabled: bool | None = None
    required: bool | None = None
    startup_timeout_sec: Seconds | None = None
    startup_timeout_ms: Seconds | None = None
    tool_timeout_sec: Seconds | None = None
    enabled_tools: list[str] | None = None
    disabled_tools: list[str] | None = None
    supports_parallel_tool_calls: bool | None = None
    default_tools_approval_mode: ApprovalMode | None = None
    tools: dict[str, ToolTable] | None = None

    grants_origins: bool | None = None
    gated: bool | None = None
    protocol: str | None = None
    on_bad_tool: Literal["refuse", "skip"] | None = None
    restart: Literal["always", "never"] | None = None
    line_limit: Annotated[int, Field(ge=1024, le=MAXIMUM_LINE_LIMIT)] | None = None
    shared: bool | None = None

    name: Any = None

    @field_validator("protocol")
    @classmethod
    def _known_protocol(cls, value: str | None) -> str | None:
        if value is None or value == "auto" or value in PROTOCOL_VERSIONS:
            return value
        raise PydanticCustomError("protocol", f'must be "auto" or one of {", ".join(PROTOCOL_VERSIONS)}')


class ProviderTable(Table):
    """`[model_providers.NAME]`."""

    name: str | None = None
    base_url: TextSetting | None = None
    env_key: str | None = None
    experimental_bearer_token: TextSetting | None = None
    wire_api: Literal["responses", "chat"] | None = None
    http_headers: dict[str, TextSetting] | None = None
    env_http_headers: dict[str, str] | None = None
    query_params: dict[str, TextSetting] | None = None
    request_max_retries: Annotated[int, Field(ge=0, le=100)] | None = None
    stream_max_retries: Annotated[int, Field(ge=0, le=100)] | None = None
    stream_idle_timeout_ms: Seconds | None = None


AnyTable = TypeVar("AnyTable", bound=Table)


def read_table(model: type[AnyTable], table: Mapping[str, Any]) -> tuple[AnyTable | None, tuple[tuple[str, str], ...]]:
    """The checked table, or None with what is wrong as pairs (key, sentence)."""
    try:
        return model.model_validate(dict(table)), ()
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False, include_context=False)
        return None, tuple((_key(detail["loc"]), _sentence(detail["type"], detail["msg"])) for detail in details)


def unknown_keys(model: type[Table], table: Mapping[str, Any], elsewhere: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Keys that have no effect, as pairs (key, sentence); `elsewhere` are keys that only Codex uses."""
    known = sorted(model.model_fields)
    for key in table:
        if key in elsewhere:
            yield key, "this key of Codex has no effect here"
        elif key not in known:
            yield key, f"unknown key{suggestion(key, known)}"


def suggestion(key: str, known: list[str]) -> str:
    """The end of a sentence about an unknown word."""
    close = get_close_matches(key, known, n=1)
    return f"; did you mean `{close[0]}`?" if close else "; it is ignored"


def _key(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


_TYPES = {
    "string_type": "must be a text",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "list_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "missing": "is missing",
}


def _sentence(kind: str, message: str) -> str:
    return _TYPES.get(kind) or message.replace("Input should be", "must be", 1)
