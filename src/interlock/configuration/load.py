"""The files of a user and a project become one Configuration.

Owns: which files are read, and in which order (BEHAVIOUR sections 2 and 10).
Never: reads a file itself (`layers` does), starts anything, or writes anything.

Layers, nearest last: `config.toml` in the home folder, `.mcp.json` and `.interlock.toml` of the project, the file that
was named. A server is taken whole from the nearest file that has its name.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.configuration.platform import home_folder
from interlock.configuration.trust import TrustStore
from interlock.configuration.values import Configuration
from interlock.vocabulary.errors import InvalidRequest

if TYPE_CHECKING:
    from interlock.configuration.layers import Layer, Written

HOME_FILE = "config.toml"
PROJECT_FILES = (".mcp.json", ".interlock.toml")


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
    layers = _layers(path, home, project, environment)
    if not layers:
        return Configuration()
    from interlock.configuration.layers import compose

    return compose(layers, environment)


def written(
    name: str,
    path: str | Path | None = None,
    *,
    home: str | Path | None = None,
    project: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> "tuple[Written, ...]":
    """Every place where the server `name` is written, the one that counts last; JSON in the keys of a TOML table.

    Arguments and errors are those of `load`.
    """
    layers = _layers(path, home, project, environment)
    return tuple(layer.written(name) for layer in layers if name in layer.servers)


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
    return _places(_layers(path, home, project, environment))


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What the files say as far as they can be read.

    `places` is what `places` gives. `unreadable` has the error of each file that cannot be read or is malformed as a
    whole; nothing of such a file is in the other two.
    """

    configuration: Configuration
    places: Mapping[str, tuple[str, ...]]
    unreadable: Mapping[str, InvalidRequest]


def survey(
    path: str | Path | None = None,
    *,
    home: str | Path | None = None,
    project: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Survey:
    """Read the configuration as `load` does, and go on with the other files where it would raise; every file once."""
    unreadable: dict[str, InvalidRequest] = {}
    layers: list[Layer] = []
    for file, read in _readings(path, home, project, environment):
        try:
            layers.append(read())
        except InvalidRequest as error:
            unreadable[str(file)] = error
    if not layers:
        return Survey(configuration=Configuration(), places={}, unreadable=unreadable)
    from interlock.configuration.layers import compose

    return Survey(configuration=compose(layers, environment), places=_places(layers), unreadable=unreadable)


def _places(layers: "Sequence[Layer]") -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for layer in layers:
        for name, (_, source) in layer.servers.items():
            found[name] = (*found.get(name, ()), f"{source.file} [{source.heading}.{name}]")
    return found


def _layers(
    path: str | Path | None, home: str | Path | None, project: str | Path | None, environment: Mapping[str, str]
) -> "Sequence[Layer]":
    return [read() for _, read in _readings(path, home, project, environment)]


def _readings(
    path: str | Path | None, home: str | Path | None, project: str | Path | None, environment: Mapping[str, str]
) -> "Sequence[tuple[Path, Callable[[], Layer]]]":
    """The files that are read, the nearest last, and what reads each."""
    if path is None and home is None and project is None:
        home = home_folder(environment)
    named = None if path is None else Path(path)
    files: list[tuple[Path, bool]] = []
    if home is not None and _may_exist(file := Path(home) / HOME_FILE) and not _same(file, named):
        files.append((file, False))
    if project is not None:
        files += [(file, True) for file in project_files(project) if not _same(file, named)]
    if named is not None:
        files.append((named, False))
    if not files:
        return ()
    # Here, because the models of tables take longer to load than a command needs that finds no file.
    from interlock.configuration.layers import read, read_if_trusted

    store = TrustStore(Path(home) if home is not None else home_folder(environment))
    return [
        (file, partial(read_if_trusted, file, store, environment) if is_project else partial(read, file, environment))
        for file, is_project in files
    ]


def _same(file: Path, named: Path | None) -> bool:
    """Whether `file` is the one that was named: it is read once then, in the named one's place."""
    if named is None:
        return False
    try:
        return file.samefile(named)
    except OSError:  # reading the one that is not there, or may not be seen, says so
        return False


def _may_exist(file: Path) -> bool:
    """Whether it is there, or in a folder that may not be looked into: then reading it says why."""
    try:
        return file.exists()
    except OSError:
        return True


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
    """The configuration files that a project's folder holds; none where it may not be looked into."""
    candidates = (Path(project).absolute() / name for name in PROJECT_FILES)
    return tuple(file for file in candidates if os.path.isfile(file))
