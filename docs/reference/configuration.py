"""Writes docs/configuration.md from the models: python -m docs.reference.configuration

The text around the tables stands in configuration.txt.
"""

import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from docs.reference import keys
from interlock.configuration.approval_rules import RuleTable
from interlock.configuration.references import Reference
from interlock.configuration.tables import EnvironmentVariable, OAuthTable, ProviderTable, ServerTable, Table, ToolTable
from interlock.configuration.values import ProviderConfig
from interlock.vocabulary.server import ServerConfig, StdioTransport

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent / "configuration.md"
WORDS: dict[Any, str] = {
    str: "text",
    bool: "true or false",
    int: "whole number",
    float: "number",
    EnvironmentVariable: "text",
    OAuthTable: "table",
    ToolTable: "table",
}
SERVER_DEFAULTS = {
    "startup_timeout_sec": "startup_timeout",
    "tool_timeout_sec": "tool_timeout",
}
BY_NAME = {"grants_origins", "gated"}
"""Keys whose default depends on the server's name."""


def page() -> str:
    """The whole document."""
    text = (FOLDER / "configuration.txt").read_text(encoding="utf-8")
    server = ServerConfig(name="x", transport=StdioTransport(command="x"))
    tables = {
        "TOP LEVEL": _top_level(),
        "SERVER": _table(ServerTable, keys.SERVER, _server_defaults(server)),
        "PROVIDER": _table(ProviderTable, keys.PROVIDER, _provider_defaults()),
        "RULE": _table(RuleTable, keys.RULE, {}),
    }
    for name, lines in tables.items():
        text = text.replace(f"@{name}@", lines)
    return text


def _top_level() -> str:
    rows = [(key, keys.TOP_LEVEL_DEFAULTS.get(key, ""), sentence) for key, sentence in keys.TOP_LEVEL.items()]
    return _lines(("key", "default", "meaning"), rows)


def _table(model: type[Table], sentences: Mapping[str, str], defaults: Mapping[str, str]) -> str:
    rows = [
        (key, _type(field), defaults.get(key, _model_default(field)), sentences[key])
        for key, field in model.model_fields.items()
        if key not in keys.NOT_SHOWN or model is ProviderTable
    ]
    return _lines(("key", "type", "default", "meaning"), rows)


def _lines(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    def line(cells: tuple[str, ...]) -> str:
        return f"| {' | '.join(cells)} |"

    body = [line((f"`{key}`", *(cell.replace("|", "or") for cell in cells))) for key, *cells in rows]
    return "\n".join([line(headings), line(("---",) * len(headings)), *body])


def _server_defaults(server: ServerConfig) -> dict[str, str]:
    values = {key: getattr(server, SERVER_DEFAULTS.get(key, key), None) for key in ServerTable.model_fields}
    shown = {key: _value(value) for key, value in values.items() if key not in BY_NAME and value not in (None, (), {})}
    return shown | dict.fromkeys(BY_NAME, "`false`, but for `codex_apps`")


def _provider_defaults() -> dict[str, str]:
    default = ProviderConfig()
    kept = ("wire_api", "request_max_retries", "stream_max_retries")
    idle = {"stream_idle_timeout_ms": _value(default.stream_idle_timeout * 1000)}
    return {key: _value(getattr(default, key)) for key in kept} | idle


def _model_default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    return "" if field.default in (None, "") or field.default_factory else _value(field.default)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _type(field: FieldInfo) -> str:
    return " or ".join(dict.fromkeys(_words(field.annotation)))


def _words(annotation: Any) -> Iterator[str]:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _words(inner[0])
    elif origin in (Union, types.UnionType):
        yield from _union(inner)
    elif origin is Literal:
        yield " or ".join(f'`"{value}"`' for value in inner)
    elif origin is list:
        yield f"list of {_plural(inner[0])}"
    elif origin is dict:
        yield "table" if inner[1] in (Any, ToolTable) else f"table of {_plural(inner[1])}"
    elif annotation is not types.NoneType:
        yield WORDS[annotation]


def _union(members: tuple[Any, ...]) -> Iterator[str]:
    if Reference in members:
        yield "text or reference"
        return
    for member in members:
        yield from _words(member)


def _plural(annotation: Any) -> str:
    return {"text": "texts", "text or reference": "texts or references", "true or false": "true or false"}[
        " or ".join(_words(annotation))
    ]


def undescribed() -> dict[str, set[str]]:
    """By table, the keys that only the code or only the sentences have; empty when all is well."""
    from interlock.configuration.settings import FROM_ANYWHERE, FROM_USERS

    pairs: dict[str, tuple[set[str], set[str]]] = {
        "top level": (set(FROM_USERS | FROM_ANYWHERE), set(keys.TOP_LEVEL)),
        "server": (set(ServerTable.model_fields) - keys.NOT_SHOWN, set(keys.SERVER)),
        "provider": (set(ProviderTable.model_fields), set(keys.PROVIDER)),
        "rule": (set(RuleTable.model_fields), set(keys.RULE)),
    }
    return {name: code ^ said for name, (code, said) in pairs.items() if code != said}


if __name__ == "__main__":
    if missing := undescribed():
        raise SystemExit(f"docs/reference/keys.py is not complete: {missing}")
    PAGE.write_text(page(), encoding="utf-8")
