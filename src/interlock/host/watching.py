"""Hearing that configuration files changed.

Owns: which folders are watched, and which changes in them count.
Never: reads a file or decides what a change means (Host.reload does), or is needed to use a Host.

Folders are watched, not files: editors replace a file by another of the same name, and a file may not exist yet.
"""

from collections.abc import AsyncGenerator, Iterable
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

    Ends soon after `until` is set. A folder that does not exist when watching begins is not watched.
    """
    import watchfiles  # heavy, and optional

    watched = _with_targets(files)
    folders = {file.parent for file in watched if file.parent.is_dir()}
    if not folders:
        return

    def counts(change: watchfiles.Change, path: str) -> bool:
        return Path(path) in watched

    bursts = watchfiles.awatch(
        *folders,
        watch_filter=counts,
        step=SETTLING,
        rust_timeout=PULSE,
        yield_on_timeout=True,
        stop_event=until,
        recursive=False,
    )
    begun = False
    async for burst in bursts:
        if burst or not begun:
            begun = True
            yield None


def refuse_without_watchfiles() -> None:
    """Raises InvalidRequest if the optional package is not installed."""
    try:
        import_module("watchfiles")
    except ImportError as error:
        raise InvalidRequest(
            "cannot watch the configuration: the package watchfiles is not installed; "
            "run: pip install 'interlock[watch]'"
        ) from error


def _with_targets(files: Iterable[Path]) -> frozenset[Path]:
    """The files and, where they are links, what they lead to: either may be replaced."""
    absolute = [file.absolute() for file in files]
    return frozenset([*absolute, *(file.resolve() for file in absolute)])
