"""Adding, removing and switching servers in a TOML file.

Owns: the three edits of a table `[mcp_servers.NAME]`, and the proof that an edit changed nothing else.
Never: edits JSON (its comments and places belong to another program), or judges a table; `servers` does.
"""

import tomllib
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from interlock.configuration.documents import is_json, parse
from interlock.configuration.rewriting import Rewritten, rewrite
from interlock.configuration.toml_text import NotUnderHeader, with_pair, with_table, without_table
from interlock.vocabulary.errors import InvalidRequest

HEADING = "mcp_servers"

Document = dict[str, Any]


def add_servers(file: Path, tables: Mapping[str, Mapping[str, Any]], *, replace: bool = False) -> Rewritten:
    """Append the tables of these servers to `file`, which is made if it does not exist.

    `replace`: a server of the same name that stands there is taken out first.

    Raises:
        InvalidRequest: a server of that name stands there already; the file is JSON, malformed, or cannot be written.
            Nothing was written then.
    """

    def change(text: str) -> str:
        present = _servers(_decoded(file, text), file).keys() & tables.keys()
        if present and not replace:
            name = min(present)
            raise InvalidRequest(f"there is already a server {name!r} in {file}; use --replace, or another name")
        for name in sorted(present):
            text = _removed(file, text, name)
        for name, table in tables.items():
            text = _added(file, text, name, table)
        return text

    return _edit(file, change, "name another file, or none for that of the home folder")


def remove_server(file: Path, name: str) -> Rewritten:
    """Take the server's table out of `file`, comments between tables stay.

    Raises:
        InvalidRequest: it has no such server; the file is JSON, malformed, or cannot be written.
    """

    def change(text: str) -> str:
        _refuse_absent(file, text, name)
        return _removed(file, text, name)

    return _edit(file, change, f"take {name} out of it by hand")


def set_enabled(file: Path, name: str, enabled: bool) -> Rewritten:
    """Write `enabled` into the server's table.

    Raises:
        InvalidRequest: as `remove_server`.
    """

    def change(text: str) -> str:
        _refuse_absent(file, text, name)

        def expected(document: Document) -> None:
            document[HEADING][name]["enabled"] = enabled

        def by_hand(text: str) -> str:
            return with_pair(text, (HEADING, name), "enabled", "true" if enabled else "false")

        return _proved(file, text, by_hand, expected)

    return _edit(file, change, f'write "disabled": {str(not enabled).lower()} into {name} by hand')


def rendered(name: str, table: Mapping[str, Any]) -> str:
    """The lines of `[mcp_servers.NAME]`."""
    document = tomlkit.document()
    servers = tomlkit.table(is_super_table=True)
    servers.append(name, _item(table))
    document.append(HEADING, servers)
    return tomlkit.dumps(document).rstrip("\n") + "\n"


def _item(table: Mapping[str, Any]) -> Any:
    item = tomlkit.table()
    for key, value in sorted(table.items(), key=lambda pair: isinstance(pair[1], Mapping)):  # tables come last
        item.append(key, _value(value))
    return item


def _value(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return tomlkit.item(value)
    if len(value) == 1:
        ((key, inner),) = value.items()
        if key in {"env", "keyring", "file"} and isinstance(inner, str):  # a reference
            return tomlkit.value(f"{{ {key} = {tomlkit.item(inner).as_string()} }}")
    return _item(value)


def _edit(file: Path, change: Callable[[str], str], by_hand: str) -> Rewritten:
    if is_json(file):
        raise InvalidRequest(f"cannot edit {file}: only TOML files are edited; {by_hand}")
    return rewrite(file, change)


def _added(file: Path, text: str, name: str, table: Mapping[str, Any]) -> str:
    def expected(document: Document) -> None:
        document.setdefault(HEADING, {})[name] = deepcopy(dict(table))

    return _proved(file, text, lambda text: with_table(text, rendered(name, table)), expected)


def _removed(file: Path, text: str, name: str) -> str:
    def expected(document: Document) -> None:
        del document[HEADING][name]

    return _proved(file, text, lambda text: without_table(text, (HEADING, name)), expected)


def _proved(file: Path, text: str, by_hand: Callable[[str], str], expected: Callable[[Document], None]) -> str:
    """The edited text, which means exactly what it meant with the expected change.

    First as text. A server that is written inline or by dotted keys is left to tomlkit, which keeps comments, too, but
    takes those before the next table for the last lines of this one.
    """
    wanted = tomllib.loads(text)
    expected(wanted)
    for edit in (by_hand, lambda text: _edited_by_tomlkit(text, expected)):
        try:
            edited = edit(text)
            if _without_empty(tomllib.loads(edited)) == _without_empty(wanted):
                return edited
        except (NotUnderHeader, TOMLKitError, tomllib.TOMLDecodeError, LookupError, TypeError, ValueError):
            continue
    raise InvalidRequest(f"cannot edit {file}: its layout is too unusual to be edited safely; change it by hand")


def _edited_by_tomlkit(text: str, expected: Callable[[Document], None]) -> str:
    document = tomlkit.parse(text)
    expected(document)
    return tomlkit.dumps(document)


def _without_empty(document: Document) -> Document:
    return {key: value for key, value in document.items() if key != HEADING or value}


def _refuse_absent(file: Path, text: str, name: str) -> None:
    if name not in _servers(_decoded(file, text), file):
        raise InvalidRequest(f"there is no server {name!r} in {file}; `interlock mcp get {name}` shows where it stands")


def _servers(document: Document, file: Path) -> Mapping[str, Any]:
    servers = document.get(HEADING, {})
    if not isinstance(servers, dict):
        raise InvalidRequest(f"cannot edit {file}: {HEADING} must be a table of tables; correct that first")
    return servers


def _decoded(file: Path, text: str) -> Document:
    return parse(file, text.encode("utf-8"))
