"""`interlock approvals …`: who would be asked, and why.

Owns: the commands' names, options and help.
Never: decides; the module imported inside asks the rules.
"""

from functools import partial
from typing import Annotated

import typer

from interlock.surfaces.cli.lazy_group import new_app
from interlock.surfaces.cli.options import ConfigOption, JsonOption

app = new_app("Explain which calls need an approval.")


@app.callback()
def approvals() -> None:
    """Explain which calls need an approval."""


@app.command("explain")
def explain(
    server: Annotated[str | None, typer.Argument(metavar="[SERVER]", help="The server of a call to think of.")] = None,
    tool: Annotated[str | None, typer.Argument(metavar="[TOOL]", help="Its tool, by the server's own name.")] = None,
    arguments: Annotated[
        str, typer.Argument(metavar="[ARGUMENTS]", help="The call's arguments as a JSON object, or - for stdin.")
    ] = "{}",
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="ID", help="Instead, all calls that this thread recorded.")
    ] = None,
    call: Annotated[
        str | None, typer.Option("--call", metavar="CALL", help="Of those, only the call with this id.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not start the server; its annotations are then not known.")
    ] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Say whether a call would be allowed, asked about or refused, and which rule or setting says so."""
    from interlock.surfaces.cli import approvals_explained, running

    if thread is not None:
        return running.run(partial(approvals_explained.recorded, config, thread, call, json))
    if server is None or tool is None:
        raise typer.BadParameter("name a SERVER and a TOOL, or a --thread")
    return running.run(partial(approvals_explained.hypothetical, config, server, tool, arguments, offline, json))
