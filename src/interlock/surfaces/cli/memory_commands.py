"""`interlock memory …`: what answers were made from.

Owns: the commands' names, options and help.
Never: opens the store; the module imported inside does.
"""

from functools import partial
from typing import Annotated

import typer

from interlock.surfaces.cli.lazy_group import new_app
from interlock.surfaces.cli.options import JsonOption

app = new_app("See which memories were used.")


@app.callback()
def memory() -> None:
    """See which memories were used."""


@app.command("usage")
def usage(
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many, the most used first.")] = 50,
    json: JsonOption = False,
) -> int:
    """Show how often answers cited the memories made of threads."""
    from interlock.surfaces.cli import kept_threads, running

    return running.run(partial(kept_threads.show_memory_uses, limit, json))
