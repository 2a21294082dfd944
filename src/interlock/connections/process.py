"""The process of a stdio server, from start to the end of its last descendant.

Owns: the child's environment, its session (process group), its pipes, its exit status, the order of its ending.
Never: reads or writes MCP messages; the stdio channel does.
"""

import asyncio
import errno
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

import anyio

from interlock.connections import watchdog
from interlock.connections.bell import Once
from interlock.connections.callbacks import callback_context
from interlock.connections.clock import now
from interlock.connections.ledger import LEDGER
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.secret import Secret, reveal
from interlock.vocabulary.server import StdioTransport

TABLE_AGE = 0.02
"""Seconds for which a reading of the process table will do at the beginning of an ending: fifty servers that are closed
together cost one. What a server started in that moment is still found in its process group."""
INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ")
"""The variables of the host's own environment that a server sees (CFG-5)."""

OVER_LIMIT = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM})
"""No more files, processes or memory: nothing about the server itself is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingTimes:
    """Seconds that a server is given at each step of its ending (specification: stdio, Shutdown)."""

    after_stdin: float = 3.0
    after_terminate: float = 2.0
    after_kill: float = 2.0
    """A killed process is gone in milliseconds, unless the kernel itself holds it (a dead network disk)."""
    after_deaf: float = 0.25
    """In the place of `after_stdin` for a server that has closed its input, and cannot see the end of it: it may be on
    its way out, but waits for nothing of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitStatus:
    """How a process ended: an exit code, or the number of the signal that ended it."""

    code: int | None = None
    signal: int | None = None

    def __str__(self) -> str:
        if self.signal is None:
            return f"exit code {self.code}"
        with suppress(ValueError):
            return f"signal {signal.Signals(self.signal).name}"
        return f"signal {self.signal}"


def child_environment(transport: StdioTransport) -> dict[str, str]:
    """What the server sees: the allowlist, then its own table (CFG-5)."""
    inherited = {name: value for name in INHERITED if (value := os.environ.get(name)) is not None}
    return inherited | {name: value.reveal() for name, value in transport.env.items()}


@dataclass(slots=True)
class ServerProcess:
    """A running server. Its pipes are non-blocking; every method runs on the loop that started it."""

    process: subprocess.Popen[bytes]
    exited: Once = field(default_factory=Once)
    status: ExitStatus | None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def stdin(self) -> int:
        """Our end of the child's stdin, a file descriptor; -1 when closed. The same for the next two."""
        return _descriptor(self.process.stdin)

    @property
    def stdout(self) -> int:
        return _descriptor(self.process.stdout)

    @property
    def stderr(self) -> int:
        return _descriptor(self.process.stderr)

    def close_stdin(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()

    def close_output(self) -> None:
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def reap(self) -> None:
        """Take over the exit status of the ended process."""
        code = self.process.wait()
        self.status = ExitStatus(signal=-code) if code < 0 else ExitStatus(code=code)
        self.exited.set()

    async def gone(self, seconds: float) -> bool:
        """Wait for the exit, at most so long."""
        await self.exited.wait(now() + seconds)
        return self.exited.is_set()


def _descriptor(pipe: IO[bytes] | None) -> int:
    return -1 if pipe is None or pipe.closed else pipe.fileno()


def start_process(server: str, transport: StdioTransport, on_exit: Callable[[], None] | None = None) -> ServerProcess:
    """Start the server in its own session. `on_exit` is called on the loop when the process has ended.

    Raises:
        ServerFailed: it cannot be started (effect none); the message names command, PATH and the way out.
    """
    environment = child_environment(transport)
    process = _spawn(server, transport, environment)
    LEDGER.add(process.pid)
    child = ServerProcess(process)
    for descriptor in (child.stdin, child.stdout, child.stderr):
        os.set_blocking(descriptor, False)
    _watch_exit(child, on_exit or (lambda: None))
    return child


def _spawn(server: str, transport: StdioTransport, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    folder = None if transport.cwd is None else reveal(transport.cwd)
    if folder is not None and not os.path.isdir(folder):
        raise ServerFailed(
            f"server {server!r} could not be started: its working folder {transport.cwd} does not exist; "
            "create it or correct `cwd`",
            server=server,
        )
    try:
        # No preexec_fn: it may deadlock in a program with threads, and without it Python starts the child by vfork.
        return subprocess.Popen(
            [reveal(transport.command), *map(reveal, transport.args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=folder,
            bufsize=0,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        hidden = isinstance(transport.command, Secret) or isinstance(transport.cwd, Secret)  # the cause would name it
        problem = _start_problem(server, transport, environment, error)
        raise ServerFailed(problem, server=server) from (None if hidden else error)


def _start_problem(server: str, transport: StdioTransport, environment: dict[str, str], error: Exception) -> str:
    command = str(transport.command)  # a secret shows as its mask
    cannot = f"server {server!r} could not be started"
    if isinstance(error, FileNotFoundError) and os.sep in reveal(transport.command):
        return f"{cannot}: {_missing_file(transport)}; correct `command`"
    if isinstance(error, FileNotFoundError):
        path = environment.get("PATH", os.defpath)
        return (
            f"{cannot}: command not found: {command!r}; searched PATH {path}; "
            "install it, write its full path as `command`, or set PATH in the server's `env`"
        )
    if isinstance(error, PermissionError):
        return f"{cannot}: {command!r} may not be executed; check its permissions, or name another `command`"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if isinstance(error, OSError) and error.errno in OVER_LIMIT:
        return (
            f"{cannot}: {reason.lower()}; close other programs, or raise the limits of this one (ulimit -n, ulimit -u)"
        )
    return f"{cannot}: {command!r}: {reason.lower()}; check `command` and `args`"


def _missing_file(transport: StdioTransport) -> str:
    """What a path that could not be started lacks; a relative one is seen from the server's working folder."""
    folder = os.getcwd() if transport.cwd is None else reveal(transport.cwd)
    command = str(transport.command)  # a secret shows as its mask
    if os.path.exists(os.path.join(folder, reveal(transport.command))):
        return f"the interpreter that the first line of {command!r} names does not exist"
    seen = "" if os.path.isabs(reveal(transport.command)) else f", seen from {transport.cwd or folder}"
    return f"there is no file {command!r}{seen}"


def _watch_exit(child: ServerProcess, on_exit: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()

    def ended() -> None:
        child.reap()
        on_exit()

    try:
        descriptor = os.pidfd_open(child.pid)
    except (AttributeError, OSError):
        _watch_exit_in_thread(child, loop, ended)
        return

    def readable() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        ended()

    callback_context().run(loop.add_reader, descriptor, readable)


def _watch_exit_in_thread(child: ServerProcess, loop: asyncio.AbstractEventLoop, ended: Callable[[], None]) -> None:
    # Without pidfd (macOS, old kernels) a thread that only waits is the one way without polling; waitid with
    # WNOWAIT leaves the status to Popen.
    def wait() -> None:
        with suppress(OSError):
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(ended, context=callback_context())

    threading.Thread(target=wait, name=f"exit of {child.pid}", daemon=True).start()


async def end_process(child: ServerProcess, times: EndingTimes | None = None) -> None:
    """End the server and its family in bounded time: end of stdin, SIGTERM, SIGKILL (CON-5).

    Descendants are noted down before, since those with a session of their own are found only while
    their parents live, or by the pipes that they hold; what outlives a server that ended politely is
    ended too. Run it shielded.
    """
    times = times or EndingTimes()
    members = _TABLE.recent().family(child.pid)
    if child.exited.is_set():
        members |= _holders(child)
    listens = _is_held(child.stdin)
    child.close_stdin()
    if not await child.gone(times.after_stdin if listens else times.after_deaf):
        members |= watchdog.family(child.pid, watchdog.processes())
        watchdog.send_signal(members, signal.SIGTERM)
        await child.gone(times.after_terminate)
    if not child.exited.is_set():
        members |= watchdog.family(child.pid, watchdog.processes())
        watchdog.send_signal(members, signal.SIGKILL)
        await child.gone(times.after_kill)
    child.close_output()
    await _end_survivors(child.pid, members)
    if child.exited.is_set():
        LEDGER.remove(child.pid)


def _holders(child: ServerProcess) -> set[watchdog.Identity]:
    """Who holds a pipe of a server that has ended, with all that those started (Linux)."""
    pipes = [descriptor for descriptor in (child.stdin, child.stdout, child.stderr) if _is_held(descriptor)]
    if not pipes:
        return set()
    table = watchdog.processes()
    return watchdog.descendants(watchdog.holders((os.fstat(pipe).st_ino for pipe in pipes), table), table)


def _is_held(descriptor: int) -> bool:
    """Whether anybody has the other end of the pipe."""
    if descriptor == -1:
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return not any(flags & (select.POLLHUP | select.POLLERR) for _, flags in poll.poll(0))


class _ProcessTable:
    """The newest reading of the process table."""

    def __init__(self) -> None:
        self._good_until = float("-inf")
        self._kin = watchdog.Kin({})

    def recent(self) -> watchdog.Kin:
        """At most TABLE_AGE old, or as old as it takes to be read twice."""
        began = time.monotonic()
        if began >= self._good_until:
            self._kin = watchdog.Kin(watchdog.processes())
            ended = time.monotonic()
            self._good_until = ended + max(TABLE_AGE, 2 * (ended - began))
        return self._kin


_TABLE = _ProcessTable()


async def _end_survivors(leader: int, members: set[watchdog.Identity]) -> None:
    if not any(member[0] != leader for member in members) and not _group_lives(leader):
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        table = watchdog.processes()
        members = watchdog.living(members, table) | watchdog.family(leader, table)
        members = {member for member in members if member[0] != leader}
        if not members:
            return
        watchdog.send_signal(members, number)
        await _wait_for_end(members, 1.0)


async def _wait_for_end(members: set[watchdog.Identity], seconds: float) -> None:
    with anyio.move_on_after(seconds):
        while watchdog.living(members, watchdog.processes()):  # noqa: ASYNC110 - no event tells of a stranger's end
            await anyio.sleep(0.02)


def _group_lives(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
