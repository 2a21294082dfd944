"""Whether the home folder is safe, and what an earlier run left behind.

Owns: the permissions that are asked of the home folder, the configuration and the store; servers without a host.
Never: changes a permission or ends a process.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from interlock.configuration import Configuration, store_place
from interlock.configuration.load import HOME_FILE, PROJECT_FILES
from interlock.connections.ledger import left_behind, processes_folder
from interlock.surfaces.cli.doctor.finding import Finding, Level
from interlock.vocabulary.secret import Secret
from interlock.vocabulary.server import HttpTransport

SUBJECT = "home"
OTHERS_WRITE = 0o022
OTHERS_READ = 0o044


def examine_home(home: Path, configuration: Configuration, unreadable: Iterable[str] = ()) -> Iterator[Finding]:
    """Permissions, those of unreadable files too, and processes of earlier runs."""
    try:
        kind = stat.S_IFMT(home.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        yield _absent(home)
    except OSError as error:  # a folder above it that is not ours, a name that is too long
        why = (error.strerror or str(error)).lower()
        yield _found("error", "hidden", f"{home} cannot be looked into: {why}", "name another one in INTERLOCK_HOME")
    else:
        if kind != stat.S_IFDIR:
            yield _found("error", "no_folder", f"{home} is no folder", "name another one in INTERLOCK_HOME")
        else:
            yield from _folder(home)
            yield from _store(store_place(os.environ, home))
    for file in dict.fromkeys([str(home / HOME_FILE), *configuration.files, *unreadable]):
        yield from _file(Path(file), holds_secrets=_holds_secrets(configuration, file))
    yield from orphans()


def orphans() -> Iterator[Finding]:
    """Servers of hosts that are gone. The next start of any server ends them."""
    for entry in left_behind(processes_folder()):
        yield Finding(
            subject=SUBJECT,
            level="warning",
            kind="stale_process",
            message=f"process {entry.pid}, a server of a host that was killed, still runs",
            fix=f"start any server, which ends it too, or run: kill {entry.pid}",
        )


def _absent(home: Path) -> Finding:
    """Whether it could be made: what is above it has to be a folder in which we may write."""
    above = next(folder for folder in home.parents if os.path.exists(folder))
    if os.path.isdir(above) and os.access(above, os.W_OK | os.X_OK):
        return Finding(subject=SUBJECT, level="note", kind="no_home", message=f"{home} does not exist yet")
    why = "cannot be written" if os.path.isdir(above) else "is no folder"
    message = f"{home} cannot be made, because {above} {why}"
    return _found("error", "not_writable", message, "set INTERLOCK_HOME, or HOME, to a folder of yours")


def _folder(home: Path) -> Iterator[Finding]:
    mode = _mode(home)
    if not os.access(home, os.W_OK | os.X_OK):
        yield _found("error", "not_writable", f"{home} cannot be written", "make it yours, or set INTERLOCK_HOME")
    if mode & OTHERS_WRITE:
        message = f"others can write {home}, and so decide which commands start"
        yield _found("error", "others_write", message, f"run: chmod 700 {home}")
    elif mode & OTHERS_READ:
        yield _found("warning", "others_read", f"others can look into {home}", f"run: chmod 700 {home}")
    else:
        yield Finding(subject=SUBJECT, level="ok", kind="home", message=f"{home} is for you only")


def _store(place: Path | str) -> Iterator[Finding]:
    if not isinstance(place, Path):
        return  # what others may read of a database, its server decides
    for file in (place, place.with_name(f"{place.name}-wal")):
        if os.path.exists(file) and _mode(file) & (OTHERS_READ | OTHERS_WRITE):
            message = f"others can read the conversations in {file}"
            yield _found("warning", "others_read", message, f"run: chmod 600 {file}")


def _file(file: Path, *, holds_secrets: bool) -> Iterator[Finding]:
    if not os.path.exists(file):
        return
    mode = _mode(file)
    if mode & OTHERS_WRITE and file.name not in PROJECT_FILES:  # a project's file counts by its content only
        message = f"others can write {file}, and so decide which commands start"
        yield _found("error", "others_write", message, f"run: chmod go-w {file}")
    elif mode & OTHERS_READ and holds_secrets:
        message = f"others can read {file}, in which variables or headers have their values"
        yield _found("warning", "others_read", message, f"run: chmod 600 {file}, or write references to a keyring")


def _holds_secrets(configuration: Configuration, file: str) -> bool:
    """Whether a value of `env` or of a header stands in the file itself."""
    values: list[Mapping[str, Secret]] = [
        server.transport.headers if isinstance(server.transport, HttpTransport) else server.transport.env
        for server in configuration.servers.values()
        if server.source.startswith(f"{file} [")
    ]
    return any(secret.source == "configuration" for table in values for secret in table.values())


def _mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def _found(level: Level, kind: str, message: str, fix: str) -> Finding:
    return Finding(subject=SUBJECT, level=level, kind=kind, message=message, fix=fix)
