"""`interlock threads …`: what is stored of conversations.

Owns: the commands' names, options and help.
Never: opens the store; the module imported inside does.
"""

from functools import partial
from typing import Annotated

import typer

from interlock.surfaces.cli.lazy_group import new_app
from interlock.surfaces.cli.options import JsonOption

app = new_app("Look at stored threads.")


@app.command("list")
def list_threads(
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many, newest first.")] = 50,
    json: JsonOption = False,
) -> int:
    """Show the newest threads."""
    from interlock.surfaces.cli import running, stored_threads

    return running.run(partial(stored_threads.show_list, limit, json))


@app.command("show")
def show_thread(
    thread: Annotated[str, typer.Argument(metavar="ID", help="The thread's id, or a beginning that only it has.")],
    json: JsonOption = False,
) -> int:
    """Show a thread: the tools its model saw, every call, and the last message."""
    from interlock.surfaces.cli import running, stored_threads

    return running.run(partial(stored_threads.show_one, thread, json))
