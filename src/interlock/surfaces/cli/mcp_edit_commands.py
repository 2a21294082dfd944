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
NewName = Annotated[str, typer.Argument(metavar="NAME", help="The server's name: letters, digits, _ and -.")]
CommandLine = Annotated[
    list[str] | None, typer.Argument(metavar="COMMAND", help="After --: what starts it, with its arguments.")
]
Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="The address of an HTTP server.")]
Variables = Annotated[
    list[str] | None,
    typer.Option("--env", "-e", metavar="NAME[=VALUE]", help="A variable for it; without a value: yours, if set."),
]
Secrets = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        metavar="NAME=PLACE",
        help="A variable (or header) whose value stands elsewhere: env:VARIABLE, keyring:SERVICE/NAME, file:PATH.",
    ),
]
Headers = Annotated[list[str] | None, typer.Option("--header", "-H", metavar="'NAME: VALUE'", help="An HTTP header.")]
BearerToken = Annotated[
    str | None,
    typer.Option("--bearer-token-env-var", metavar="VARIABLE", help="The variable that holds the bearer token."),
]
Folder = Annotated[str | None, typer.Option("--cwd", metavar="FOLDER", help="Where the command runs.")]
StartupTimeout = Annotated[
    float | None, typer.Option("--startup-timeout", metavar="SECONDS", help="Time to start (default 30).")
]
ToolTimeout = Annotated[
    float | None, typer.Option("--tool-timeout", metavar="SECONDS", help="Time for a call (default 300).")
]
Required = Annotated[bool, typer.Option("--required", help="Nothing shall begin without it.")]
Disabled = Annotated[bool, typer.Option("--disabled", help="Add it, and leave it off.")]
Replace = Annotated[bool, typer.Option("--replace", help="Replace a server of that name.")]


def add(
    name: NewName,
    command: CommandLine = None,
    url: Url = None,
    env: Variables = None,
    secret: Secrets = None,
    header: Headers = None,
    bearer_token_env_var: BearerToken = None,
    cwd: Folder = None,
    startup_timeout: StartupTimeout = None,
    tool_timeout: ToolTimeout = None,
    required: Required = False,
    disabled: Disabled = False,
    replace: Replace = False,
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
    return running.run_at_once(partial(mcp_edit.add, addition, config, json))


def get(server: ServerArgument, config: ConfigOption = None, json: JsonOption = False) -> int:
    """Show every setting of a server, and where it comes from. Nothing is started."""
    from interlock.surfaces.cli import mcp_get, running

    return running.run_at_once(partial(mcp_get.show, server, config, json))


def remove(server: ServerArgument, config: ConfigOption = None, json: JsonOption = False) -> int:
    """Take a server out of its TOML file."""
    from interlock.surfaces.cli import mcp_edit, running

    return running.run_at_once(partial(mcp_edit.remove, server, config, json))


def enable(server: ServerArgument, config: ConfigOption = None, json: JsonOption = False) -> int:
    """Let a server be used again."""
    from interlock.surfaces.cli import mcp_edit, running

    return running.run_at_once(partial(mcp_edit.switch, server, True, config, json))


def disable(server: ServerArgument, config: ConfigOption = None, json: JsonOption = False) -> int:
    """Leave a server in its file, and do not use it."""
    from interlock.surfaces.cli import mcp_edit, running

    return running.run_at_once(partial(mcp_edit.switch, server, False, config, json))


def take_over(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Take over these servers.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Take over every server that is found.")] = False,
    file: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Look into this file, not at the usual places.")
    ] = None,
    replace: Replace = False,
    config: EditedFile = None,
    json: JsonOption = False,
) -> int:
    """Take over servers of Claude, VS Code, Codex and others. Without names they are only shown."""
    from interlock.surfaces.cli import mcp_import, running

    choice = mcp_import.Choice(names=names or (), everything=everything, file=file, replace=replace)
    return running.run_at_once(partial(mcp_import.take_over, choice, config, json))
