"""One file is a layer; layers on top of each other are a Configuration.

Owns: reading a layer, and who wins (BEHAVIOUR section 2): a server is taken whole from the nearest file that names it.
Never: decides which files there are, or reads a project's file that the user did not trust.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlock.configuration.documents import is_json, parse, read_bytes
from interlock.configuration.findings import Findings
from interlock.configuration.json_files import open_dialect
from interlock.configuration.limits import Setting
from interlock.configuration.references import lookup
from interlock.configuration.servers import Source, build_server
from interlock.configuration.settings import Settings, collect
from interlock.configuration.trust import TrustStore
from interlock.configuration.values import Configuration, Problem
from interlock.vocabulary.server import ServerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A server's table as it stands in one file; `table` is None when it is none, its texts are not resolved."""

    file: Path
    place: str
    table: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Layer:
    """One file: its servers as they are written, its settings, what is wrong with its top level."""

    file: Path
    servers: Mapping[str, tuple[Any, Source]] = field(default_factory=dict[str, tuple[Any, Source]])
    settings: Mapping[str, Setting] = field(default_factory=dict[str, Setting])
    problems: tuple[Problem, ...] = ()

    def written(self, name: str) -> Written:
        """The server `name` as it stands in this file, which has one."""
        table, source = self.servers[name]
        place = f"{source.file} [{source.heading}.{name}]"
        if not isinstance(table, Mapping):
            return Written(file=source.file, place=place, table=None)
        if source.as_written is not None:
            table = source.as_written(table, Findings(str(source.file), ""))
        return Written(file=source.file, place=place, table=table)


def read(file: Path, environment: Mapping[str, str]) -> Layer:
    return _layer(file, read_bytes(file), environment, restricted=False)


def read_if_trusted(file: Path, store: TrustStore, environment: Mapping[str, str]) -> Layer:
    """A file that is not trusted contributes nothing but the sentence that says so; it is not even parsed."""
    content = read_bytes(file)
    if store.trusts(file, content):
        return _layer(file, content, environment, restricted=True)
    sentence = "this project's file is not used, because its content was not trusted yet; run `interlock mcp trust`"
    return Layer(file, problems=(Problem(file=str(file), table="", key=None, sentence=sentence),))


def _layer(file: Path, content: bytes, environment: Mapping[str, str], *, restricted: bool) -> Layer:
    document = parse(file, content)
    if is_json(file):
        dialect, entries, problems = open_dialect(document, file, environment)
        source = Source(
            file=file,
            heading=dialect.heading,
            restricted=restricted,
            translate=dialect.table,
            as_written=dialect.translated,
        )
        return Layer(file, {name: (entry, source) for name, entry in entries.items()}, {}, tuple(problems))
    settings, problems = collect(document, file, restricted=restricted)
    tables = document.get("mcp_servers", {})
    if not isinstance(tables, dict):
        sentence = "must be a table of tables; its servers are left out"
        problems.append(Problem(file=str(file), table="", key="mcp_servers", sentence=sentence))
        tables = {}
    source = Source(file=file, restricted=restricted)
    return Layer(file, {name: (table, source) for name, table in tables.items()}, settings, tuple(problems))


def compose(layers: Sequence[Layer], environment: Mapping[str, str]) -> Configuration:
    """Layers, the nearest last, with every reference looked up in `environment` and beside its file."""
    problems = [problem for layer in layers for problem in layer.problems]
    written: dict[str, tuple[Any, Source]] = {}
    values: dict[str, Setting] = {}
    for layer in layers:
        written |= layer.servers
        values |= layer.settings
    servers: dict[str, ServerConfig] = {}
    for name, (table, source) in sorted(written.items()):
        find = lookup(environment, source.file.absolute().parent)
        servers[name], found = build_server(name, table, source, environment, find)
        problems += found
    settings = Settings(values)
    finders = {layer.file: lookup(environment, layer.file.absolute().parent) for layer in layers}
    policy, model = settings.policy(), settings.model(environment, finders)
    return Configuration(
        servers=servers,
        policy=policy,
        model=model,
        problems=tuple(problems + settings.problems),
        files=tuple(str(layer.file) for layer in layers),
        editable={
            name: str(source.file)
            for name, (_, source) in written.items()
            if not source.restricted and source.translate is None
        },
    )
