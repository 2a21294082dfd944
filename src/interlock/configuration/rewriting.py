"""A file is replaced by a changed one: whole, or not at all.

Owns: the lock between editors of one folder, the replacement, noticing that another program wrote meanwhile.
Never: knows what stands in the file, leaves a half-written one, or changes who may read it.
"""

import errno
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from interlock.configuration.documents import MAXIMUM_FILE, first_bytes
from interlock.vocabulary.errors import InvalidRequest

LOCK_PATIENCE = 5.0
"""Seconds that an editor waits for another one; an edit takes milliseconds."""
LOCK_PAUSE = 0.02
ATTEMPTS = 5
"""How often a change is made again because another program, which knows no lock, wrote the file meanwhile."""

BOM = b"\xef\xbb\xbf"

Change = Callable[[str], str]
"""From the old text to the new one; called again where the file changed meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """What a file held before (None: it did not exist) and holds now."""

    file: Path
    before: bytes | None
    after: bytes


def rewrite(file: Path, change: Change) -> Rewritten:
    """Replace the text of `file` by `change` of it; a file that does not exist counts as empty.

    A link stays a link, a byte order mark and the permissions stay. A new file is readable by its owner only, and so
    is a folder that had to be made for it.

    Raises:
        InvalidRequest: it cannot be read, locked or written, is no UTF-8, or is being rewritten again and again by
            another program; or what `change` raised. The file is as it was.
    """
    target = Path(os.path.realpath(file))
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(target.parent):
            return _rewrite(target, change)
    except OSError as error:
        reason = (error.strerror or "unwritable").lower()
        raise InvalidRequest(f"cannot write {file}: {reason}; check the permissions of it and its folder") from error


def _rewrite(target: Path, change: Change) -> Rewritten:
    for _ in range(ATTEMPTS):
        before = _read(target)
        after = _changed(target, before, change)
        if after == before or _replaced(target, before, after):
            return Rewritten(file=target, before=before, after=after)
    raise InvalidRequest(f"cannot edit {target}: another program keeps writing it; close that program and try again")


def _read(target: Path) -> bytes | None:
    try:
        content = first_bytes(target, MAXIMUM_FILE + 1)
    except FileNotFoundError:
        return None
    if len(content) > MAXIMUM_FILE:
        raise InvalidRequest(f"cannot edit {target}: it is larger than {MAXIMUM_FILE} bytes")
    return content


def _changed(target: Path, before: bytes | None, change: Change) -> bytes:
    content = before or b""
    mark = BOM if content.startswith(BOM) else b""
    try:
        text = content.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest(f"cannot edit {target}: it is not UTF-8; store it as UTF-8 first") from None
    return mark + change(text).encode("utf-8")


def _replaced(target: Path, before: bytes | None, after: bytes) -> bool:
    """Put the new file in the old one's place, unless that is not the one any more that was read."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    try:
        with os.fdopen(handle, "wb") as stream:
            _take_over_permissions(target, stream.fileno())
            stream.write(after)
            stream.flush()
            os.fsync(stream.fileno())
        if _read(target) != before:
            return False
        os.replace(name, target)
        name = ""
    finally:
        if name:
            with suppress(OSError):
                os.unlink(name)
    _keep(target.parent)
    return True


def _take_over_permissions(target: Path, descriptor: int) -> None:
    """mkstemp made it readable by its owner only, which is what a new file keeps."""
    with suppress(FileNotFoundError):
        old = target.stat()
        with suppress(PermissionError):  # only root may give files away
            os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, old.st_mode & 0o7777)


def _keep(folder: Path) -> None:
    """Make the renaming survive a crash of the machine, where the file system knows how."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The folder itself is the lock: no file of ours is left in a project, and it ends with its holder's process."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _acquire(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, folder: Path) -> None:
    import fcntl  # Windows has none, and has to get as far as being refused in words

    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise InvalidRequest(
                    f"cannot edit a file in {folder}: another interlock is editing there; try again when it is done"
                ) from None
            time.sleep(LOCK_PAUSE)
        except OSError as error:
            if error.errno in {errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.EINVAL}:
                return  # some network file systems lock no folders; that nobody else wrote is checked all the same
            raise
        else:
            return
