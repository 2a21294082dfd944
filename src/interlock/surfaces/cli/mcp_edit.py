"""`interlock mcp add`, `remove`, `enable`, `disable`: a user's configuration is edited.

Owns: from options to a table, which file is edited, what is said afterwards.
Never: edits a file that the user did not name and that is not where the server stands.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.configuration import Configuration, TrustStore, load
from interlock.configuration.importing import with_full_paths
from interlock.configuration.layers import Written
from interlock.configuration.load import HOME_FILE, PROJECT_FILES, written
from interlock.configuration.rewriting import Rewritten
from interlock.configuration.server_tables import add_servers, remove_server, set_enabled
from interlock.configuration.servers import structural_problems
from interlock.surfaces.cli.opening import home, refuse_unknown
from interlock.surfaces.cli.output import print_json, say, warn
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.secret import MASK

REFERENCES = ("env", "keyring", "file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """The options of `mcp add`."""

    name: str
    command: Sequence[str] = ()
    url: str | None = None
    env: Sequence[str] = ()
    secrets: Sequence[str] = ()
    headers: Sequence[str] = ()
    bearer_token_env_var: str | None = None
    cwd: str | None = None
    startup_timeout: float | None = None
    tool_timeout: float | None = None
    required: bool = False
    disabled: bool = False
    replace: bool = False


def add(addition: Addition, config: Path | None, as_json: bool) -> None:
    file = config or home() / HOME_FILE
    table = table_of(addition)
    if file.absolute().parent != Path.cwd():
        table = from_anywhere(table, Path.cwd())
    for problem in structural_problems(addition.name, table, file):
        raise InvalidRequest(f"cannot add server {addition.name!r}: {problem}")
    done = add_servers(file, {addition.name: table}, replace=addition.replace)
    keep_trust(file, done)
    for variable in plain_secrets(table):
        warn(
            f"the value of {variable} stands in {file} as you wrote it; to keep it elsewhere, use "
            f"--secret {variable}=keyring:SERVICE/NAME, or --secret {variable}=env:VARIABLE"
        )
    say(f"added {addition.name} to {file}; `interlock doctor {addition.name}` tries it")
    tell_states([addition.name], file, config)
    if as_json:
        print_json({"server": addition.name, "file": str(file), "table": masked_table(table)})


def remove(name: str, config: Path | None, as_json: bool) -> None:
    file, others = _place(name, config)
    keep_trust(file, remove_server(file, name))
    say(f"removed {name} from {file}")
    for other in others:
        say(f"{other} has a server of this name, too; that one counts now")
    if as_json:
        print_json({"server": name, "file": str(file), "removed": True})


def switch(name: str, enabled: bool, config: Path | None, as_json: bool) -> None:
    file, _ = _place(name, config)
    keep_trust(file, set_enabled(file, name, enabled))
    say(f"{'enabled' if enabled else 'disabled'} {name} in {file}")
    if as_json:
        print_json({"server": name, "file": str(file), "enabled": enabled})


def table_of(addition: Addition) -> dict[str, Any]:
    """The table `[mcp_servers.NAME]` that the options describe.

    Raises:
        InvalidRequest: an option cannot be read, or belongs to the other transport.
    """
    if bool(addition.command) == (addition.url is not None):
        raise InvalidRequest(
            f"cannot add server {addition.name!r}: give either --url URL or, after --, the command that starts it, "
            f"as in: interlock mcp add {addition.name} -- npx -y some-server"
        )
    table = _http(addition) if addition.url is not None else _stdio(addition)
    table |= {
        "startup_timeout_sec": addition.startup_timeout,
        "tool_timeout_sec": addition.tool_timeout,
        "required": addition.required or None,
        "enabled": False if addition.disabled else None,
    }
    return {key: value for key, value in table.items() if value not in (None, [], {}, ())}


def from_anywhere(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The paths that were typed in `folder` in full: the file that they are written to is read from other folders, too.

    A command without a slash is looked up on PATH, and one that is not there stays as it is.
    """
    started_in = folder / table.get("cwd", "")
    full = {"cwd": str(started_in)} if "cwd" in table else {}
    command = table.get("command", "")
    if "/" in command and (started_in / command).is_file():
        full["command"] = str(started_in / command)
    return {key: with_full_paths(value, folder) for key, value in (table | full).items()}


def _stdio(addition: Addition) -> dict[str, Any]:
    for option, value in (("--header", addition.headers), ("--bearer-token-env-var", addition.bearer_token_env_var)):
        if value:
            raise InvalidRequest(f"cannot use {option} for a command: it belongs to --url; use --env or --secret")
    pairs = [text.partition("=") for text in addition.env]
    command, *arguments = addition.command
    return {
        "command": command,
        "args": arguments,
        "cwd": addition.cwd,
        "env_vars": [name for name, equals, _ in pairs if not equals],
        "env": {name: value for name, equals, value in pairs if equals} | dict(_references(addition.secrets)),
    }


def _http(addition: Addition) -> dict[str, Any]:
    for option, value in (("--env", addition.env), ("--cwd", addition.cwd)):
        if value:
            raise InvalidRequest(f"cannot use {option} with --url: it belongs to a command; use --header or --secret")
    headers: dict[str, Any] = {}
    for text in addition.headers:
        name, colon, value = text.partition(":")
        if not colon:
            raise InvalidRequest("cannot read a --header: write it as 'Name: value'")
        headers[name.strip()] = value.strip()
    return {
        "url": addition.url,
        "bearer_token_env_var": addition.bearer_token_env_var,
        "http_headers": headers | dict(_references(addition.secrets)),
    }


def _references(texts: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    for text in texts:
        name, _, reference = text.partition("=")
        kind, colon, target = reference.partition(":")
        if not (name and colon and target and kind in REFERENCES):
            raise InvalidRequest(
                f"cannot read --secret {name}: write NAME=env:VARIABLE, NAME=keyring:SERVICE/NAME or NAME=file:PATH"
            )
        yield name, {kind: target}


def plain_secrets(table: Mapping[str, Any]) -> tuple[str, ...]:
    """The variables and headers whose values look like secrets and stand in the table itself."""
    written_out = {**table.get("env", {}), **table.get("http_headers", {})}
    words = ("key", "token", "secret", "password", "authorization", "credential")
    return tuple(
        name
        for name, value in written_out.items()
        if isinstance(value, str) and value and any(word in name.lower() for word in words)
    )


def masked_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table with every value of `env` and of a header masked (CFG-4); references are safe to show."""
    return {key: _masked(key, value) for key, value in table.items()}


def _masked(key: str, value: Any) -> Any:
    if key in {"env", "http_headers"} and isinstance(value, Mapping):
        return {name: MASK if isinstance(inner, str) else inner for name, inner in value.items()}
    if key == "url" and isinstance(value, str) and ("?" in value or "@" in value):
        return MASK  # a key or a password is part of it
    return value


def keep_trust(file: Path, done: Rewritten) -> None:
    """A project's file that the user trusted, or that this command made, is trusted with the user's own edit."""
    store = TrustStore(home())
    if file.name not in PROJECT_FILES:
        return
    if done.before is None or store.trusts(file, done.before):
        store.trust(file, done.after)


def tell_states(names: Sequence[str], file: Path, config: Path | None) -> None:
    """What stands in the way of the servers that were just written."""
    configuration = _configuration(config)
    for name in names:
        server = configuration.servers.get(name)
        if server is None:
            warn(f"{file} is not trusted yet, so {name} is not used here; run `interlock mcp trust`")
        elif not server.source.startswith(f"{file} ["):
            warn(f"{server.source} has a server of this name, too, and is the one that counts here")
        elif server.problem is not None:
            warn(f"server {name!r} cannot start yet: {server.problem}")


def _place(name: str, config: Path | None) -> tuple[Path, tuple[str, ...]]:
    """The file in which the server that counts stands, and the other places that have one of its name."""
    refuse_unknown(_configuration(config), name)
    *others, last = _written(name, config)
    return last.file, tuple(other.place for other in reversed(others))


def _written(name: str, config: Path | None) -> tuple[Written, ...]:
    return written(name, config, home=home(), project=Path.cwd(), environment=os.environ)


def _configuration(config: Path | None) -> Configuration:
    return load(config, home=home(), project=Path.cwd(), environment=os.environ)
