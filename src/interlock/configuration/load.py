"""The files of a user and a project become one Configuration.

Owns: which files are read, in which order, and who wins (BEHAVIOUR sections 2 and 10).
Never: starts anything, writes anything, or reads a project's file that the user did not trust.

Layers, nearest last: `config.toml` in the home folder, `.mcp.json` and `.interlock.toml` of the project, the file that
was named. A server is taken whole from the nearest file that has its name.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlock.configuration.documents import is_json, parse, read_bytes
from interlock.configuration.findings import Findings
from interlock.configuration.json_files import open_dialect
from interlock.configuration.platform import home_folder
from interlock.configuration.references import lookup
from interlock.configuration.servers import Source, build_server
from interlock.configuration.settings import Setting, Settings, collect
from interlock.configuration.trust import TrustStore
from interlock.configuration.values import Configuration, Problem
from interlock.vocabulary.server import ServerConfig

HOME_FILE = "config.toml"
PROJECT_FILES = (".mcp.json", ".interlock.toml")


@dataclass(frozen=True, slots=True)
class _Layer:
    """One file: its servers as they are written, its settings, what is wrong with its top level."""

    file: Path
    servers: Mapping[str, tuple[Any, Source]] = field(default_factory=dict[str, tuple[Any, Source]])
    settings: Mapping[str, Setting] = field(default_factory=dict[str, Setting])
    problems: tuple[Problem, ...] = ()


def load(
    path: str | Path | None = None,
    *,
    home: str | Path | None = None,
    project: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Configuration:
    """Read the configuration.

    Args:
        path: a file to read before all others (`--config`); `.json` in the dialects of CFG-2, else TOML.
        home: the home folder; its `config.toml` is read when it exists.
        project: the folder of a project; its files are read when they exist and the user trusted their content.
        environment: where references to variables are looked up.

    What is None is not read: `load("interlock.toml")` reads that file only. Without any of the three, the home folder
    of `environment` is read. A file that is named and lies in one of the other places is read once, as the named one.

    Raises:
        InvalidRequest: a file cannot be read or is malformed as a whole; the message has file, line and column.
    """
    return _compose(_layers(path, home, project, environment), environment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A server's table as it stands in one file; `table` is None when it is none, its texts are not resolved."""

    file: Path
    place: str
    table: Mapping[str, Any] | None


def written(
    name: str,
    path: str | Path | None = None,
    *,
    home: str | Path | None = None,
    project: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> tuple[Written, ...]:
    """Every place where the server `name` is written, the one that counts last; JSON in the keys of a TOML table.

    Arguments and errors are those of `load`.
    """
    layers = _layers(path, home, project, environment)
    return tuple(_written(name, *layer.servers[name]) for layer in layers if name in layer.servers)


def places(
    path: str | Path | None = None,
    *,
    home: str | Path | None = None,
    project: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Mapping[str, tuple[str, ...]]:
    """By server name, the places in which it is written, the one that counts last; no reference is looked up.

    Arguments and errors are those of `load`.
    """
    found: dict[str, tuple[str, ...]] = {}
    for layer in _layers(path, home, project, environment):
        for name, (_, source) in layer.servers.items():
            found[name] = (*found.get(name, ()), f"{source.file} [{source.heading}.{name}]")
    return found


def _written(name: str, table: Any, source: Source) -> Written:
    place = f"{source.file} [{source.heading}.{name}]"
    if not isinstance(table, Mapping):
        return Written(file=source.file, place=place, table=None)
    if source.as_written is not None:
        table = source.as_written(table, Findings(str(source.file), ""))
    return Written(file=source.file, place=place, table=table)


def _layers(
    path: str | Path | None, home: str | Path | None, project: str | Path | None, environment: Mapping[str, str]
) -> list[_Layer]:
    if path is None and home is None and project is None:
        home = home_folder(environment)
    named = None if path is None else Path(path)
    layers: list[_Layer] = []
    if home is not None and (file := Path(home) / HOME_FILE).exists() and not _same(file, named):
        layers.append(_read(file, environment))
    if project is not None:
        store = TrustStore(Path(home) if home is not None else home_folder(environment))
        files = [file for file in project_files(project) if not _same(file, named)]
        layers += [_read_if_trusted(file, store, environment) for file in files]
    if named is not None:
        layers.append(_read(named, environment))
    return layers


def _same(file: Path, named: Path | None) -> bool:
    """Whether `file` is the one that was named: it is read once then, in the named one's place."""
    return named is not None and named.exists() and file.samefile(named)


def watchable_files(
    path: str | Path | None = None,
    *,
    home: str | Path | None = None,
    project: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> tuple[Path, ...]:
    """Every file that `load` with these arguments would look at, existing or not, the memory of trust included."""
    if path is None and home is None and project is None:
        home = home_folder(environment)
    files: list[Path] = []
    if home is not None:
        files.append(Path(home) / HOME_FILE)
    if project is not None:
        folder = Path(home) if home is not None else home_folder(environment)
        files += [TrustStore(folder).file, *(Path(project) / name for name in PROJECT_FILES)]
    if path is not None:
        files.append(Path(path))
    return tuple(file.absolute() for file in files)


def project_files(project: str | Path) -> tuple[Path, ...]:
    """The configuration files that a project's folder holds."""
    candidates = (Path(project).absolute() / name for name in PROJECT_FILES)
    return tuple(file for file in candidates if file.is_file())


def _read(file: Path, environment: Mapping[str, str]) -> _Layer:
    return _layer(file, read_bytes(file), environment, restricted=False)


def _read_if_trusted(file: Path, store: TrustStore, environment: Mapping[str, str]) -> _Layer:
    """A file that is not trusted contributes nothing but the sentence that says so; it is not even parsed."""
    content = read_bytes(file)
    if store.trusts(file, content):
        return _layer(file, content, environment, restricted=True)
    sentence = "this project's file is not used, because its content was not trusted yet; run `interlock mcp trust`"
    return _Layer(file, problems=(Problem(file=str(file), table="", key=None, sentence=sentence),))


def _layer(file: Path, content: bytes, environment: Mapping[str, str], *, restricted: bool) -> _Layer:
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
        return _Layer(file, {name: (entry, source) for name, entry in entries.items()}, {}, tuple(problems))
    settings, problems = collect(document, file, restricted=restricted)
    tables = document.get("mcp_servers", {})
    if not isinstance(tables, dict):
        sentence = "must be a table of tables; its servers are left out"
        problems.append(Problem(file=str(file), table="", key="mcp_servers", sentence=sentence))
        tables = {}
    source = Source(file=file, restricted=restricted)
    return _Layer(file, {name: (table, source) for name, table in tables.items()}, settings, tuple(problems))


def _compose(layers: list[_Layer], environment: Mapping[str, str]) -> Configuration:
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
