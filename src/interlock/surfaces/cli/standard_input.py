"""What is piped into a command.

Owns: reading it without holding up the event loop, so that Ctrl-C ends the wait; its bound.
Never: takes more than it was asked for, or guesses an encoding.
"""

import os
import sys

import anyio

from interlock.vocabulary.errors import InvalidRequest

PIECE = 1024 * 1024


async def read_standard_input(what: str, limit: int) -> str:
    """All of stdin as UTF-8; `what` names it in an error, `limit` is bytes.

    Raises:
        InvalidRequest: it is larger, or no UTF-8.
    """
    pieces: list[bytes] = []
    left = limit
    while piece := await _piece():
        left -= len(piece)
        if left < 0:
            raise InvalidRequest(
                f"cannot take {what} from stdin: it is larger than {limit // 1024 // 1024} MiB; shorten it"
            )
        pieces.append(piece)
    try:
        return b"".join(pieces).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"cannot take {what} from stdin: byte {error.start} is not UTF-8; convert it") from None


async def _piece() -> bytes:
    descriptor = sys.stdin.fileno()
    try:
        await anyio.wait_readable(descriptor)
    except PermissionError:
        pass  # a file: the kernel offers no waiting for what never makes one wait
    except OSError as error:
        raise InvalidRequest("cannot read stdin: it is closed") from error
    return os.read(descriptor, PIECE)
