"""The commands and their groups.

Owns: which commands there are at the top level, in which order.
Never: does the work; a command's module is loaded when it runs, and imports what it needs then.
"""

from typing import Annotated

import typer

from interlock.surfaces.cli.lazy_group import Place, lazy

COMMANDS = {
    "exec": Place("exec_command", "Ask a model that can use your MCP servers."),
    "mcp": Place("mcp_commands", "Configure MCP servers, look at them and ask them."),
    "doctor": Place("doctor_command", "Find out what is wrong with your servers, and how to mend it."),
    "approvals": Place("approvals_command", "Explain which calls need an approval."),
    "threads": Place("threads_commands", "Look at stored threads, and change them."),
    "memory": Place("memory_commands", "See which memories were used."),
    "app-server": Place("app_server_command", "Serve programs over JSON-RPC."),
    "demo": Place("demo_command", "See what Interlock does: no network, no keys."),
}

app = typer.Typer(
    name="interlock",
    cls=lazy(COMMANDS),
    help="The host between an AI agent and its MCP servers.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,  # plain help: rich alone would take longer to load than all the rest
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
