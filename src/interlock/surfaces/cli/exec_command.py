"""`interlock exec`: one turn of a new thread, or of one that is stored.

Owns: the command's options and help.
Never: runs anything; the module imported inside does.
"""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from interlock.surfaces.cli.lazy_group import new_app
from interlock.surfaces.cli.options import ConfigOption, JsonOption

app = new_app()


@app.command()
def execute(
    prompt: Annotated[
        str | None,
        typer.Argument(
            metavar="[PROMPT]",
            help="What to ask the model; without it, or with -: stdin. A thread that waits for an answer needs none.",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="MODEL", help="Instead of the configuration's model.")
    ] = None,
    config: ConfigOption = None,
    thread: Annotated[
        str | None, typer.Option("--thread", "-t", metavar="ID", help="Go on with this thread; a beginning will do.")
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="Go on with the newest thread.")] = False,
    allow_tools: Annotated[
        bool, typer.Option("--allow-tools", help="Allow calls that somebody would have to approve.")
    ] = False,
    answers: Annotated[
        Path | None,
        typer.Option("--answer", metavar="FILE", help="Answer questions from this JSON file instead of asking you."),
    ] = None,
    approval: Annotated[
        Literal["never", "on-request"] | None,
        typer.Option(
            "--approval", help="Whether anybody may be asked; instead of the configuration's approval_policy."
        ),
    ] = None,
    full_access: Annotated[
        bool, typer.Option("--full-access", help='As sandbox_mode = "danger-full-access" in the configuration.')
    ] = False,
    output_schema: Annotated[
        Path | None,
        typer.Option("--output-schema", metavar="FILE", help="Ask for an answer in this JSON Schema, and check it."),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Ask a model that can use your MCP servers, and print its answer.

    At a terminal you are asked what servers want to know and which calls to approve; elsewhere that is declined.
    """
    from interlock.surfaces.cli import execution, running

    rules = execution.Rules(allow_tools=allow_tools, answers=answers, approval=approval, full_access=full_access)
    where = execution.Where(thread=thread, last=last)
    asked = execution.Asked(prompt=prompt, model=model, output_schema=output_schema)
    return running.run(partial(execution.execute, asked, config, where, rules, json))
