"""Which server processes are running, kept where it outlives the host.

Owns: one empty file a server under INTERLOCK_HOME/processes (its name says all), the sweep of those that a dead host
    left, and the watchdog's life.
Never: ends a process that it cannot tell from a later one with the same number, or fails because a folder is
    read-only (then only the watchdog protects).
"""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from interlock.connections import watchdog
from interlock.connections.callbacks import callback_context

SETTLED = 1.0
"""Seconds after which a watchdog that began as a shell becomes what it is for good: no start of servers that began with
it should still need the core."""


def processes_folder() -> Path:
    """INTERLOCK_HOME/processes; INTERLOCK_HOME is ~/.interlock unless the environment says otherwise."""
    return _processes_folder(os.environ.get("INTERLOCK_HOME"), os.environ.get("HOME"))


@cache
def _processes_folder(interlock_home: str | None, home: str | None) -> Path:
    """`home` is what Path.home looks at; it is here so that another one is another folder."""
    return Path(interlock_home or Path.home() / ".interlock") / "processes"


@cache
def boot_id() -> str:
    """A name of this boot: process ids and start times mean something only within it."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""  # elsewhere the start time is a full date, which is enough


@cache
def namespace() -> str:
    """Which numbering of processes this is: containers that share a home must not judge each other's."""
    with suppress(OSError):
        return "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid"))) or "0"
    return "0"


class Ledger:
    """The server processes of this host. All methods are quick and synchronous; use it from one thread, on a loop."""

    def __init__(self) -> None:
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._settling: asyncio.TimerHandle | None = None
        self._servers: dict[int, Path] = {}
        self._swept: set[Path] = set()

    def __repr__(self) -> str:
        return f"<Ledger servers={sorted(self._servers)} watchdog={self._watchdog is not None}>"

    @property
    def leaders(self) -> frozenset[int]:
        """The servers that run now; each leads a session of its own."""
        return frozenset(self._servers)

    def add(self, pid: int) -> None:
        """A server was started."""
        folder = processes_folder()
        if folder not in self._swept:
            self._swept.add(folder)
            sweep(folder)
            with suppress(OSError):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._servers[pid] = folder / Entry.of(pid).name
        self._tell(f"+{pid}\n")
        with suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))

    def remove(self, pid: int) -> None:
        """A server is gone with all its family. The last one takes the watchdog along."""
        path = self._servers.pop(pid, None)
        if path is not None:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        if self._servers:
            self._tell(f"-{pid}\n")
        else:
            self._stop_watchdog()

    def _tell(self, line: str) -> None:
        if self._watchdog is None or self._watchdog.poll() is not None:
            self._stop_watchdog()
            self._watchdog = _start_watchdog()
            loop = asyncio.get_running_loop()
            self._settling = loop.call_later(SETTLED, self._write, ".\n", context=callback_context())
            line = "".join(f"+{pid}\n" for pid in self._servers)
        self._write(line)

    def _write(self, line: str) -> None:
        if self._watchdog is not None and self._watchdog.stdin is not None:
            with suppress(OSError):
                self._watchdog.stdin.write(line.encode())

    def forked(self) -> None:
        """Called in a copy of this process: it has no servers, and must not hold the pipe whose end means ours."""
        if self._watchdog is not None and self._watchdog.stdin is not None:
            self._watchdog.stdin.close()
            self._watchdog.returncode = 0  # it is nobody that this copy could wait for
        self._watchdog = self._settling = None
        self._servers = {}

    def _stop_watchdog(self) -> None:
        if self._settling is not None:
            self._settling.cancel()
            self._settling = None
        if self._watchdog is not None:
            self._watchdog.kill()  # nothing is left for it to do, and it may still be starting
            self._watchdog.wait()
            if self._watchdog.stdin is not None:
                self._watchdog.stdin.close()
            self._watchdog = None


def _start_watchdog() -> subprocess.Popen[bytes] | None:
    """The watchdog as a shell that becomes an interpreter; where there is no shell, the interpreter at once."""
    if not sys.executable:
        return None
    interpreter = [sys.executable, "-I", "-S", watchdog.__file__, str(os.getpid())]
    for command in (["/bin/sh", "-c", watchdog.WAITING, "watchdog", *interpreter], interpreter):
        with suppress(OSError):
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                bufsize=0,
                start_new_session=True,
            )
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A server process and its host, as the name of a file: made in one step, so that nobody can read half of it."""

    pid: int
    started: str
    host: int
    host_started: str

    @classmethod
    def of(cls, pid: int) -> "Entry":
        host = os.getpid()
        return cls(pid=pid, started=_started(pid), host=host, host_started=_started_once(host))

    @property
    def name(self) -> str:
        return f"{namespace()}-{self.pid}-{self.started}-{self.host}-{self.host_started}-{boot_id()}"

    @classmethod
    def read(cls, name: str) -> "Entry | None":
        """None for a file of another boot, or that is none of ours."""
        parts = name.split("-", 5)
        if len(parts) != 6 or parts[5] != boot_id() or not (parts[1].isdecimal() and parts[3].isdecimal()):
            return None
        return cls(pid=int(parts[1]), started=parts[2], host=int(parts[3]), host_started=parts[4])


def _started(pid: int) -> str:
    return _as_name(watchdog.start_time(pid) or "gone")


@cache
def _started_once(pid: int) -> str:
    """Of this very process (or, after a fork, of that one): it does not change, and reading it costs as much as
    reading that of the server."""
    return _started(pid)


def _as_name(started: str) -> str:
    return "".join(filter(str.isalnum, started))


def sweep(folder: Path) -> None:
    """End what a host that died together with its watchdog left running, and forget what is over.

    A server is ended only if its number, start time and boot are those that were written down. Files
    of other process namespaces (containers with the same home) are left alone.
    """
    try:
        paths = sorted(folder.glob(f"{namespace()}-*"))
    except OSError:
        return
    if not paths:
        return
    table = watchdog.processes()
    for path in paths:
        entry = Entry.read(path.name)
        if entry is not None and _lives(entry.host, entry.host_started, table):
            continue
        if entry is not None and _lives(entry.pid, entry.started, table):
            watchdog.send_signal(watchdog.family(entry.pid, table), signal.SIGKILL)
        with suppress(OSError):
            path.unlink(missing_ok=True)


def left_behind(folder: Path) -> tuple[Entry, ...]:
    """Servers that still run though their host is gone, in the order of their numbers; nothing is done about them."""
    try:
        entries = [Entry.read(path.name) for path in folder.glob(f"{namespace()}-*")]
    except OSError:
        return ()
    table = watchdog.processes()
    orphans = (
        entry
        for entry in entries
        if entry is not None
        and not _lives(entry.host, entry.host_started, table)
        and _lives(entry.pid, entry.started, table)
    )
    return tuple(sorted(orphans, key=lambda entry: entry.pid))


def _lives(pid: int, started: str, table: dict[int, watchdog.Row]) -> bool:
    return pid in table and _as_name(table[pid][2]) == started


LEDGER = Ledger()
"""The one ledger of this process."""

os.register_at_fork(after_in_child=LEDGER.forked)
