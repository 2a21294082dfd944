"""`interlock app-server`: the host for editors and other programs.

Owns: the command's options and help.
Never: serves anything; the modules imported inside do.
"""

from pathlib import Path
from typing import Annotated

import typer

from interlock.surfaces.cli.options import ConfigOption

app = typer.Typer(add_completion=False, rich_markup_mode=None, help="Serve programs over JSON-RPC.")


@app.callback(invoke_without_command=True)
def app_server(
    context: typer.Context,
    listen: Annotated[
        str, typer.Option("--listen", metavar="URL", help="stdio://, unix://PATH or ws://IP:PORT.")
    ] = "stdio://",
    config: ConfigOption = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="WebSocket clients must send this file's content as a bearer token; needed beyond loopback.",
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option("--allow-origin", metavar="ORIGIN", help="Let pages of this origin connect by WebSocket."),
    ] = None,
) -> int:
    """Serve programs over JSON-RPC, in the shapes of Codex's app server."""
    if context.invoked_subcommand is not None:
        return 0
    from functools import partial

    from interlock.surfaces.cli import app_serving, running

    return running.run(partial(app_serving.serve, listen, config, token_file, frozenset(allow_origin or ())))


@app.command("schema")
def schema() -> int:
    """Print the JSON Schema of all methods and notifications."""
    from interlock.surfaces.cli.output import print_json
    from interlock.surfaces.rpc.schema import document

    print_json(document())
    return 0
