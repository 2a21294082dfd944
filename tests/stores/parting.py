"""What is done when the process that asked for it is gone, however it ended.

    python parting.py FOLDER USER PROGRAM ARGUMENT...

Runs the program in the folder, as the user, at the end of standard input, and removes the folder. A signal for the
group or the terminal of the tests does not reach it: it has a session of its own, and ignores what ends others.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any


class Parting:
    """`command` is run in `folder` once this process has ended or has called `now`; then the folder is gone."""

    def __init__(self, folder: Path, user: str, *command: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(folder), user, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def now(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def main(folder: str, user: str, *command: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    as_user: dict[str, Any] = {"user": user, "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        subprocess.run(command, cwd=folder, timeout=60, check=False, stdout=subprocess.DEVNULL, **as_user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
