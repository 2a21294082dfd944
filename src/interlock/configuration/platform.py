"""Where Interlock keeps its things, and where it does not run.

Owns: the places of the home folder and of the store, the refusal of Windows.
Never: creates anything.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from interlock.vocabulary.errors import InvalidRequest

DATABASE: Final = "interlock.db"
"""The default store, in the home folder."""


def home_folder(environment: Mapping[str, str]) -> Path:
    """`INTERLOCK_HOME`, else `~/.interlock`; an absolute path that need not exist."""
    chosen = environment.get("INTERLOCK_HOME", "").strip()
    return Path(chosen).expanduser().absolute() if chosen else Path.home() / ".interlock"


def store_place(environment: Mapping[str, str], home: Path | None = None) -> Path | str:
    """Where Threads are kept: `INTERLOCK_STORE`, a path or a URL; else interlock.db in `home`, or in the home folder.

    A URL may hold a password, so it stands in the environment and in no file.
    """
    chosen = environment.get("INTERLOCK_STORE", "").strip()
    if not chosen:
        return (home or home_folder(environment)) / DATABASE
    return chosen if "://" in chosen else Path(chosen).expanduser().absolute()


def refuse_windows(platform: str = sys.platform) -> None:
    """Raise InvalidRequest on Windows: process groups and their end are not tested there."""
    if platform in {"win32", "cygwin"}:
        raise InvalidRequest("cannot run on Windows: nobody tests it there yet; use Linux, macOS or WSL")
