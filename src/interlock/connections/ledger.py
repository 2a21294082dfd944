"""Which server processes are running, kept where it outlives the host.

Owns: one small file a server under INTERLOCK_HOME/processes, the sweep of those that a dead host left, and the
    watchdog's life.
Never: ends a process that it cannot tell from a later one with the same number, or fails because a folder is
    read-only (then only the watchdog protects).
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from interlock.connections import watchdog


def processes_folder() -> Path:
    """INTERLOCK_HOME/processes; INTERLOCK_HOME is ~/.interlock unless the environment says otherwise."""
    return Path(os.environ.get("INTERLOCK_HOME") or Path.home() / ".interlock") / "processes"


def boot_id() -> str:
    """A name of this boot: process ids and start times mean something only within it."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""  # elsewhere the start time is a full date, which is enough


def namespace() -> str:
    """Which numbering of processes this is: containers that share a home must not judge each other's."""
    with suppress(OSError):
        return "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid"))) or "0"
    return "0"


class Ledger:
    """The server processes of this host. All methods are quick and synchronous; use it from one thread."""

    def __init__(self) -> None:
        self._watchdog: subprocess.Popen[bytes] | None = None
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
        self._servers[pid] = folder / f"{namespace()}-{pid}.json"
        self._tell(f"+{pid}\n")
        _write(self._servers[pid], pid)

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
            line = "".join(f"+{pid}\n" for pid in self._servers)
        if self._watchdog is not None and self._watchdog.stdin is not None:
            with suppress(OSError):
                self._watchdog.stdin.write(line.encode())

    def _stop_watchdog(self) -> None:
        if self._watchdog is not None:
            self._watchdog.kill()  # nothing is left for it to do, and it may still be starting
            self._watchdog.wait()
            if self._watchdog.stdin is not None:
                self._watchdog.stdin.close()
            self._watchdog = None


def _start_watchdog() -> subprocess.Popen[bytes] | None:
    if not sys.executable:
        return None
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            bufsize=0,
            start_new_session=True,
        )
    except OSError:
        return None


def _write(path: Path, pid: int) -> None:
    entry = {
        "boot": boot_id(),
        "pid": pid,
        "started": watchdog.start_time(pid),
        "host": os.getpid(),
        "host_started": watchdog.start_time(os.getpid()),
    }
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = path.with_suffix(".new")  # a host that sweeps must never see half an entry
        unfinished.write_text(json.dumps(entry), encoding="ascii")
        unfinished.replace(path)


def sweep(folder: Path) -> None:
    """End what a host that died together with its watchdog left running, and forget what is over.

    A server is ended only if its number, start time and boot are those that were written down.
    """
    try:
        paths = sorted(folder.glob(f"{namespace()}-*.json"))
    except OSError:
        return
    if not paths:
        return
    table, boot = watchdog.processes(), boot_id()
    for path in paths:
        entry = _read(path)
        if entry.get("boot") == boot and _lives(entry.get("host"), entry.get("host_started"), table):
            continue
        if entry.get("boot") == boot and _lives(entry.get("pid"), entry.get("started"), table):
            watchdog.send_signal(watchdog.family(int(entry["pid"]), table), signal.SIGKILL)
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any]:
    try:
        entry = json.loads(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return {}
    return entry if isinstance(entry, dict) else {}


def _lives(pid: Any, started: Any, table: dict[int, watchdog.Row]) -> bool:
    return isinstance(pid, int) and pid in table and table[pid][2] == started


LEDGER = Ledger()
"""The one ledger of this process."""
