"""`interlock app-server`: the host for editors and other programs.

Owns: the command's options and help.
Never: serves anything; the modules imported inside do.
"""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None, help="Serve programs over JSON-RPC.")


@app.callback(invoke_without_command=True)
def app_server(
    context: typer.Context,
    listen: Annotated[
        str, typer.Option("--listen", metavar="URL", help="stdio://, unix://PATH or ws://IP:PORT.")
    ] = "stdio://",
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config", "-c", metavar="FILE", help="Read this file before all others (TOML, or JSON by its name)."
        ),
    ] = None,
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
    enable: Annotated[list[str] | None, typer.Option("--enable", hidden=True)] = None,
    disable: Annotated[list[str] | None, typer.Option("--disable", hidden=True)] = None,
) -> int:
    """Serve programs over JSON-RPC, in the shapes of Codex's app server."""
    if context.invoked_subcommand is not None:
        return 0
    from functools import partial

    from interlock.surfaces.cli import app_serving, running

    # Clients start the program whose wire this is with features and KEY=VALUE settings of its own; here they are none.
    files, foreign = app_serving.sorted_out(config or [])
    asked = app_serving.Asked(
        listen=listen,
        files=files,
        ignored=(*foreign, *(enable or ()), *(disable or ())),
        token_file=token_file,
        origins=frozenset(allow_origin or ()),
    )
    return running.run(partial(app_serving.serve, asked))


@app.command("schema")
def schema() -> int:
    """Print the JSON Schema of all methods and notifications."""
    from interlock.surfaces.cli.output import print_json
    from interlock.surfaces.rpc.schema import document

    print_json(document())
    return 0
