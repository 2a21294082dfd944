"""`interlock app-server`: from options to a served Host.

Owns: which files are read, where the token comes from, what is said on stderr.
Never: prints anything on stdout: that may be the wire.
"""

from contextlib import AsyncExitStack
from pathlib import Path

from interlock.host.host import Host
from interlock.surfaces.cli.opening import home
from interlock.surfaces.cli.output import say, warn
from interlock.surfaces.rpc import app_server
from interlock.surfaces.rpc.listening import Listening, read_place
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.secret import Secret


async def serve(
    listen: str, config: Path | None, token_file: Path | None, origins: frozenset[str], closing: AsyncExitStack
) -> None:
    listening = Listening(
        place=read_place(listen),
        token=None if token_file is None else _token(token_file),
        origins=origins,
        said=lambda address: say(f"listening on {address}"),
    )
    listening.refuse_if_unsafe()
    host = Host.open(config, home=home(), project=Path.cwd())
    for problem in host.problems:
        warn(str(problem))
    await closing.enter_async_context(host)
    await app_server.serve(host, listening, home=str(home()))


def _token(file: Path) -> Secret:
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"cannot read the token file {file}: {error}") from error
    if len(token) < 16:
        raise InvalidRequest(f"the token in {file} is too short; use at least 16 characters")
    return Secret(token, f"file {file}")
