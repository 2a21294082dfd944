"""Hearing that configuration files changed.

Owns: which folders are watched, and which changes in them count.
Never: reads a file or decides what a change means (Host.reload does), or is needed to use a Host.

Folders are watched, not files: editors replace a file by another of the same name, and a file may not exist yet.
"""

import os
import stat
from collections.abc import AsyncGenerator, Iterable, Mapping, Set
from contextlib import aclosing, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

import anyio

from interlock.vocabulary.errors import InvalidRequest

SETTLING: Final = 200
"""Milliseconds without a further change after which a burst of changes counts as over."""
PULSE: Final = 1000
"""Milliseconds between two looks at whether to go on."""


async def changes(files: Iterable[Path], until: anyio.Event) -> AsyncGenerator[None, None]:
    """Something once when watching has begun, and once after every burst of changes to any of `files`.

    Ends soon after `until` is set. Where no folder of them exists when watching begins, nothing is watched; one that is
    replaced later, or a link that comes to lead elsewhere (as mounted configuration does), is followed within a second.

    Raises:
        OSError, RuntimeError: the system does not let us watch.
    """
    files = tuple(files)
    places = _places(files)
    while places.folders and not until.is_set():
        begun = False
        async with aclosing(_bursts(places, until)) as bursts:
            async for burst in bursts:
                if burst or not begun:
                    begun = True
                    yield None
                if places.left_by(burst) or places != await anyio.to_thread.run_sync(_places, files):
                    break
        places = await _next_places(files, until)


async def _bursts(places: "_Places", until: anyio.Event) -> AsyncGenerator[set[Path], None]:
    """What changed of these places, nothing at every pulse."""
    import watchfiles  # heavy, and optional

    def counts(change: watchfiles.Change, path: str) -> bool:
        return Path(path) in places.files or Path(path) in places.folders

    bursts = watchfiles.awatch(
        *places.folders,
        watch_filter=counts,
        step=SETTLING,
        rust_timeout=PULSE,
        yield_on_timeout=True,
        stop_event=until,
        recursive=False,
    )
    async with aclosing(bursts):
        async for burst in bursts:
            yield {Path(path) for _, path in burst}


async def _next_places(files: tuple[Path, ...], until: anyio.Event) -> "_Places":
    """Where the files are now; waits for a folder of them to exist."""
    while not (places := await anyio.to_thread.run_sync(_places, files)).folders and not until.is_set():
        with anyio.move_on_after(PULSE / 1000):
            await until.wait()
    return places


def refuse_without_watchfiles() -> None:
    """Raises InvalidRequest if the optional package is not installed."""
    try:
        import_module("watchfiles")
    except ImportError as error:
        raise InvalidRequest(
            "cannot watch the configuration: the package watchfiles is not installed; "
            "run: pip install 'interlock[watch]'"
        ) from error


@dataclass(frozen=True, slots=True)
class _Places:
    """The files with what they lead to, where they are links: either may be replaced. And their folders, each with what
    tells it from another one of its name."""

    files: frozenset[Path]
    folders: Mapping[Path, tuple[int, int]]

    def left_by(self, changed: Set[Path]) -> bool:
        """Whether a folder itself was removed or replaced, so that nothing is heard of it any more."""
        return not changed.isdisjoint(self.folders)


def _places(files: tuple[Path, ...]) -> _Places:
    absolute = [file.absolute() for file in files]
    found = frozenset([*absolute, *(Path(os.path.realpath(file)) for file in absolute)])
    folders = {}
    for folder in sorted({file.parent for file in found}):
        with suppress(OSError):
            status = folder.stat()
            if stat.S_ISDIR(status.st_mode):
                folders[folder] = (status.st_dev, status.st_ino)
    return _Places(found, folders)
