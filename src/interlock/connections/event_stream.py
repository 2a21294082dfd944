"""Server-sent events, read from bytes that may be cut anywhere.

Owns: the line and field rules of text/event-stream (WHATWG HTML section 9.2.6), one stream's newest event id and
retry time, and the bound on what one event may hold.
Never: reads a socket, decodes JSON, or reconnects.
"""

from dataclasses import dataclass

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_RETRY = 3600.0
LONGEST_ID = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSentEvent:
    """One event. `data` is raw UTF-8, its lines joined by a newline; it may be empty.

    `too_large` marks an event that passed the limit: its data is gone (CON-8).
    """

    name: str = "message"
    data: bytes = b""
    too_large: bool = False


class EventStream:
    """Feed it chunks, take events; at most `limit` bytes of one event are held.

    `last_event_id` is the id of the newest *complete* event, so that resuming from it never skips one that
    was cut off. `retry` is in seconds, None until the server said it.
    """

    def __init__(self, limit: int, last_event_id: str = "", retry: float | None = None) -> None:
        self.last_event_id = last_event_id
        self.retry = retry
        self._limit = limit
        self._pieces: list[bytes] = []  # the line that has no end yet
        self._data: list[bytes] = []
        self._unfinished = 0  # bytes in _pieces
        self._held = 0  # bytes in _data
        self._name = ""
        self._id = last_event_id
        self._first_line = True
        self._after_carriage_return = False
        self._too_large = False

    def again(self) -> "EventStream":
        """For the connection that goes on where this one ended."""
        return EventStream(self._limit, self.last_event_id, self.retry)

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """The events that `chunk` completed, in order."""
        if self._after_carriage_return and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_carriage_return = False
        if not chunk:
            return []
        lines = chunk.splitlines()  # of bytes: CR, LF and CRLF only, which is the standard's rule
        rest = b"" if chunk.endswith((b"\n", b"\r")) else lines.pop()
        self._after_carriage_return = chunk.endswith(b"\r")
        events: list[ServerSentEvent] = []
        for line in lines:
            self._line(self._completed(line), events)
        if rest:
            self._keep(rest, events)
        return events

    def end(self) -> list[ServerSentEvent]:
        """The stream ended properly: the last event, when only its blank line is missing.

        The standard drops such an event. Small servers forget that line, and a message that was cut cannot be
        whole JSON, so the reader decides. Its id does not count: a cut may look like an end.
        """
        events: list[ServerSentEvent] = []
        if unfinished := self._completed(b""):
            self._line(unfinished, events)
        self._id = self.last_event_id
        self._line(b"", events)
        return events

    def _completed(self, line: bytes) -> bytes:
        if self._pieces:
            line = b"".join((*self._pieces, line))
            self._pieces.clear()
            self._unfinished = 0
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(BYTE_ORDER_MARK)
        return line

    def _keep(self, rest: bytes, events: list[ServerSentEvent]) -> None:
        """Hold the beginning of a line; of a comment and of what is too large nothing but a colon."""
        if (self._pieces[0] if self._pieces else rest).startswith(b":"):
            self._pieces = [b":"]
            return
        self._pieces.append(rest)
        self._unfinished += len(rest)
        self._bound(events)

    def _bound(self, events: list[ServerSentEvent]) -> None:
        if not self._too_large and self._held + self._unfinished <= self._limit:
            return
        if not self._too_large:
            events.append(ServerSentEvent(name=self._name or "message", too_large=True))
        self._too_large = True
        self._data.clear()
        if self._pieces:
            self._pieces = [b":"]

    def _line(self, line: bytes, events: list[ServerSentEvent]) -> None:
        if not line:
            self._dispatch(events)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
                self._held += len(value) + 1
                self._bound(events)
            case b"event":
                self._name = value[:LONGEST_ID].decode("utf-8", "replace")
            case b"id" if b"\0" not in value and len(value) <= LONGEST_ID:
                self._id = value.decode("utf-8", "replace")
            case b"retry" if value.isdigit() and len(value) < 16:
                self.retry = min(int(value) / 1000, LONGEST_RETRY)
            case _:
                pass

    def _dispatch(self, events: list[ServerSentEvent]) -> None:
        self.last_event_id = self._id
        if self._data:
            events.append(ServerSentEvent(name=self._name or "message", data=b"\n".join(self._data)))
        self._data.clear()
        self._held = 0
        self._name = ""
        self._too_large = False
