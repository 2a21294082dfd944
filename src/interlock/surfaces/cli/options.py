"""Options and arguments that several commands share.

Owns: their names, types and help.
Never: reads a file or a variable.
"""

from pathlib import Path
from typing import Annotated

import typer

from interlock.surfaces.cli.completing import names_of_servers

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help="Read this file before all others (TOML, or JSON by its name)."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
ServerArgument = Annotated[
    str,
    typer.Argument(metavar="SERVER", help="The server's name in the configuration.", autocompletion=names_of_servers),
]
ServerOption = Annotated[
    str | None, typer.Argument(metavar="[SERVER]", help="Ask only this server.", autocompletion=names_of_servers)
]
CursorOption = Annotated[
    str | None, typer.Option("--cursor", metavar="CURSOR", help="Go on where a page of SERVER ended.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="NAME=VALUE", help="A value of the template or prompt; may be repeated."),
]
