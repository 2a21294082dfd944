"""`interlock exec`: one turn of a new thread.

Owns: the command's options and help.
Never: runs anything; the module imported inside does.
"""

from functools import partial
from typing import Annotated

import typer

from interlock.surfaces.cli.lazy_group import new_app
from interlock.surfaces.cli.options import ConfigOption, JsonOption

app = new_app()


@app.command()
def execute(
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="What to ask the model, or - to read it from stdin.")],
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="MODEL", help="Instead of the configuration's model.")
    ] = None,
    config: ConfigOption = None,
    allow_tools: Annotated[
        bool, typer.Option("--allow-tools", help="Allow calls that somebody would have to approve.")
    ] = False,
    json: JsonOption = False,
) -> int:
    """Ask a model that can use your MCP servers, and print its answer."""
    from interlock.surfaces.cli import execution, running

    return running.run(partial(execution.execute, prompt, model, config, allow_tools, json))
