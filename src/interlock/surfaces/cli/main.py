"""The entry point of `interlock` and `python -m interlock`.

Owns: starting the command line where its extra is installed, and the status that the process exits with.
Never: imports anything slow itself.
"""

import gc
import os
import sys
from types import ModuleType
from typing import NoReturn

INTERRUPTED = 130
"""What a shell shows for a process that SIGINT ended: 128 + 2."""


def main() -> NoReturn:
    """Run the command line on sys.argv and exit: 0 fine, 1 the work failed, 2 usage or configuration wrong."""
    gc.disable()  # what is loaded lives as long as the process; looking through it meanwhile costs a tenth of the start
    try:
        import typer
    except ImportError:
        sys.stderr.write("error: the command line needs typer, which is not installed; pip install 'interlock[cli]'\n")
        sys.exit(2)
    try:
        sys.exit(_status(typer))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads: nothing to flush, no message
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _status(typer: ModuleType) -> int:
    from interlock.surfaces.cli.app import app

    try:
        result = typer.main.get_command(app)(prog_name="interlock", standalone_mode=False)
    except typer.Abort as abort:
        return INTERRUPTED if isinstance(abort.__cause__, KeyboardInterrupt) else 1
    except Exception as error:
        # typer's usage errors have no public base that all its versions share; this is what makes one.
        if not (hasattr(error, "show") and hasattr(error, "exit_code")):
            raise
        error.show()
        return int(error.exit_code)
    return result if isinstance(result, int) else 0
