"""Who holds the claim on a Thread.

Owns: the shape of an owner and the sentence that names it.
Never: takes or frees a claim.
"""

import os
import socket
import time
from dataclasses import dataclass

from interlock.vocabulary.errors import StorageFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """`since` is milliseconds since the Unix epoch."""

    process_id: int
    host: str
    since: int


def this_process() -> Owner:
    return Owner(process_id=os.getpid(), host=socket.gethostname(), since=time.time_ns() // 1_000_000)


def claimed_by(thread_id: str, owner: Owner | None) -> StorageFailed:
    """The refusal of a second writer (HIS-7); `owner` None: it has not yet written its name."""
    if owner is None:
        holder, facts = "another process that has only just taken it", {}
    else:
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(owner.since / 1000))
        holder = f"process {owner.process_id} on {owner.host} since {since}"
        facts = {"process_id": owner.process_id, "host": owner.host, "since": owner.since}
    return StorageFailed(
        f"cannot open thread '{thread_id}' for writing: {holder} holds it; close it there first, or fork it",
        thread_id=thread_id,
        **facts,
    )
