"""The commands and their groups.

Owns: which commands there are at the top level, in which order.
Never: does the work; a command's module is loaded when it runs, and imports what it needs then.
"""

from typing import Annotated

import typer

from interlock.surfaces.cli.command_table import ABOUT, COMMANDS, OPTIONS
from interlock.surfaces.cli.lazy_group import lazy

app = typer.Typer(
    name="interlock",
    cls=lazy(COMMANDS),
    help=ABOUT,
    no_args_is_help=True,
    add_completion=False,  # its two options would load pydantic for every command
    rich_markup_mode=None,  # plain help: rich alone would take longer to load than all the rest
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"interlock {version('interlock')}")
        raise typer.Exit


def _install_completion(wanted: bool) -> None:
    if wanted:
        from interlock.surfaces.cli import completing

        completing.install()
        raise typer.Exit


def _show_completion(wanted: bool) -> None:
    if wanted:
        from interlock.surfaces.cli import completing

        typer.echo(completing.script())
        raise typer.Exit


@app.callback()
def interlock(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help=OPTIONS["--version"])
    ] = False,
    install_completion: Annotated[
        bool,
        typer.Option("--install-completion", callback=_install_completion, help=OPTIONS["--install-completion"]),
    ] = False,
    show_completion: Annotated[
        bool, typer.Option("--show-completion", callback=_show_completion, help=OPTIONS["--show-completion"])
    ] = False,
) -> None:
    """The host between an AI agent and its MCP servers."""
