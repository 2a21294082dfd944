"""`interlock mcp add` and its like: editing the configuration.

Owns: the commands' names, options and help.
Never: edits a file; the modules imported inside do.
"""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from interlock.surfaces.cli.options import ConfigOption, JsonOption, ServerArgument

EditedFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Edit this TOML file, not the home folder's."),
]


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The server's name: letters, digits, _ and -.")],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="After --: what starts it, with its arguments.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="The address of an HTTP server.")] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", "-e", metavar="NAME[=VALUE]", help="A variable for it; without a value: yours, if set."),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(
            "--secret",
            metavar="NAME=PLACE",
            help="A variable (or header) whose value stands elsewhere: env:VARIABLE, keyring:SERVICE/NAME, file:PATH.",
        ),
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", metavar="'NAME: VALUE'", help="An HTTP header.")
    ] = None,
    bearer_token_env_var: Annotated[
        str | None,
        typer.Option("--bearer-token-env-var", metavar="VARIABLE", help="The variable that holds the bearer token."),
    ] = None,
    cwd: Annotated[str | None, typer.Option("--cwd", metavar="FOLDER", help="Where the command runs.")] = None,
    startup_timeout: Annotated[
        float | None, typer.Option("--startup-timeout", metavar="SECONDS", help="Time to start (default 30).")
    ] = None,
    tool_timeout: Annotated[
        float | None, typer.Option("--tool-timeout", metavar="SECONDS", help="Time for a call (default 300).")
    ] = None,
    required: Annotated[bool, typer.Option("--required", help="Nothing shall begin without it.")] = False,
    disabled: Annotated[bool, typer.Option("--disabled", help="Add it, and leave it off.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a server of that name.")] = False,
    config: EditedFile = None,
    json: JsonOption = False,
) -> int:
    """Add a server. Give its --url, or after -- the command that starts it, as in: add git -- uvx mcp-server-git"""
    from interlock.surfaces.cli import mcp_edit, running

    addition = mcp_edit.Addition(
        name=name,
        command=command or (),
        url=url,
        env=env or (),
        secrets=secret or (),
        headers=header or (),
        bearer_token_env_var=bearer_token_env_var,
        cwd=cwd,
        startup_timeout=startup_timeout,
        tool_timeout=tool_timeout,
        required=required,
        disabled=disabled,
        replace=replace,
    )
    return running.run(partial(mcp_edit.add, addition, config, json))


def get(server: ServerArgument, config: ConfigOption = None, json: JsonOption = False) -> int:
    """Show every setting of a server, and where it comes from. Nothing is started."""
    from interlock.surfaces.cli import mcp_get, running

    return running.run(partial(mcp_get.show, server, config, json))


def remove(server: ServerArgument, config: ConfigOption = None, json: JsonOption = False) -> int:
    """Take a server out of its TOML file."""
    from interlock.surfaces.cli import mcp_edit, running

    return running.run(partial(mcp_edit.remove, server, config, json))


def enable(server: ServerArgument, config: ConfigOption = None, json: JsonOption = False) -> int:
    """Let a server be used again."""
    from interlock.surfaces.cli import mcp_edit, running

    return running.run(partial(mcp_edit.switch, server, True, config, json))


def disable(server: ServerArgument, config: ConfigOption = None, json: JsonOption = False) -> int:
    """Leave a server in its file, and do not use it."""
    from interlock.surfaces.cli import mcp_edit, running

    return running.run(partial(mcp_edit.switch, server, False, config, json))


def take_over(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Take over these servers.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Take over every server that is found.")] = False,
    file: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Look into this file, not at the usual places.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace servers of the same name.")] = False,
    config: EditedFile = None,
    json: JsonOption = False,
) -> int:
    """Take over servers of Claude, VS Code, Codex and others. Without names they are only shown."""
    from interlock.surfaces.cli import mcp_import, running

    choice = mcp_import.Choice(names=names or (), everything=everything, file=file, replace=replace)
    return running.run(partial(mcp_import.take_over, choice, config, json))
