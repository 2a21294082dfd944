"""Other programs' JSON files become tables in our keys (CFG-2).

Owns: the dialects of `.mcp.json`, Claude Desktop and VS Code: names of keys, `${…}` in texts, inputs.
Never: guesses; what has no translation is a problem with a way out.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlock.configuration.documents import Members
from interlock.configuration.findings import Findings, shown
from interlock.configuration.values import Problem
from interlock.vocabulary.secret import Secret

HEADINGS = ("mcpServers", "servers")

RENAMED = {
    "headers": "http_headers",
    "serverUrl": "url",
    "httpUrl": "url",
    "enabledTools": "enabled_tools",
    "disabledTools": "disabled_tools",
    "includeTools": "enabled_tools",
    "excludeTools": "disabled_tools",
}
SAME = ("command", "args", "env", "cwd", "url", "required", "enabled", "scopes")
TRANSPORTS = {
    "stdio": None,
    "local": None,
    "http": None,
    "streamable-http": None,
    "streamableHttp": None,
    "streamable_http": None,
    "remote": None,
    "sse": True,
}
"""Values of `type` or `transport`, with what each says about HTTP+SSE; the rest follows from command or url."""

IGNORED = {
    "alwaysAllow": "approval is not taken from here; write tools.NAME.approval_mode into the home configuration",
    "autoApprove": "approval is not taken from here; write tools.NAME.approval_mode into the home configuration",
    "trust": "approval is not taken from here; write default_tools_approval_mode into the home configuration",
    "timeout": "its unit differs between programs; write tool_timeout_sec into a TOML file",
    "headersHelper": "is not supported; the server is asked without these headers",
    "dev": "has no effect here",
    "gallery": "has no effect here",
    "version": "has no effect here",
    "description": None,
    "name": None,
}

_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def input_variable(identifier: str) -> str:
    """The environment variable that answers a VS Code input."""
    return "INTERLOCK_INPUT_" + re.sub(r"[^A-Za-z0-9]", "_", identifier).upper()


@dataclass(frozen=True, slots=True)
class Dialect:
    """One JSON file: its heading and what its texts may refer to. `workspace` is the folder of the project."""

    heading: str
    workspace: Path
    environment: Mapping[str, str]
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    def translated(self, entry: Mapping[str, Any], findings: Findings) -> dict[str, Any]:
        """The entry in the keys of `[mcp_servers.NAME]`, its texts as they are written; what has no key of ours is
        found fatal or odd."""
        table: dict[str, Any] = {}
        for key, value in entry.items():
            if value is not None:
                self._translate(key, value, table, findings)
        return table

    def table(self, entry: Mapping[str, Any], findings: Findings) -> dict[str, Any]:
        """The entry as `translated` gives it, with every `${…}` in its texts replaced."""
        table = self.translated(entry, findings)
        if table.get("enabled") is False:
            return table  # nobody needs the values of its variables
        return {key: self._expand(key, value, findings) for key, value in table.items()}

    def _translate(self, key: str, value: Any, table: dict[str, Any], findings: Findings) -> None:
        if key in SAME:
            table[key] = _variables(value) if key == "env" else value
        elif key in RENAMED:
            table[RENAMED[key]] = value
        elif key in {"type", "transport"}:
            _transport(key, value, table, findings)
        elif key == "disabled":
            table["enabled"] = not value if isinstance(value, bool) else value
        elif key == "oauth" and isinstance(value, Mapping):
            names = {"clientId": "client_id", "callbackPort": "callback_port"}
            table["oauth"] = {names.get(name, name): setting for name, setting in value.items()}
        elif key == "envFile":
            findings.refuse(key, "a file of variables cannot be read here; write the variables into `env`")
        elif key in IGNORED:
            if (sentence := IGNORED[key]) is not None:
                findings.warn(key, sentence)
        else:
            findings.warn(key, "unknown key; it is ignored")

    def _expand(self, key: str, value: Any, findings: Findings) -> Any:
        if isinstance(value, str):
            return self._text(key, value, findings)
        if isinstance(value, list):
            return [self._expand(f"{key}[{place}]", item, findings) for place, item in enumerate(value)]
        if isinstance(value, Mapping):
            return {name: self._expand(f"{key}.{shown(name)}", item, findings) for name, item in value.items()}
        return value

    def _text(self, key: str, text: str, findings: Findings) -> str | Secret:
        """The text with every `${…}` replaced; a Secret as soon as one value came from outside the file."""
        sources: list[str] = []

        def replacement(match: re.Match[str]) -> str:
            value = self._value(match[1], sources)
            if value is None:
                findings.refuse(key, self._missing(match[1]))
            return value or ""

        expanded = _VARIABLE.sub(replacement, text)
        return Secret(expanded, ", ".join(sources)) if sources else expanded

    def _value(self, inside: str, sources: list[str]) -> str | None:
        if inside in PLACES:
            return PLACES[inside](self.workspace)
        kind, _, name = inside.partition(":")
        if kind == "input" and name in self.inputs:
            return self._from_environment(input_variable(name), self.inputs[name].get("default"), sources)
        if kind == "env" and _NAME.fullmatch(name):
            return self._from_environment(name, None, sources)
        name, dash, default = inside.partition(":-")
        if _NAME.fullmatch(name):
            return self._from_environment(name, default if dash else None, sources)
        return None

    def _from_environment(self, name: str, default: Any, sources: list[str]) -> str | None:
        value = self.environment.get(name)
        if not value and isinstance(default, str):  # as in a shell, `:-` also replaces an empty value
            return default
        sources.append(f"environment variable {name}")
        return value

    def _missing(self, inside: str) -> str:
        kind, _, name = inside.partition(":")
        if kind == "input" and name in self.inputs:
            return f"asks for the input {shown(name)}; set the environment variable {input_variable(name)} to its value"
        name = name if kind == "env" else inside
        if _NAME.fullmatch(name):
            return f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}"
        return f"${{{shown(inside)}}} has no meaning here; write the value, or the name of an environment variable"


PLACES: Mapping[str, Callable[[Path], str]] = {
    "workspaceFolder": str,
    "workspaceRoot": str,
    "workspaceFolderBasename": lambda workspace: workspace.name,
    "cwd": str,
    "userHome": lambda workspace: str(Path.home()),
    "pathSeparator": lambda workspace: os.sep,
    "/": lambda workspace: os.sep,
}
"""VS Code's names of places."""


def open_dialect(
    document: Mapping[str, Any], file: Path, environment: Mapping[str, str]
) -> tuple[Dialect, dict[str, Any], list[Problem]]:
    """How to read a JSON file, its servers by name, and what is wrong with its top level."""
    findings = Findings(str(file), "")
    heading = next((key for key in HEADINGS if isinstance(document.get(key), dict)), None)
    if heading is None:
        findings.warn(None, "holds no servers: there is no object `mcpServers` or `servers`")
    for key in document:
        if key not in {*HEADINGS, "inputs", "$schema"}:
            findings.warn(key, "unknown key; it is ignored")
    servers = document[heading] if heading else {}
    for name in servers.repeated if isinstance(servers, Members) else ():
        findings.warn(
            f"{heading}.{shown(name)}", "is written more than once; remove all but the last one, which counts"
        )
    folder = file.absolute().parent
    workspace = folder.parent if folder.name in {".vscode", ".cursor"} else folder
    declared = document.get("inputs")
    inputs = {
        entry["id"]: entry
        for entry in (declared if isinstance(declared, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("id"), str)
    }
    dialect = Dialect(heading or "mcpServers", workspace, environment, inputs)
    return dialect, dict(servers), findings.problems


def _variables(value: Any) -> Any:
    """Numbers and booleans in `env` as texts, as VS Code takes them; null means the variable is not passed on."""
    if not isinstance(value, Mapping):
        return value
    return {name: _plain(item) for name, item in value.items() if item is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _transport(key: str, value: Any, table: dict[str, Any], findings: Findings) -> None:
    if not isinstance(value, str) or value not in TRANSPORTS:
        findings.refuse(key, 'this transport is not supported; use "stdio", "http" or "sse"')
    elif TRANSPORTS[value] is not None:
        table["legacy_sse"] = TRANSPORTS[value]
