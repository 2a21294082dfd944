"""Ephemeral threads that an app server which was killed could not forget.

Owns: the search for them, and how they are told from all others.
Never: forgets a thread without the mark of its own id, one that was ever taken out of the archive, or one in use.
"""

import logging
from contextlib import aclosing
from typing import Final

from interlock.surfaces.rpc.application import EPHEMERAL, Application
from interlock.surfaces.rpc.thread_list import records
from interlock.vocabulary.errors import InterlockError
from interlock.vocabulary.event import ThreadAnnotated, ThreadArchived, ThreadStarted

logger = logging.getLogger(__name__)

NEAR_THE_START: Final = 20
"""The mark is among so many first events, but for a fork: there it follows those that were copied."""


async def forget_left_behind(application: Application) -> None:
    """Delete what is left. A thread of another process is its own business: its claim refuses."""
    try:
        found = [
            record.thread_id
            async for record in records(application.host, archived=True)
            if not application.is_in_use(record.thread_id) and await _is_left_behind(application, record.thread_id)
        ]
    except InterlockError as error:
        logger.warning("ephemeral threads of an earlier run could not be looked for: %s", error.message)
        return
    for thread_id in found:
        try:
            await application.host.delete_thread(thread_id)
        except InterlockError as error:
            logger.info("the ephemeral thread %s is left: %s", thread_id, error.message)


async def _is_left_behind(application: Application, thread_id: str) -> bool:
    marked = copied = False
    async with aclosing(application.host.events(thread_id)) as events:
        async for stored in events:
            match stored.event:
                case ThreadStarted(forked_from=str()):
                    copied = True
                case ThreadAnnotated(key=key, value=value) if key == EPHEMERAL:
                    marked = value.get("threadId") == thread_id  # a fork copies the mark of its original
                case ThreadArchived(archived=False) if marked:
                    return False  # somebody wants to keep it
                case _:
                    pass
            if stored.sequence >= NEAR_THE_START and not (marked or copied):
                return False
    return marked
