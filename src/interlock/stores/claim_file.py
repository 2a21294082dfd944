"""The claim on a Thread beside an SQLite file: a locked file that names its owner.

Owns: one lock file per claimed Thread, from its lock to its removal.
Never: waits. The operating system frees the lock of a process that was killed, so what it left
behind claims nothing.
"""

import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from interlock.stores.owner import Owner, claimed_by, this_process
from interlock.vocabulary.errors import StorageFailed

_ATTEMPTS = 100
"""How often the file may vanish between opening and locking it: each time, another owner has just let go."""


@contextmanager
def claim_file(folder: Path, thread_id: str) -> Iterator[None]:
    """Hold the lock file of a Thread; StorageFailed naming the owner when somebody has it."""
    path = folder / f"{hashlib.sha256(thread_id.encode()).hexdigest()[:32]}.lock"
    try:
        descriptor = _lock(path, thread_id)
    except OSError as error:
        raise _unusable(path, thread_id, error) from error
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            path.unlink()  # before the lock goes, so that whoever locks this file later sees that it is gone
        os.close(descriptor)


def _lock(path: Path, thread_id: str) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for _ in range(_ATTEMPTS):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if _try_lock(descriptor, path, thread_id):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise claimed_by(thread_id, None)


def _try_lock(descriptor: int, path: Path, thread_id: str) -> bool:
    """True: locked and signed. False: the file was removed meanwhile, open it anew."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise claimed_by(thread_id, _read_owner(descriptor)) from error
    if not _is_still(descriptor, path):
        return False
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(asdict(this_process())).encode(), 0)
    return True


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _read_owner(descriptor: int) -> Owner | None:
    try:
        return Owner(**json.loads(os.pread(descriptor, 4096, 0)))
    except (ValueError, TypeError):
        return None


def _unusable(path: Path, thread_id: str, error: OSError) -> StorageFailed:
    reason = errno.errorcode.get(error.errno or 0, "unknown")
    return StorageFailed(
        f"cannot claim thread '{thread_id}': the lock file {path} cannot be used ({reason});"
        " make its folder writable, on a file system with locks",
        thread_id=thread_id,
        path=str(path),
    )
