"""The entry point of `interlock` and `python -m interlock`.

Owns: starting the command line where its extra is installed, and the status that the process exits with.
Never: imports anything slow itself.
"""

import gc
import os
import sys
from types import ModuleType
from typing import NoReturn

from interlock.surfaces.cli.command_table import COMPLETION, WIDTH, top_help

INTERRUPTED = 130
"""What a shell shows for a process that SIGINT ended: 128 + 2."""

COMMAND_HINT = "If it belongs to the server's command, write -- before that: interlock mcp add NAME -- COMMAND ...\n"

NEEDS_TYPER = "cannot run a command: the package typer is not installed; run: pip install 'interlock[cli]'"


def main() -> NoReturn:
    """Run the command line on sys.argv and exit: 0 fine, 1 the work failed, 2 usage or configuration wrong."""
    try:
        sys.exit(_status())
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads: nothing to flush, no message
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _is_plain_help() -> bool:
    """Whether the help is wanted that needs no typer: it is not narrower than its text, and no shell asks for words."""
    if sys.argv[1:] not in ([], ["--help"], ["-h"]) or COMPLETION in os.environ:
        return False
    try:
        columns = int(os.environ.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns)
    except (OSError, ValueError):  # no terminal
        return True
    return columns >= WIDTH


def _status() -> int:
    if _is_plain_help():
        sys.stdout.write(top_help() + "\n")
        sys.stdout.flush()
        return 0
    gc.disable()  # what is loaded lives as long as the process; looking through it meanwhile costs a tenth of the start
    try:
        import typer
    except ImportError:
        sys.stderr.write(f"error: {NEEDS_TYPER}\n")
        return 2
    return _status_of(typer)


def _status_of(typer: ModuleType) -> int:
    from interlock.surfaces.cli.app import app

    if COMPLETION in os.environ:
        from interlock.surfaces.cli import completing

        completing.be_ready()
    try:
        result = typer.main.get_command(app)(prog_name="interlock", standalone_mode=False)
    except typer.Abort as abort:
        return INTERRUPTED if isinstance(abort.__cause__, KeyboardInterrupt) else 1
    except Exception as error:
        # typer's usage errors have no public base that all its versions share; this is what makes one.
        if not (hasattr(error, "show") and hasattr(error, "exit_code")):
            raise
        error.show()
        if sys.argv[1:3] == ["mcp", "add"] and hasattr(error, "option_name") and "--" not in sys.argv:
            sys.stderr.write(COMMAND_HINT)
        return int(error.exit_code)
    return result if isinstance(result, int) else 0
