"""The processes that a host must not leave behind, and the small process that sees to it when the host is killed.

Owns: reading the process table, telling a process from a later one with its number, ending a family of processes,
    and the watchdog's own loop.
Never: imports anything but a few small modules of the standard library: the watchdog is this
    very file, run in a bare interpreter (8 MiB, 20 ms, once a host and not once a server).

For its first moments the watchdog is a shell (`WAITING`, 1 ms), which becomes the interpreter when the host says that
its start is over, or dies: the interpreter's own start would take a core from the servers that start at the same time.

Why a watchdog and not PR_SET_PDEATHSIG: that signal reaches the child but not the grandchild, comes when the parent
*thread* ends and not the process, needs a launcher before every server, and exists on Linux only.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

GRACE_AFTER_HOST = 1.0
"""Seconds that servers get to go by themselves after their host was killed, and again after SIGTERM."""

WAITING = """
trap "" HUP INT TERM
while read -r line && [ "$line" != . ]; do seen="$seen $line"; done
exec "$@" $seen
"""
"""What a POSIX shell does until it is replaced by this file: it keeps the host's lines until a line that is a dot, or
until the host is gone, and hands them on as arguments. Lines after the dot stay in the pipe (`read` takes one line)."""

Identity = tuple[int, str]
"""A process id with its start time: never equal for two processes of one boot."""
Row = tuple[int, int, str]
"""Parent, session and start time of a process."""


def processes() -> dict[int, Row]:
    """The process table: process id → parent, session, start time. Costs about 20 µs a process."""
    return _linux_processes() if os.path.isdir("/proc/self") else _other_processes()


def _linux_processes() -> dict[int, Row]:
    rows = ((int(name), linux_row(name)) for name in os.listdir("/proc") if name.isdigit())
    return {pid: row for pid, row in rows if row is not None}


def linux_row(pid: str) -> Row | None:
    """One row of the table; None for a process that is gone or a zombie (proc_pid_stat(5))."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        data = os.read(descriptor, 1024)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    fields = data[data.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X"):
        return None
    return int(fields[1]), int(fields[3]), fields[19].decode()


def _other_processes() -> dict[int, Row]:
    import subprocess  # half of the watchdog's start-up, and not needed on Linux

    # macOS shows no session number; a server's group has the same number as its session, and npm or a shell without
    # job control stays in it.
    listed = subprocess.run(
        ["/bin/ps", "-axo", "pid=,ppid=,pgid=,stat=,lstart="], capture_output=True, text=True, check=False
    )
    return parse_ps(listed.stdout)


def parse_ps(text: str) -> dict[int, Row]:
    """The table from the output of ps with the columns pid, ppid, pgid, stat and lstart."""
    table: dict[int, Row] = {}
    for line in text.splitlines():
        columns = line.split(None, 4)
        if len(columns) == 5 and not columns[3].startswith("Z"):
            table[int(columns[0])] = (int(columns[1]), int(columns[2]), columns[4].strip())
    return table


def start_time(pid: int) -> str | None:
    """The start time of a living process, None if there is none with this number."""
    row = linux_row(str(pid)) if os.path.isdir("/proc/self") else processes().get(pid)
    return None if row is None else row[2]


class Kin:
    """Who started whom, and who is in whose session, in one reading of the process table."""

    def __init__(self, table: dict[int, Row]) -> None:
        self._table = table
        self._children: dict[int, list[int]] = {}
        self._sessions: dict[int, list[int]] = {}
        for pid, (parent, session, _) in table.items():
            self._children.setdefault(parent, []).append(pid)
            self._sessions.setdefault(session, []).append(pid)

    def family(self, leader: int) -> set[Identity]:
        """The living processes of the session that `leader` started, and all descendants, those with their own session
        too.

        The number of a session is not used again while a process is in it, so its members are ours even
        when the leader is gone. A descendant with its own session is found only while its ancestors live.
        """
        return self.descendants([leader, *self._sessions.get(leader, ())])

    def descendants(self, pids: Iterable[int]) -> set[Identity]:
        """Those of `pids` that live, with all that they started."""
        found: set[int] = set()
        open_ends = [pid for pid in pids if pid in self._table]
        while open_ends:
            pid = open_ends.pop()
            if pid not in found:
                found.add(pid)
                open_ends += self._children.get(pid, ())
        return {(pid, self._table[pid][2]) for pid in found}


def family(leader: int, table: dict[int, Row]) -> set[Identity]:
    """`Kin.family` of one leader."""
    return Kin(table).family(leader)


def descendants(pids: Iterable[int], table: dict[int, Row]) -> set[Identity]:
    """`Kin.descendants` of one table."""
    return Kin(table).descendants(pids)


def holders(pipes: Iterable[int], table: dict[int, Row]) -> set[int]:
    """The processes whose stdin, stdout or stderr is one of these pipes (inode numbers); none where there is no /proc.

    Only these three are looked at: a process that was forked from the host holds the host's ends of the pipes too.
    """
    names = {f"pipe:[{number}]" for number in pipes}
    return {pid for pid in table if pid != os.getpid() and not names.isdisjoint(_standard_files(pid))}


def _standard_files(pid: int) -> set[str]:
    found = set()
    for number in range(3):
        with suppress(OSError):
            found.add(os.readlink(f"/proc/{pid}/fd/{number}"))
    return found


def living(members: Iterable[Identity], table: dict[int, Row]) -> set[Identity]:
    """Those of `members` that still live."""
    return {(pid, started) for pid, started in members if pid in table and table[pid][2] == started}


def send_signal(members: Iterable[Identity], number: int) -> None:
    """Signal each member that is still the process it was."""
    for pid, started in members:
        if start_time(pid) == started:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def end_orphans(leaders: set[int]) -> None:
    """End the families of servers whose host is gone: they see the end of stdin, then SIGTERM, then SIGKILL."""
    members = _families(leaders, set())
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + GRACE_AFTER_HOST
        while (members := _families(leaders, members)) and time.monotonic() < deadline:
            time.sleep(0.02)
        send_signal(members, number)


def _families(leaders: set[int], known: set[Identity]) -> set[Identity]:
    table = processes()
    kin = Kin(table)
    return living(known, table).union(*(kin.family(leader) for leader in leaders))


def watch(commands: int, host: int, seen: Iterable[str] = ()) -> set[int]:
    """Follow the host's lines `+pid` and `-pid` until it closes the pipe or dies; the servers that it had then.

    `seen` are lines that were read before. `host` is our parent, else it is dead already.
    """
    servers: set[int] = set()
    for line in seen:
        _follow(line, servers)
    sources = [commands]
    with suppress(AttributeError, OSError):
        sources.append(os.pidfd_open(host))  # sees a killed host even if a stray fork of it holds the pipe open
    rest = b""
    while True:
        dead = os.getppid() != host
        ready, _, _ = select.select(sources, [], [], 0 if dead else None)
        chunk = os.read(commands, 65536) if commands in ready else b""
        if not chunk:
            return servers
        *whole, rest = (rest + chunk).split(b"\n")
        for words in whole:
            _follow(words.decode(), servers)


def _follow(line: str, servers: set[int]) -> None:
    if line != ".":
        (servers.add if line[:1] == "+" else servers.discard)(int(line[1:]))


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # whatever ends the host must not end its watchdog before it
    end_orphans(watch(0, int(sys.argv[1]), sys.argv[2:]))


if __name__ == "__main__":
    main()
