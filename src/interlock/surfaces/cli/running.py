"""Running the work of one command.

Owns: the event loop, what Ctrl-C and SIGTERM do, and the translation of errors to a sentence and an exit status.
Never: shows a traceback, unless INTERLOCK_TRACEBACK is set; or loads an event loop for work that waits for nothing.
"""

import gc
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress

from interlock.surfaces.cli.output import complain, print_failure, with_way_out
from interlock.vocabulary.errors import InterlockError, InvalidRequest, ServerFailed

CLOSING_PATIENCE = 1.3
"""Seconds after Ctrl-C in which everything closes in order; after them the servers are killed and the process ends."""

_SURROGATE = re.compile("[\ud800-\udfff]")
"""What Python makes of a byte of the command line that is not UTF-8 (PEP 383)."""

Work = Callable[[AsyncExitStack], Awaitable[int | None]]
"""The work of a command; gives its exit status, None being 0. What it opens, the stack closes after it has printed."""


def run(work: Work) -> int:
    """Run `work` to its end; the exit status of the process."""
    import anyio  # an event loop takes longer to load than most commands without one take altogether

    _collect_again()
    try:
        _stand_somewhere()
        return anyio.run(_interruptible, work)
    except Exception as error:
        return _status_of(error)


def run_at_once(work: Callable[[], int | None]) -> int:
    """Run work that waits for nothing but a person's answer, which Ctrl-C ends; the exit status of the process."""
    import typer

    _collect_again()
    try:
        _stand_somewhere()
        return work() or 0
    except typer.Abort:
        raise  # of a prompt
    except Exception as error:
        return _status_of(error)


def _stand_somewhere() -> None:
    """Raise InvalidRequest in a folder that was deleted: nothing can be looked for, or started, from there."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise InvalidRequest("cannot begin: the folder where you are was deleted; go to another one") from None


def _collect_again() -> None:
    gc.freeze()
    gc.enable()  # see main.py


async def _interruptible(work: Work) -> int:
    """Cancel `work` at the first signal. A second one, or too long a closing, ends the process at once."""
    import asyncio

    import anyio

    received: list[int] = []
    status = 0
    with anyio.CancelScope() as scope:

        def stop(number: signal.Signals) -> None:
            if received:
                _end_now(128 + number)
            received.append(number)
            _end_later(128 + number)
            scope.cancel()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop, number)
        try:
            async with AsyncExitStack() as closing:
                status = await work(closing) or 0
        except Exception:
            if not received:  # what breaks while everything is being closed is no news
                raise
    return 128 + received[0] if received else status


def _end_later(status: int) -> None:
    timer = threading.Timer(CLOSING_PATIENCE, _end_now, (status,))
    timer.daemon = True
    timer.start()


def _end_now(status: int) -> None:
    """End without waiting for anything: the servers' families, then this process."""
    from interlock.connections import watchdog  # here, because most commands end in order
    from interlock.connections.ledger import LEDGER

    table = watchdog.processes()
    for leader in LEDGER.leaders:
        watchdog.send_signal(watchdog.family(leader, table), signal.SIGKILL)
    os._exit(status)


def _status_of(error: BaseException) -> int:
    """Say the error in one sentence; 2 when the request was wrong, else 1."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, BrokenPipeError):
        raise error
    if os.environ.get("INTERLOCK_TRACEBACK"):
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, InterlockError):
        sentence = with_way_out(error)
        complain(sentence)
        facts = (
            {"server": error.server, "kind": error.kind, "effect": error.effect}
            if isinstance(error, ServerFailed)
            else {}
        )
        print_failure(error.code, sentence, **facts)
        return 2 if isinstance(error, InvalidRequest) else 1
    if isinstance(error, UnicodeEncodeError) and any(map(_SURROGATE.search, sys.argv)):
        sentence = "cannot use a word of the command line: it is not UTF-8; convert it"
        complain(sentence)
        print_failure(InvalidRequest.code, sentence)
        return 2
    if isinstance(error, OSError) and error.strerror:
        sentence = _refused_by_the_system(error.strerror.lower(), error.filename)
    else:
        sentence = (
            f"interlock broke inside ({type(error).__name__}); set INTERLOCK_TRACEBACK=1 to see where, and report it"
        )
    complain(sentence)
    with suppress(OSError):  # it may be stdout itself that is broken
        print_failure("internal", sentence)
    return 1


def _refused_by_the_system(reason: str, file: object) -> str:
    """A file or disk that does not do what it should; the reader who left is not one of these."""
    if file is None:
        return f"cannot go on: {reason}; look where the output goes, and at the disk"
    return f"cannot use {file}: {reason}; check who may use it and its folders"
