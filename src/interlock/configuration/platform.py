"""Where Interlock keeps its things, and where it does not run.

Owns: the home folder's place, the refusal of Windows.
Never: creates anything.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from interlock.vocabulary.errors import InvalidRequest


def home_folder(environment: Mapping[str, str]) -> Path:
    """`INTERLOCK_HOME`, else `~/.interlock`; an absolute path that need not exist."""
    chosen = environment.get("INTERLOCK_HOME", "").strip()
    return Path(chosen).expanduser().absolute() if chosen else Path.home() / ".interlock"


def refuse_windows(platform: str = sys.platform) -> None:
    """Raise InvalidRequest on Windows: process groups and their end are not tested there."""
    if platform in {"win32", "cygwin"}:
        raise InvalidRequest("cannot run on Windows: nobody tests it there yet; use Linux, macOS or WSL")
