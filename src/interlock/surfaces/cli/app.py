"""The commands and their groups.

Owns: which commands there are and what their help says.
Never: does the work; a command's module imports what it needs when it runs.
"""

from typing import Annotated

import typer

from interlock.surfaces.cli import app_server_command, demo_command, exec_command, mcp_commands, threads_commands

app = typer.Typer(
    name="interlock",
    help="The host between an AI agent and its MCP servers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help: rich alone would take longer to load than all the rest
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(mcp_commands.app, name="mcp")
app.add_typer(threads_commands.app, name="threads")
app.add_typer(app_server_command.app, name="app-server")
app.command("exec")(exec_command.execute)
app.command("demo")(demo_command.demo)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"interlock {version('interlock')}")
        raise typer.Exit


@app.callback()
def interlock(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """The host between an AI agent and its MCP servers."""
