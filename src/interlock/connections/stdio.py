"""MCP over a child process's pipes.

Owns: the reader and the writer of the pipes, the ring of stderr lines, the verdict when the process is over.
Never: knows what a message means, starts a process twice, or blocks: pipes are non-blocking and bounded.

No task and no queue lies between the pipe and the dispatcher: the loop's reader callback splits, decodes and hands
over. That is most of what makes a call cheap (docs/adr/0002-hot-path-beside-the-sdk-session.md).
"""

import asyncio
import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter

import anyio
import anyio.abc
import orjson

from interlock.connections.bell import Bell, Once
from interlock.connections.callbacks import callback_context
from interlock.connections.channel import Receiver
from interlock.connections.diagnostics import printable
from interlock.connections.lines import LineSplitter, LongLine, NotJson, answered_id, decode, decode_leniently
from interlock.connections.masking import Mask, mask_of
from interlock.connections.process import EndingTimes, ServerProcess, end_process, start_process
from interlock.connections.slices import TURN
from interlock.vocabulary.errors import ServerFailed, ServerFailure
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.server import Era, ServerConfig, StdioTransport

FIRST_READ, LARGEST_READ = 64 * 1024, 1024 * 1024
"""Bytes asked of a pipe at once: grows while the server fills it."""
OUTPUT_LIMIT = 8 * 1024 * 1024
"""Bytes that may wait for a server that does not read; one larger message is taken when nothing waits."""
STDERR_BYTES, STDERR_LINES = 64 * 1024, 200
LONGEST_LAST_WORDS = 500
BROKEN_INPUT = "it has closed its input"
INPUT_GRACE = 1.0
"""Seconds for the answers that are on their way from a server that lives and reads no more: then it is ended, for
nothing can be asked of it (CON-6)."""
EXIT_WAIT = 0.25
"""Seconds that the end of stdout waits for the exit status, so that the error can tell it."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_AN_ERROR = re.compile(r"\W*(?:[\w.]*error|fatal|missing)\b", re.IGNORECASE)
_AROUND_AN_ERROR = re.compile(r"\s*(?:at .+|[\[\]{}(),^~]*|(?:code|errno|syscall|requireStack): .*|Node\.js v[\d.]+)")


class StdioChannel:
    """One child process as a Channel. Use it once."""

    sending_waits = False

    def __init__(self, config: ServerConfig, *, times: EndingTimes | None = None) -> None:
        if not isinstance(config.transport, StdioTransport):
            raise TypeError(f"a stdio channel needs a stdio transport, not {type(config.transport).__name__}")
        self._server = config.name
        self._transport = config.transport
        self._line_limit = config.line_limit
        self._times = times
        self._mask = mask_of(config.transport)
        self._child: ServerProcess | None = None
        self._writer: _PipeWriter | None = None
        self._stderr = _LineRing()
        self._closed = False

    def __repr__(self) -> str:
        return f"<StdioChannel {self._server!r} pid={self.process_id} closed={self._closed}>"

    async def run(
        self, receiver: Receiver, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        over = Once()  # stdout ended, or the process did
        child = self._child = start_process(self._server, self._transport, over.set)
        self._writer = _PipeWriter(child.stdin, over.set)
        output = _MessageReader(child.stdout, self._server, receiver, self._line_limit, self._mask, over.set)
        errors = _PipeReader(child.stderr, self._stderr.feed)
        try:
            task_status.started()
            await over.wait()
            await self._last_moments(child, output, errors)
            receiver.ended(self._verdict(child, output))
        finally:
            self._closed = True
            self._writer.close()
            output.close()
            errors.close()
            with anyio.CancelScope(shield=True):
                await end_process(child, self._times)

    async def _last_moments(self, child: ServerProcess, output: "_MessageReader", errors: "_PipeReader") -> None:
        if not child.exited.is_set():
            await child.gone(EXIT_WAIT)
        output.drain()  # a grandchild may hold the pipe open: there need not be an end of file
        errors.drain()

    def _verdict(self, child: ServerProcess, output: "_MessageReader") -> ServerFailed:
        tail = self.standard_error
        said = f"; its last words on stderr: {last_words(tail)}" if tail.strip() else ""
        if child.status is None:
            closed = "stdin" if self._writer is not None and self._writer.broken else "stdout"
            how, facts = f"closed its {closed}", dict[str, int]()
        elif child.status.signal is not None:
            how, facts = f"was ended by {child.status}", {"signal": child.status.signal}
        else:
            how, facts = f"ended with {child.status}", {"exit_code": child.status.code or 0}
        if output.unfinished:
            how += " in the middle of a message"
        return ServerFailed(
            f"server {self._server!r} {how}{said}",
            server=self._server,
            kind="lost",
            effect="none",
            standard_error=tail,
            **facts,
        )

    async def send(self, message: JsonObject, *, headers: Mapping[str, str] | None = None) -> None:
        if self._writer is None or self._closed:
            raise self._cannot_send("it is not running")
        problem = self._writer.write(self._encoded(message) + b"\n")
        if problem is not None:
            raise self._cannot_send(problem, "lost" if self._writer.broken else "unavailable")

    async def flush(self) -> None:
        if self._writer is not None:
            await self._writer.emptied()

    def _encoded(self, message: JsonObject) -> bytes:
        try:
            return orjson.dumps(message)
        except TypeError:
            pass
        try:  # an integer beyond 64 bits is JSON all the same; half of a surrogate pair is nothing that UTF-8 can carry
            return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise self._cannot_send(f"it is not valid JSON ({error})") from error

    def _cannot_send(self, why: str, kind: ServerFailure = "unavailable") -> ServerFailed:
        text = f"a message could not be sent to server {self._server!r}: {why}"
        return ServerFailed(text, server=self._server, kind=kind)

    def abandon(self, request_id: int | str) -> bool:
        return False

    def adopted(self, era: Era, protocol_version: str) -> None:
        pass

    @property
    def standard_error(self) -> str:
        return self._mask(self._stderr.text())

    @property
    def process_id(self) -> int | None:
        return None if self._child is None else self._child.pid


def last_words(text: str) -> str:
    """The last three lines of stderr in one line, without colours and with nothing that could steer a terminal.

    What Node.js writes around an error that ended it is left out: frames, brackets and its version hide the error.
    Text that begins with an error, as where a program explains its usage after it, is shown with that line first.
    """
    every = _COLOUR.sub("", text[-STDERR_BYTES:]).strip().splitlines()
    lines = [line.strip() for line in every if not _AROUND_AN_ERROR.fullmatch(line)] or every
    words = " / ".join(lines[-3:])[-LONGEST_LAST_WORDS:]
    if len(lines) > 3 and _AN_ERROR.match(lines[0]) and not any(map(_AN_ERROR.match, lines[-3:])):
        words = f"{lines[0]} / … / {words}"[:LONGEST_LAST_WORDS]
    return printable(words, LONGEST_LAST_WORDS)


class _PipeReader:
    """Feeds a pipe's bytes to a function as they come, until its end or `close()`."""

    def __init__(self, descriptor: int, feed: Callable[[bytes], None], on_end: Callable[[], None] = lambda: None):
        self._descriptor = descriptor
        self._feed = feed
        self._on_end = on_end
        self._size = FIRST_READ
        self._loop = asyncio.get_running_loop()
        self._open = True
        callback_context().run(self._loop.add_reader, descriptor, self._readable)

    def _readable(self) -> bool:
        """Read once. True if there may be more at once."""
        try:
            chunk = os.read(self._descriptor, self._size)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
            return False
        if len(chunk) == self._size and self._size < LARGEST_READ:
            self._size *= 2
        self._feed(chunk)
        return True

    def drain(self) -> None:
        """Read what lies in the pipe now, and stop."""
        rounds = 64  # more than a pipe holds: somebody else goes on writing
        while self._open and rounds and self._readable():
            rounds -= 1
        self.close()

    def close(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._descriptor)
            self._on_end()


class _MessageReader(_PipeReader):
    """Turns stdout into messages for the receiver."""

    def __init__(
        self,
        descriptor: int,
        server: str,
        receiver: Receiver,
        limit: int,
        mask: Mask,
        on_end: Callable[[], None],
    ) -> None:
        self._server = server
        self._receiver = receiver
        self._limit = limit
        self._mask = mask
        self._splitter = LineSplitter(limit)
        self._lines: Iterator[bytes | LongLine] = iter(())
        """What is left of the last chunk; while something is, the pipe is not read."""
        self._hurried = False
        super().__init__(descriptor, self._take, on_end)

    @property
    def unfinished(self) -> bool:
        """Whether something other than blanks followed the last line feed; asked once, at the end."""
        return bool(self._splitter.rest().strip())

    def drain(self) -> None:
        self._hurried = True
        self._hand_over()
        super().drain()

    def _take(self, chunk: bytes) -> None:
        self._lines = self._splitter.feed(chunk)
        if not self._hand_over():
            self._loop.remove_reader(self._descriptor)
            self._loop.call_soon(self._go_on, context=callback_context())

    def _go_on(self) -> None:
        if not self._open:
            return
        if self._hand_over():
            callback_context().run(self._loop.add_reader, self._descriptor, self._readable)
        else:
            self._loop.call_soon(self._go_on, context=callback_context())

    def _hand_over(self) -> bool:
        """Whether all lines of the chunk are done: a flood of them is handed over in turns with everything else."""
        over = perf_counter() + TURN
        for line in self._lines:
            self._line(line)
            if perf_counter() >= over and not self._hurried:
                return False
        return True

    def _line(self, line: bytes | LongLine) -> None:
        if isinstance(line, LongLine):
            self._too_long(line)
            return
        try:
            message = decode(line)
        except orjson.JSONDecodeError:
            self._take_odd(line)
        else:
            self._receiver.message(message)

    def _take_odd(self, line: bytes) -> None:
        if not line or line.isspace():
            return
        try:
            messages, problem = decode_leniently(line)
        except NotJson as error:
            self._receiver.diagnostic(error.kind, self._mask(line[:1000].decode("utf-8", "replace")))
            self._fail(answered_id(line[:4096], line[-4096:]), "is not valid JSON")
            return
        if problem is not None:
            self._receiver.diagnostic(problem, self._mask(line[:1000].decode("utf-8", "replace")))
        for message in messages:
            self._receiver.message(message)

    def _too_long(self, line: LongLine) -> None:
        if line.tail is None:
            self._receiver.diagnostic("line_too_long", self._mask(line.head[:1000].decode("utf-8", "replace")))
            self._fail(answered_id(line.head, b""), self._beyond_limit())
        elif answered_id(line.head, b"") is None:
            self._fail(answered_id(line.head, line.tail), self._beyond_limit())

    def _beyond_limit(self) -> str:
        return f"is longer than {self._limit} bytes; raise `line_limit` if that is right"

    def _fail(self, request_id: int | str | None, why: str) -> None:
        if request_id is not None:
            error = ServerFailed(
                f"an answer of server {self._server!r} {why}", server=self._server, kind="protocol", effect="unknown"
            )
            self._receiver.failed(request_id, error)


class _PipeWriter:
    """Writes to a pipe at once, and keeps what does not fit until it does. `on_broken` is called INPUT_GRACE after
    nobody can read it any more."""

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._waiting = bytearray()
        self._problem: str | None = None
        self._progress = Bell()
        self._loop = asyncio.get_running_loop()

    @property
    def broken(self) -> bool:
        return self._problem == BROKEN_INPUT

    def write(self, data: bytes) -> str | None:
        """Take one whole line, or say why not."""
        if self._problem is not None:
            return self._problem
        if self._waiting:
            if len(self._waiting) + len(data) > OUTPUT_LIMIT:
                return f"it does not read its input ({len(self._waiting)} bytes wait for it already)"
            self._waiting += data
            return None
        written = self._write_now(data)
        if written is None:
            return BROKEN_INPUT
        if written < len(data):
            self._waiting += memoryview(data)[written:]
            callback_context().run(self._loop.add_writer, self._descriptor, self._writable)
        return None

    async def emptied(self) -> None:
        """Return once nothing waits any more, or nothing can be written."""
        while self._waiting:
            await self._progress.next_ring()

    def _write_now(self, data: bytes | bytearray) -> int | None:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            return 0
        except OSError:  # EPIPE: the end of the process follows, most often
            self.close(BROKEN_INPUT)
            self._loop.call_later(INPUT_GRACE, self._on_broken, context=callback_context())
            return None

    def _writable(self) -> None:
        written = self._write_now(self._waiting)
        if written is not None:
            del self._waiting[:written]
            if not self._waiting:
                self._loop.remove_writer(self._descriptor)
                self._progress.ring()

    def close(self, problem: str = "it is being closed") -> None:
        """Stop writing; the pipe itself belongs to the process."""
        if self._problem is None:
            self._problem = problem
            self._loop.remove_writer(self._descriptor)
            self._waiting.clear()
            self._progress.ring()


class _LineRing:
    """The newest lines of stderr, at most 64 KiB and 200 lines."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque(maxlen=STDERR_LINES)
        self._size = 0
        self._unfinished = b""

    def feed(self, chunk: bytes) -> None:
        chunk = self._unfinished + chunk[-STDERR_BYTES:]
        *lines, self._unfinished = chunk.split(b"\n")
        self._unfinished = self._unfinished[-STDERR_BYTES // 8 :]
        for line in lines[-STDERR_LINES:]:
            self._add(line[: STDERR_BYTES // 8])

    def _add(self, line: bytes) -> None:
        if len(self._lines) == STDERR_LINES:
            self._size -= len(self._lines[0]) + 1
        self._lines.append(line)
        self._size += len(line) + 1
        while self._size > STDERR_BYTES:
            self._size -= len(self._lines.popleft()) + 1

    def text(self) -> str:
        whole = [*self._lines, self._unfinished] if self._unfinished else list(self._lines)
        return b"\n".join(whole).decode("utf-8", "replace")
