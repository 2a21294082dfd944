"""`interlock threads …`: what is stored of conversations.

Owns: the commands' names, options and help.
Never: opens the store; the module imported inside does.
"""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from interlock.surfaces.cli.lazy_group import new_app
from interlock.surfaces.cli.options import ConfigOption, JsonOption

ThreadArgument = Annotated[str, typer.Argument(metavar="ID", help="The thread's id, or a beginning that only it has.")]

app = new_app("Look at stored threads, and change them.")


@app.command("list")
def list_threads(
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many, newest first.")] = 50,
    json: JsonOption = False,
) -> int:
    """Show the newest threads."""
    from interlock.surfaces.cli import running, thread_list

    return running.run_at_once(partial(thread_list.show, limit, json))


@app.command("show")
def show_thread(
    thread: ThreadArgument,
    json: JsonOption = False,
) -> int:
    """Show a thread: the tools its model saw, every call, and the last message."""
    from interlock.surfaces.cli import running, stored_threads

    return running.run(partial(stored_threads.show_one, thread, json))


@app.command("resume")
def resume_thread(
    thread: ThreadArgument,
    interrupt: Annotated[
        bool, typer.Option("--interrupt", help="End a turn that waits for an answer, instead of leaving it open.")
    ] = False,
    json: JsonOption = False,
) -> int:
    """Show what was interrupted when a thread's host was killed, and make the thread ready to go on."""
    from interlock.surfaces.cli import kept_threads, running

    return running.run(partial(kept_threads.resume, thread, interrupt, json))


@app.command("fork")
def fork_thread(
    thread: ThreadArgument,
    turn: Annotated[
        str | None,
        typer.Option(
            "--turn", metavar="TURN", help="The last turn to take along, by its turn_id in `show --json`; default: all."
        ),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Make a new thread that begins where this one is; print its id."""
    from interlock.surfaces.cli import kept_threads, running

    return running.run(partial(kept_threads.fork, thread, turn, json))


@app.command("rollback")
def roll_back_thread(
    thread: ThreadArgument,
    turns: Annotated[
        int, typer.Option("--turns", "-n", min=1, help="How many turns to drop, from the last one on.")
    ] = 1,
    json: JsonOption = False,
) -> int:
    """Drop a thread's last turns; what they did in the world stays done."""
    from interlock.surfaces.cli import kept_threads, running

    return running.run(partial(kept_threads.rollback, thread, turns, json))


@app.command("compact")
def compact_thread(
    thread: ThreadArgument,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="MODEL", help="Instead of the configuration's model.")
    ] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Have the model summarise a thread; the summary takes the place of its history, and is printed."""
    from interlock.surfaces.cli import kept_threads, running

    return running.run(partial(kept_threads.compact, thread, model, config, json))


@app.command("export")
def export_thread(
    thread: ThreadArgument,
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="A new file; default: stdout.")] = None,
    json: JsonOption = False,
) -> int:
    """Write a thread as lines of JSON that `import` takes."""
    from interlock.surfaces.cli import kept_threads, running

    return running.run(partial(kept_threads.export, thread, file, json))


@app.command("import")
def import_thread(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `export` wrote, or - for stdin.")],
    new: Annotated[bool, typer.Option("--new", help="Give it a new id; default: its own, if it is free.")] = False,
    json: JsonOption = False,
) -> int:
    """Store an exported thread, and print its id."""
    from interlock.surfaces.cli import kept_threads, running

    return running.run(partial(kept_threads.bring_in, file, new, json))


@app.command("archive")
def archive_thread(
    thread: ThreadArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Take it back.")] = False,
    json: JsonOption = False,
) -> int:
    """Put a thread away in lists."""
    from interlock.surfaces.cli import kept_threads, running

    return running.run(partial(kept_threads.archive, thread, undo, json))


@app.command("delete")
def delete_thread(
    thread: ThreadArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    json: JsonOption = False,
) -> int:
    """Forget a thread for ever."""
    from interlock.surfaces.cli import kept_threads, running

    return running.run(partial(kept_threads.delete, thread, yes, json))
