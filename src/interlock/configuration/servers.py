"""One table `[mcp_servers.NAME]` becomes one ServerConfig.

Owns: the rules of a server table: which key belongs to which transport, defaults, problems (CFG-1, CFG-3).
Never: reads a file or starts a server; a table that cannot be used becomes a ServerConfig that says why.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from interlock.configuration.codex import ONLY_CODEX_OAUTH, ONLY_CODEX_SERVER
from interlock.configuration.findings import Findings, Resolver, shown
from interlock.configuration.references import Lookup, Reference, unlooked
from interlock.configuration.tables import (
    OAuthTable,
    ServerTable,
    ToolTable,
    read_table,
    unknown_keys,
)
from interlock.configuration.values import Problem
from interlock.vocabulary.secret import Secret, reveal
from interlock.vocabulary.server import (
    DEFAULT_LINE_LIMIT,
    DEFAULT_STARTUP_TIMEOUT,
    DEFAULT_TOOL_TIMEOUT,
    HttpTransport,
    ServerConfig,
    StdioTransport,
    Text,
    Transport,
)

NAME = re.compile(r"[A-Za-z0-9_-]+")
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

ONLY_HTTP = (
    "url",
    "bearer_token_env_var",
    "http_headers",
    "env_http_headers",
    "oauth",
    "oauth_resource",
    "legacy_sse",
)
ONLY_STDIO = ("args", "env", "env_vars", "cwd")
ONLY_USERS = ("default_tools_approval_mode", "tools", "grants_origins", "gated")
"""What a project's file may not decide for the user (BEHAVIOUR section 10)."""

BEARER_TOKEN = (
    "a token does not belong into a file; put it into an environment variable and write "  # noqa: S105 (a sentence)
    'bearer_token_env_var = "NAME", or http_headers = { Authorization = { keyring = "service/name" } }'
)


Translate = Callable[[Mapping[str, Any], Findings], Mapping[str, Any]]
"""Turns an entry of another dialect into a table of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a server's table stands. `restricted`: a project's file, which may not decide about approval.

    `translate` gives a table of another dialect in our keys and resolved, `as_written` the same unresolved.
    """

    file: Path
    heading: str = "mcp_servers"
    restricted: bool = False
    translate: Translate | None = None
    as_written: Translate | None = None


def build_server(
    name: str, table: Any, source: Source, environment: Mapping[str, str], find: Lookup
) -> tuple[ServerConfig, tuple[Problem, ...]]:
    """The configured server, with all that was found wrong; it has a `problem` when something is fatal."""
    findings = Findings(str(source.file), f"{source.heading}.{shown(name)}")
    if not NAME.fullmatch(name):
        findings.refuse(None, "a server's name may hold only letters, digits, _ and -; rename it")
    if not isinstance(table, Mapping):
        findings.refuse(None, "must be a table")
        table = {}
    if source.translate is not None:
        table = source.translate(table, findings)
    table = _permitted(table, source, findings)
    _name_unknown(table, findings)
    checked, wrong = read_table(ServerTable, table)
    for key, sentence in wrong:
        findings.refuse(key, sentence)
    transport = None if checked is None else _awake_or_asleep(checked, Resolver(environment, find, findings))
    config = _config(
        name, checked or ServerTable(), transport or _placeholder(table), f"{source.file} [{findings.table}]"
    )
    return _with_problem(config, table, findings.verdict), tuple(findings.problems)


class _EverySet(dict[str, str]):
    """An environment in which every variable has a value."""

    def get(self, name: str, default: Any = None) -> Any:
        return "x"


def structural_problems(name: str, table: Mapping[str, Any], file: Path) -> tuple[str, ...]:
    """What makes the table unusable wherever it is read: everything but values that are missing here and now."""
    _, found = build_server(name, table, Source(file=file), _EverySet(), unlooked)
    return tuple(f"`{problem.key}`: {problem.sentence}" if problem.key else problem.sentence for problem in found)


def _permitted(table: Mapping[str, Any], source: Source, findings: Findings) -> dict[str, Any]:
    if not source.restricted:
        return dict(table)
    for key in ONLY_USERS:
        if key in table:
            findings.warn(key, "a project's file cannot decide this; write it into the home configuration")
    return {key: value for key, value in table.items() if key not in ONLY_USERS}


def _name_unknown(table: Mapping[str, Any], findings: Findings) -> None:
    for key, sentence in unknown_keys(ServerTable, table, ONLY_CODEX_SERVER):
        findings.warn(key, sentence)
    oauth, tools = table.get("oauth"), table.get("tools")
    if isinstance(oauth, Mapping):
        for key, sentence in unknown_keys(OAuthTable, oauth, ONLY_CODEX_OAUTH):
            findings.warn(f"oauth.{key}", sentence)
    for tool, settings in tools.items() if isinstance(tools, Mapping) else ():
        if isinstance(settings, Mapping):
            for key, sentence in unknown_keys(ToolTable, settings, frozenset()):
                findings.warn(f"tools.{tool}.{key}", sentence)


def _awake_or_asleep(table: ServerTable, resolver: Resolver) -> Transport | None:
    """A server that is switched off is not asked for values that nobody needs, and has no problem without them."""
    if table.enabled is False:
        resolver = Resolver(resolver.environment, unlooked, Findings(resolver.findings.file, resolver.findings.table))
    return _transport(table, resolver)


def _transport(table: ServerTable, resolver: Resolver) -> Transport | None:
    findings = resolver.findings
    if table.bearer_token is not None:
        findings.refuse("bearer_token", BEARER_TOKEN)
    if table.command is not None:
        _refuse_foreign(table, ONLY_HTTP, "belongs to HTTP servers, but `command` makes this a stdio server", findings)
        if table.scopes is not None:
            findings.warn("scopes", "has no effect for a stdio server")
        return _stdio(table, table.command, resolver)
    if table.url is not None:
        _refuse_foreign(table, ONLY_STDIO, "belongs to stdio servers, but `url` makes this an HTTP server", findings)
        return _http(table, table.url, resolver)
    if not findings.verdict:
        findings.refuse(None, "needs `command` (a stdio server) or `url` (an HTTP server)")
    return None


def _refuse_foreign(table: ServerTable, keys: tuple[str, ...], why: str, findings: Findings) -> None:
    for key in keys:
        if getattr(table, key) is not None:
            findings.refuse(key, f"{why}; remove one of them")


def _stdio(table: ServerTable, command: str | Secret | Reference, resolver: Resolver) -> StdioTransport:
    transport = StdioTransport(
        command=resolver.text("command", command),
        args=tuple(resolver.text(f"args[{place}]", arg) for place, arg in enumerate(table.args or ())),
        env=_child_environment(table, resolver),
        cwd=_expanded(resolver.optional("cwd", table.cwd)),
    )
    if not reveal(transport.command).strip() and not resolver.findings.verdict:
        resolver.findings.refuse("command", "must not be blank")
    texts = {"command": transport.command, **{f"args[{i}]": arg for i, arg in enumerate(transport.args)}}
    _refuse_characters(texts | {f"env.{name}": value for name, value in transport.env.items()}, "\0", resolver)
    return transport


def _child_environment(table: ServerTable, resolver: Resolver) -> dict[str, Secret]:
    """`env_vars` first, so that `env` may replace what is forwarded."""
    values: dict[str, Secret] = {}
    for place, variable in enumerate(table.env_vars or ()):
        found = resolver.variable(variable.name)
        if variable.source == "remote":
            resolver.findings.warn(f"env_vars[{place}]", f'{variable.name} is "remote", which has no meaning here')
        elif found is None:
            resolver.findings.warn(f"env_vars[{place}]", f"the environment variable {variable.name} is not set")
        else:
            values[variable.name] = found
    for name, value in (table.env or {}).items():
        if not name or "=" in name or "\0" in name:
            resolver.findings.refuse(f"env.{shown(name)}", "is no name of an environment variable")
        values[name] = resolver.secret(f"env.{name}", value)
    return values


def _expanded(folder: Text | None) -> Text | None:
    return str(Path(folder).expanduser()) if isinstance(folder, str) and folder.startswith("~/") else folder


def _http(table: ServerTable, url: str | Secret | Reference, resolver: Resolver) -> HttpTransport:
    oauth = table.oauth or OAuthTable()
    return HttpTransport(
        url=_url(resolver.text("url", url), resolver),
        headers=_headers(table, resolver),
        legacy_sse=table.legacy_sse,
        scopes=tuple(table.scopes or ()),
        oauth_client_id=resolver.optional("oauth.client_id", oauth.client_id),
        oauth_callback_port=oauth.callback_port,
        oauth_resource=resolver.optional("oauth_resource", table.oauth_resource),
    )


def _url(url: Text, resolver: Resolver) -> Text:
    """The URL; as a secret when a password or a query (which is where API keys stand) is part of it."""
    try:
        parts = urlsplit(reveal(url))
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        if not resolver.findings.verdict:
            resolver.findings.refuse("url", 'must be a complete URL such as "https://example.org/mcp"')
        return ""
    return Secret(url) if isinstance(url, str) and (parts.query or "@" in parts.netloc) else url


def _headers(table: ServerTable, resolver: Resolver) -> dict[str, Secret]:
    """Static headers, then those from the environment, then the bearer token; a later one replaces an earlier one."""
    headers = {
        name: resolver.secret(f"http_headers.{name}", value) for name, value in (table.http_headers or {}).items()
    }
    for name, variable in (table.env_http_headers or {}).items():
        found = resolver.variable(variable)
        if found is None:
            key = f"env_http_headers.{name}"
            resolver.findings.warn(key, f"the environment variable {variable} is not set; the header is left out")
        else:
            headers[name] = found
    token = _bearer_token(table, resolver)
    if token is not None:
        headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
        headers["Authorization"] = token
    for name in headers:
        if not HEADER_NAME.fullmatch(name):
            resolver.findings.refuse(f"http_headers.{shown(name)}", "is no name of an HTTP header")
    _refuse_characters({f"http_headers.{name}": value for name, value in headers.items()}, "\0\r\n", resolver)
    return headers


def _bearer_token(table: ServerTable, resolver: Resolver) -> Secret | None:
    name = table.bearer_token_env_var
    if name is None:
        return None
    token = resolver.variable(name)
    if token is None or not token.reveal().strip():
        resolver.findings.refuse("bearer_token_env_var", f"the environment variable {name} is not set; set it")
        return None
    return Secret(f"Bearer {token.reveal().strip()}", token.source)


def _refuse_characters(texts: Mapping[str, Text], characters: str, resolver: Resolver) -> None:
    for key, text in texts.items():
        if any(character in reveal(text) for character in characters):
            resolver.findings.refuse(key, "holds a line break or a zero byte, which cannot be passed on")


def _config(name: str, table: ServerTable, transport: Transport, source: str) -> ServerConfig:
    milliseconds = table.startup_timeout_ms
    startup = table.startup_timeout_sec or (milliseconds / 1000 if milliseconds else DEFAULT_STARTUP_TIMEOUT)
    return ServerConfig(
        name=name,
        transport=transport,
        enabled=_or(table.enabled, True),
        required=_or(table.required, False),
        startup_timeout=startup,
        tool_timeout=table.tool_timeout_sec or DEFAULT_TOOL_TIMEOUT,
        enabled_tools=None if table.enabled_tools is None else tuple(table.enabled_tools),
        disabled_tools=tuple(table.disabled_tools or ()),
        supports_parallel_tool_calls=_or(table.supports_parallel_tool_calls, False),
        default_tools_approval_mode=table.default_tools_approval_mode or "auto",
        tool_approval_modes={k: t.approval_mode for k, t in (table.tools or {}).items() if t.approval_mode},
        grants_origins=_or(table.grants_origins, name == "codex_apps"),
        gated=_or(table.gated, name == "codex_apps"),
        protocol=table.protocol or "auto",
        on_bad_tool=table.on_bad_tool or "refuse",
        restart=table.restart or "always",
        line_limit=table.line_limit or DEFAULT_LINE_LIMIT,
        shared=table.shared,
        source=source,
    )


def _or(value: bool | None, default: bool) -> bool:
    return default if value is None else value


def _with_problem(config: ServerConfig, table: Mapping[str, Any], verdict: str | None) -> ServerConfig:
    """A server that cannot be used still is required, or switched off, as its table says (CON-2)."""
    if verdict is None:
        return config

    return replace(
        config,
        enabled=table.get("enabled") is not False,
        required=table.get("required") is True,
        problem=verdict,
    )


def _placeholder(table: Mapping[str, Any]) -> Transport:
    """Says of a server that cannot be used at least which kind it was meant to be."""
    return HttpTransport(url="") if "url" in table and "command" not in table else StdioTransport(command="")
