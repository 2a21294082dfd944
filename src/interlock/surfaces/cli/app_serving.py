"""`interlock app-server`: from options to a served Host.

Owns: which files are read, where the token comes from, what is said on stderr.
Never: prints anything on stdout: that may be the wire.
"""

import gc
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from interlock.configuration.documents import read_bytes
from interlock.host.host import Host
from interlock.surfaces.cli.opening import home
from interlock.surfaces.cli.output import say, warn
from interlock.surfaces.rpc import app_server
from interlock.surfaces.rpc.listening import Listening, read_place
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options. `ignored` are settings that another program would understand."""

    listen: str
    files: tuple[Path, ...]
    ignored: tuple[str, ...]
    token_file: Path | None
    origins: frozenset[str]


def sorted_out(configs: Sequence[str]) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The files that `--config` names, and the KEY=VALUE settings that are none of ours."""
    foreign = tuple(text for text in configs if "=" in text and not Path(text).exists())
    return tuple(Path(text) for text in configs if text not in foreign), foreign


async def serve(asked: Asked, closing: AsyncExitStack) -> None:
    if len(asked.files) > 1:
        raise InvalidRequest("--config was given more than once; name one file")
    listening = Listening(
        place=read_place(asked.listen),
        token=None if asked.token_file is None else _token(asked.token_file),
        origins=asked.origins,
        said=lambda address: say(f"listening on {address}"),
    )
    listening.refuse_if_unsafe()
    gc.unfreeze()  # a command freezes what it has loaded (running.py); a process that lives on manages its heap
    for setting in asked.ignored:
        warn(f"{setting}: not a setting of this host; it is ignored")
    host = Host.open(next(iter(asked.files), None), home=home(), project=Path.cwd())
    for problem in host.problems:
        warn(str(problem))
    await closing.enter_async_context(host)
    await app_server.serve(host, listening, home=str(home()))


def _token(file: Path) -> Secret:
    try:
        token = read_bytes(file, "the token file").decode().strip()
    except UnicodeDecodeError:
        raise InvalidRequest(f"cannot read the token file {file}: it is not UTF-8; write another one") from None
    if len(token) < 16:
        raise InvalidRequest(f"the token in {file} is too short; use at least 16 characters")
    return Secret(token, f"file {file}")
