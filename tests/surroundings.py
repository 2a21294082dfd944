"""The environment of processes that tests start.

Owns: which few variables of ours such a process sees, and that it imports the `interlock` that the tests import.
Never: starts one.
"""

import os
from pathlib import Path

import interlock

SOURCE = str(Path(interlock.__file__).parent.parent)
"""The folder from which the tests import `interlock`: that of a checkout, or of an installation."""


def put_source_first() -> None:
    """Let every process that inherits our environment look in SOURCE before it looks where packages are installed."""
    further = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder not in ("", SOURCE)]
    os.environ["PYTHONPATH"] = os.pathsep.join([SOURCE, *further])


def surroundings(**more: str) -> dict[str, str]:
    """The little that a program needs to start, and `more`."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "PYTHONPATH": SOURCE, **more}
