"""What carries frames.

Owns: the port that every transport fills, and the bounds of a frame.
Never: looks into a frame.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

FRAME_LIMIT: Final = 32 * 1024 * 1024
"""Bytes of one message of a client; turns may carry images."""


@dataclass(frozen=True, slots=True)
class TooLong:
    """A frame beyond the limit, thrown away; `head` is its beginning."""

    head: bytes


class Transport(Protocol):
    """One connection. A client may go on reading after `frames` has ended when `half_closes` is True."""

    @property
    def half_closes(self) -> bool: ...

    def frames(self) -> AsyncIterator[bytes | TooLong]:
        """What the client sends, until it sends no more; raises OSError when the connection broke."""
        ...

    async def send(self, frames: Sequence[bytes]) -> None:
        """Return once they are on their way. OSError: nobody reads any more."""
        ...

    async def close(self, reason: str | None) -> None:
        """End the connection; `reason` is a sentence for the client, where the transport can carry one."""
        ...
