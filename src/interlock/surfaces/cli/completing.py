"""Words that a shell completes.

Owns: finding the names of servers; the scripts by which shells ask, as typer has them, and for which shell.
Never: starts anything, warns, or fails: where nothing is known nothing is proposed.
"""

from importlib import import_module
from typing import Any

from interlock.surfaces.cli.command_table import COMPLETION

SHELLS = ("bash", "zsh", "fish")


def names_of_servers(incomplete: str) -> list[str]:
    """The names of configured servers that begin so; those of a file given with --config are not known yet."""
    import os
    from pathlib import Path

    from interlock.configuration import home_folder
    from interlock.configuration.load import places
    from interlock.vocabulary.errors import InterlockError

    try:
        names = sorted(places(home=home_folder(os.environ), project=Path.cwd()))
    except (InterlockError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete)]


def script() -> str:
    """What the user's shell has to run once, to ask us from then on."""
    text: str = _typers().get_completion_script(prog_name="interlock", complete_var=COMPLETION, shell=_shell())
    return text


def install() -> None:
    """Put the script where the user's shell finds it."""
    from interlock.surfaces.cli.output import say

    shell, place = _typers().install(shell=_shell(), prog_name="interlock", complete_var=COMPLETION)
    say(f"completion for {shell} is in {place}; it works in every {shell} that is started from now on")


def be_ready() -> None:
    """Teach typer its shells, when a shell asks."""
    _typers().completion_init()


def _typers() -> Any:
    """Typer's own knowledge of shells, which has no types."""
    return import_module("typer.completion")


def _shell() -> str:
    """The shell that runs us, else the login shell."""
    import os

    import typer

    shellingham: Any = import_module("shellingham")
    try:
        shell: str = shellingham.detect_shell()[0]
    except (shellingham.ShellDetectionFailure, RuntimeError):
        shell = os.path.basename(os.environ.get("SHELL", ""))
    if shell not in SHELLS:
        known = ", ".join(SHELLS)
        raise typer.BadParameter(f"completion is there for {known}, but this is {shell or 'no shell that is known'}")
    return shell
