"""Identities that travel through every await.

Owns: the types of ids and the layout of a UUID version 7.
Never: reads a clock or a source of randomness; the caller passes both.
"""

import uuid
from typing import NewType

ThreadId = NewType("ThreadId", str)
TurnId = NewType("TurnId", str)
StepId = NewType("StepId", str)
CallId = NewType("CallId", str)
QuestionId = NewType("QuestionId", str)


def uuid7(milliseconds: int, randomness: bytes) -> str:
    """A UUID version 7 (RFC 9562 section 5.7) in its usual text form.

    `milliseconds` since the Unix epoch (48 bits are used); `randomness` is 10 bytes.
    Ids made later sort later, to the millisecond.
    """
    if len(randomness) != 10:
        raise ValueError("a UUID version 7 takes exactly 10 random bytes")
    value = (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(randomness, "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))
