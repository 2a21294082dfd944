"""`interlock demo`: the demonstration that needs no network.

Owns: the command's name and help, and that it ends like every other command.
Never: holds anything of the demonstration; it lives in `interlock.demo`.
"""

from contextlib import AsyncExitStack
from functools import partial
from typing import Annotated

import typer

from interlock.surfaces.cli.lazy_group import new_app

app = new_app()


@app.command()
def demo(
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="ID", help="Go on with a demonstration that was stopped.")
    ] = None,
) -> int:
    """Show what Interlock does, on this machine alone: no network, no keys.

    At a terminal you are asked whether a destructive tool may be called; elsewhere it is refused.
    """
    from interlock.surfaces.cli import running

    return running.run(partial(_show, resume))


async def _show(resume: str | None, closing: AsyncExitStack) -> int:
    from interlock.demo.display import open_display
    from interlock.demo.run import run
    from interlock.surfaces.cli.attending import answerer, attending

    result = await run(open_display(), attending=partial(attending, who=answerer(None)), resume=resume)
    return 0 if result.status == "completed" else 1
