"""Servers of other hosts become tables of ours, to be written down.

Owns: reading one file of another host, what its entries become, and the sentences about what has no translation.
Never: writes a file, puts the value of a variable into a table, or drops anything without a word.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlock.configuration.codex import ONLY_CODEX_SERVER
from interlock.configuration.documents import is_json, parse, read_bytes
from interlock.configuration.findings import Findings, shown
from interlock.configuration.json_files import PLACES, Dialect, input_variable, open_dialect
from interlock.configuration.other_hosts import HostFile
from interlock.configuration.servers import NAME, structural_problems
from interlock.configuration.tables import ServerTable, unknown_keys
from interlock.vocabulary.errors import InvalidRequest

_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPEN = frozenset({"HOME", "USER", "LOGNAME"})
"""Variables whose values are no secrets and belong to this user: written out where a text holds more than them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A server of another host. `name` is the one that it would have here.

    `table` is None when it cannot be taken over, which `problem` then explains. `notes` are sentences about what is
    not as it was there.
    """

    host: HostFile
    written_as: str
    name: str
    table: Mapping[str, Any] | None = None
    problem: str | None = None
    notes: tuple[str, ...] = ()


def servers_of(host: HostFile, environment: Mapping[str, str]) -> tuple[Found, ...]:
    """The servers in a host's file; none if it holds none.

    Raises:
        InvalidRequest: it cannot be read or is malformed.
    """
    document = _member(parse(host.file, read_bytes(host.file)), host.member)
    if not is_json(host.file):
        tables = document.get("mcp_servers")
        entries = tables if isinstance(tables, Mapping) else {}
        return tuple(_from_toml(host, name, entry) for name, entry in entries.items())
    dialect, entries, _ = open_dialect(document, host.file, environment)
    if host.workspace is not None:
        dialect = Dialect(dialect.heading, host.workspace, environment, dialect.inputs)
    return tuple(_from_json(host, name, entry, dialect) for name, entry in entries.items())


def distinct(found: tuple[Found, ...]) -> tuple[Found, ...]:
    """Every name once: a second server of a name is left out if it is equal, else it is named after its host."""
    by_name: dict[str, Found] = {}
    for each in found:
        known = by_name.get(each.name)
        if known is None:
            by_name[each.name] = each
        elif known.table != each.table or each.table is None:
            other = _free(f"{each.name}-{each.host.key}", by_name)
            note = f"is named {other} here, because {known.host.file} has another {each.name}"
            by_name[other] = _renamed(each, other, note)
    return tuple(by_name.values())


def _from_toml(host: HostFile, written_as: str, entry: Any) -> Found:
    if not isinstance(entry, Mapping):
        return Found(host=host, written_as=written_as, name=written_as, problem="must be a table")
    notes = [f"`{shown(key)}`: {sentence}" for key, sentence in unknown_keys(ServerTable, entry, ONLY_CODEX_SERVER)]
    table = {key: value for key, value in entry.items() if key in ServerTable.model_fields}
    return _checked(host, written_as, with_full_paths(table, host.file.absolute().parent), notes)


def _from_json(host: HostFile, written_as: str, entry: Any, dialect: Dialect) -> Found:
    if not isinstance(entry, Mapping):
        return Found(host=host, written_as=written_as, name=written_as, problem="must be an object")
    findings = Findings(str(host.file), "")
    table = dialect.translated(entry, findings)
    refused = [f"`{p.key}`: {p.sentence}" for p in findings.problems if p.fatal]
    translation = _Translation(dialect, [f"`{p.key}`: {p.sentence}" for p in findings.problems if not p.fatal])
    table = translation.table(table)
    if refused or translation.refused:
        problem = "; ".join([*refused, *translation.refused])
        return Found(host=host, written_as=written_as, name=written_as, problem=problem, notes=tuple(translation.notes))
    return _checked(host, written_as, _where_it_starts(table, dialect.workspace), translation.notes)


def _checked(host: HostFile, written_as: str, table: dict[str, Any], notes: list[str]) -> Found:
    name = written_as if NAME.fullmatch(written_as) else _sanitised(written_as)
    if name != written_as:
        notes = [f"is named {name} here: a name may hold only letters, digits, _ and -", *notes]
    table = {key: value for key, value in table.items() if value not in ({}, [])}
    problems = structural_problems(name, table, host.file)
    return Found(
        host=host,
        written_as=written_as,
        name=name,
        table=None if problems else table,
        problem="; ".join(problems) or None,
        notes=tuple(notes),
    )


@dataclass(slots=True)
class _Translation:
    """The texts of one entry: `${…}` becomes a reference, or is a reason to refuse."""

    dialect: Dialect
    notes: list[str]
    refused: list[str] = field(default_factory=list[str])

    def table(self, table: Mapping[str, Any]) -> dict[str, Any]:
        translated = {key: self._value(key, value) for key, value in table.items() if key != "http_headers"}
        headers = table.get("http_headers")
        if isinstance(headers, Mapping):
            translated |= self._headers(headers)
        elif headers is not None:
            translated["http_headers"] = headers
        return translated

    def _headers(self, headers: Mapping[str, Any]) -> dict[str, Any]:
        """`Authorization: Bearer ${TOKEN}` has a key of its own."""
        rest: dict[str, Any] = {}
        result: dict[str, Any] = {}
        for name, value in headers.items():
            key = f"http_headers.{shown(name)}"
            variable = self._bearer(key, value) if name.lower() == "authorization" else None
            if variable is not None:
                result["bearer_token_env_var"] = variable
            else:
                rest[name] = self._value(key, value)
        return result | ({"http_headers": rest} if rest else {})

    def _bearer(self, key: str, value: Any) -> str | None:
        """The variable that holds the token, where it comes from one or from an input that has no value of its own."""
        token = re.fullmatch(r"Bearer \$\{(?:(env|input):)?([^{}:]+)\}", value) if isinstance(value, str) else None
        if token is None:
            return None
        if token[1] != "input":
            return token[2] if _VARIABLE_NAME.fullmatch(token[2]) else None
        declared = self.dialect.inputs.get(token[2])
        if declared is None or ("default" in declared and not declared.get("password")):
            return None
        return str(self._input(key, token[2])["env"])

    def _value(self, key: str, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(key, value)
        if isinstance(value, list):
            return [self._value(f"{key}[{place}]", item) for place, item in enumerate(value)]
        if isinstance(value, Mapping):
            return {name: self._value(f"{key}.{shown(name)}", item) for name, item in value.items()}
        return value

    def _text(self, key: str, text: str) -> Any:
        whole = _VARIABLE.fullmatch(text)
        text = _VARIABLE.sub(lambda match: self._place(match[1], alone=whole is not None) or match[0], text)
        variable = _VARIABLE.fullmatch(text)
        if variable is not None:
            return self._reference(key, variable[1])
        if (mixed := _VARIABLE.search(text)) is not None:
            self.refused.append(
                f"`{key}`: mixes text with {mixed[0]}, which a TOML table cannot; write the server by hand, "
                f"or go on using this file with --config"
            )
        return text

    def _place(self, inside: str, *, alone: bool) -> str | None:
        if inside in PLACES:
            return PLACES[inside](self.dialect.workspace)
        name = inside.removeprefix("env:")
        return None if alone or name not in _OPEN else self.dialect.environment.get(name)

    def _reference(self, key: str, inside: str) -> Any:
        kind, _, name = inside.partition(":")
        if kind == "input" and name in self.dialect.inputs:
            return self._input(key, name)
        variable, dash, default = inside.removeprefix("env:").partition(":-")
        if not _VARIABLE_NAME.fullmatch(variable):
            self.refused.append(f"`{key}`: ${{{shown(inside)}}} has no meaning here; write the value")
            return ""
        if not dash:
            return {"env": variable}
        if self.dialect.environment.get(variable):
            self.notes.append(f"`{key}`: takes the variable {variable}; the default of it is dropped")
            return {"env": variable}
        self.notes.append(f"`{key}`: is always the default; the variable {variable} is not looked at any more")
        return default

    def _input(self, key: str, identifier: str) -> Any:
        declared = self.dialect.inputs[identifier]
        default = declared.get("default")
        if isinstance(default, str) and not declared.get("password"):
            self.notes.append(f"`{key}`: is always the default of the input {shown(identifier)}; nobody is asked")
            return default
        variable = input_variable(identifier)
        self.notes.append(
            f"`{key}`: nobody is asked for the input {shown(identifier)}; set the variable {variable} instead"
        )
        return {"env": variable}


def _member(document: Mapping[str, Any], keys: tuple[str, ...]) -> Mapping[str, Any]:
    for key in keys:
        inner = document.get(key)
        document = inner if isinstance(inner, Mapping) else {}
    return document


def _where_it_starts(table: dict[str, Any], workspace: Path) -> dict[str, Any]:
    """A command relative to the other host's folder goes on meaning that folder."""
    command = table.get("command")
    if isinstance(command, str) and command.startswith((".", "..")) and "cwd" not in table:
        return table | {"cwd": str(workspace)}
    return table


def with_full_paths(value: Any, folder: Path) -> Any:
    """References to files relative to the old file, as references that hold anywhere."""
    if isinstance(value, list):
        return [with_full_paths(item, folder) for item in value]
    if not isinstance(value, Mapping):
        return value
    if list(value) == ["file"] and isinstance(value["file"], str):
        return {"file": str(folder / Path(value["file"]).expanduser())}
    return {key: with_full_paths(inner, folder) for key, inner in value.items()}


def _sanitised(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "server"


def _free(name: str, taken: Mapping[str, Any]) -> str:
    def candidates() -> Iterator[str]:
        yield name
        number = 2
        while True:
            yield f"{name}-{number}"
            number += 1

    return next(candidate for candidate in candidates() if candidate not in taken)


def _renamed(found: Found, name: str, note: str) -> Found:
    return Found(
        host=found.host,
        written_as=found.written_as,
        name=name,
        table=found.table,
        problem=found.problem,
        notes=(note, *found.notes),
    )


def readable(host: HostFile, environment: Mapping[str, str]) -> tuple[tuple[Found, ...], str | None]:
    """The servers of a file, or the sentence that says why there are none to be had."""
    try:
        return servers_of(host, environment), None
    except InvalidRequest as error:
        return (), error.message
