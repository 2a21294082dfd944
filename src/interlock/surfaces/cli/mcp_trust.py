"""`interlock mcp trust`: letting a project's files start commands.

Owns: showing what a file would start before its content is trusted.
Never: trusts other bytes than those it has shown.
"""

import os
import sys
from pathlib import Path

from interlock.configuration import TrustStore, load
from interlock.configuration.documents import read_bytes
from interlock.configuration.load import PROJECT_FILES, project_files
from interlock.surfaces.cli.opening import home
from interlock.surfaces.cli.output import at_terminal, print_json, say
from interlock.vocabulary.errors import InvalidRequest, NotPermitted
from interlock.vocabulary.server import HttpTransport, ServerConfig


def trust(file: Path | None, yes: bool, as_json: bool) -> None:
    files = _files(file)
    store = TrustStore(home())
    trusted = [_trust(one, store, yes or not at_terminal(sys.stdin)) for one in files]
    if as_json:
        print_json({"trusted": trusted})


def _files(file: Path | None) -> tuple[Path, ...]:
    folder = Path.cwd()
    files = (file.absolute(),) if file is not None else project_files(folder)
    if not files:
        names = " nor ".join(PROJECT_FILES)
        raise InvalidRequest(f"there is nothing to trust in {folder}: it has neither {names}")
    return files


def _trust(file: Path, store: TrustStore, sure: bool) -> dict[str, object]:
    """Show one file, ask, remember. The bytes are read once, before they are shown."""
    content = read_bytes(file)
    servers = load(file, environment=os.environ).servers
    if read_bytes(file) != content:
        raise InvalidRequest(f"cannot trust {file}: it is being changed; try again")
    say(f"{file} starts:" if servers else f"{file} starts nothing")
    for name, server in servers.items():
        say(f"{name}: {_starts(server)}")
    if not sure and not _confirmed():
        raise NotPermitted(f"{file} was not trusted; its servers stay out")
    store.trust(file, content)
    say(f"{file} is trusted until its content changes")
    return {"file": str(file), "servers": list(servers)}


def _confirmed() -> bool:
    import typer

    return typer.confirm("Trust this content?", err=True)


def _starts(server: ServerConfig) -> str:
    """The command line or URL; values from elsewhere stay masked."""
    match server.transport:
        case HttpTransport(url=url):
            return str(url)
        case transport:
            return " ".join(str(part) for part in (transport.command, *transport.args))
