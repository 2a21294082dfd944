"""The entry point of `interlock` and `python -m interlock`.

Owns: starting the command line where its extra is installed, and the status that the process exits with.
Never: imports anything slow itself.
"""

import gc
import io
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
    _open_what_is_closed()
    try:
        sys.exit(_status())
    except BrokenPipeError:
        _forget_output()  # nobody reads: no message
        sys.exit(1)
    except SystemExit as end:
        try:
            sys.stdout.flush()
        except OSError:  # it was told of, where it was not a reader who left
            _forget_output()
            sys.exit(end.code or 1)
        raise
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _open_what_is_closed() -> None:
    """Standard streams that whoever started us had closed lead nowhere, and take every text.

    Otherwise the next file that is opened, the store for example, gets their number and what is meant for them.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            if (opened := os.open(os.devnull, os.O_RDWR)) != number:
                os.dup2(opened, number)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # another locale, or a server's half of a surrogate pair


def _forget_output() -> None:
    """What could not be written is not tried again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
        _tell_program(error)
        if sys.argv[1:3] == ["mcp", "add"] and hasattr(error, "option_name") and "--" not in sys.argv:
            sys.stderr.write(COMMAND_HINT)
        return int(error.exit_code)
    return result if isinstance(result, int) else 0


def _tell_program(error: Exception) -> None:
    from interlock.surfaces.cli.output import print_failure

    format_message = getattr(error, "format_message", None)
    print_failure("usage", format_message() if format_message is not None else str(error))
