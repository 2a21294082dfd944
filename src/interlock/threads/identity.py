"""New ids for turns, steps and messages.

Owns: where the randomness of an id comes from.
Never: gives the same id twice, or lets an id mean anything.
"""

import os

from interlock.vocabulary.ids import uuid7
from interlock.vocabulary.ports import Clock


def new_id(clock: Clock) -> str:
    """A UUID version 7: later ids sort later, to the millisecond."""
    return uuid7(clock.now_milliseconds(), os.urandom(10))
