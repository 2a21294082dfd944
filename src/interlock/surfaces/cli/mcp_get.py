"""`interlock mcp get`: every setting of one server, and where it comes from.

Owns: the pairing of settings with the file or the default that they come from.
Never: starts the server, or shows a value of `env` or of a header (CFG-4).
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.configuration import Configuration, Problem
from interlock.configuration.layers import Written
from interlock.configuration.load import written
from interlock.configuration.tables import ServerTable
from interlock.surfaces.cli.mcp_edit import masked_table
from interlock.surfaces.cli.opening import home, read_configuration, refuse_unknown
from interlock.surfaces.cli.output import Table, complain, print_json, print_table, say
from interlock.vocabulary.server import HttpTransport, ServerConfig

DEFAULT = "default"
ONLY_STDIO = ("command", "args", "env", "env_vars", "cwd")
ONLY_HTTP = (
    "url",
    "bearer_token_env_var",
    "http_headers",
    "env_http_headers",
    "scopes",
    "oauth",
    "oauth_resource",
    "legacy_sse",
)
HIDDEN = ("bearer_token", "name", "startup_timeout_ms")


@dataclass(frozen=True, slots=True)
class Shown:
    """One setting as it is shown: its key, its value (masked), the place that it comes from."""

    key: str
    value: Any
    source: str


def show(name: str, config: Path | None, as_json: bool) -> None:
    configuration = read_configuration(config, name)
    refuse_unknown(configuration, name)
    server = configuration.servers[name]
    *others, place = written(name, config, home=home(), project=Path.cwd(), environment=os.environ)
    settings = [*_written_settings(place), *_defaults(server, place)]
    problems = _problems(configuration, place)
    if as_json:
        print_json(
            {
                "server": name,
                "settings": [{"key": s.key, "value": s.value, "from": s.source} for s in settings],
                "problems": [str(problem) for problem in problems],
                "not_used": [other.place for other in others],
            }
        )
        return
    rows = [(s.key, _text(s.value), s.source) for s in settings]
    print_table(Table(("setting", "value", "from"), rows, names=("setting",)))
    for problem in problems:
        if problem.fatal:
            complain(str(problem))
    for other in reversed(others):
        say(f"not used, because a nearer file has this server: {other.place}")


def _written_settings(place: Written) -> list[Shown]:
    table = masked_table(place.table or {})
    return [Shown(key, value, str(place.file)) for key, value in table.items() if key != "bearer_token"]


def _defaults(server: ServerConfig, place: Written) -> list[Shown]:
    """What the file does not say; settings of the other transport, and those without a default, are left out."""
    said = {*(place.table or {}), *HIDDEN}
    if "startup_timeout_ms" in (place.table or {}):
        said.add("startup_timeout_sec")
    foreign = ONLY_STDIO if isinstance(server.transport, HttpTransport) else ONLY_HTTP
    values = _values(server)
    keys = [key for key in ServerTable.model_fields if key not in said and key not in foreign and key in values]
    return [Shown(key, values[key], DEFAULT) for key in keys]


def _values(server: ServerConfig) -> Mapping[str, Any]:
    return {
        "enabled": server.enabled,
        "required": server.required,
        "startup_timeout_sec": server.startup_timeout,
        "tool_timeout_sec": server.tool_timeout,
        "enabled_tools": "all" if server.enabled_tools is None else list(server.enabled_tools),
        "disabled_tools": list(server.disabled_tools),
        "supports_parallel_tool_calls": server.supports_parallel_tool_calls,
        "default_tools_approval_mode": server.default_tools_approval_mode,
        "grants_origins": server.grants_origins,
        "gated": server.gated,
        "protocol": server.protocol,
        "on_bad_tool": server.on_bad_tool,
        "restart": server.restart,
        "line_limit": server.line_limit,
        "shared": "by era" if server.shared is None else server.shared,
    }


def _problems(configuration: Configuration, place: Written) -> list[Problem]:
    return [p for p in configuration.problems if f"{p.file} [{p.table}]" == place.place]


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:g}"
        case {"env": str(target)} | {"keyring": str(target)} | {"file": str(target)} if len(value) == 1:
            return f"({next(iter(value))} {target})"
        case dict():
            return ", ".join(f"{key} = {_text(inner)}" for key, inner in value.items()) or "none"
        case list():
            return " ".join(_text(inner) for inner in value) or "none"
        case _:
            return str(value)
