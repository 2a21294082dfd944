"""Messages of an HTTP body or event, decoded and handed on.

Owns: the forgiving way from bytes to JSON-RPC messages, and the question whether a request's own answer was among them.
Never: reads a socket, or drops a message; the dispatcher judges ids and methods.
"""

from typing import TypeAlias

import orjson

from interlock.connections.channel import Receiver
from interlock.connections.event_stream import ServerSentEvent
from interlock.connections.lines import MOST_TOGETHER, decode, decode_plainly
from interlock.vocabulary.json import JsonValue

RequestId: TypeAlias = int | str

LONGEST_EXAMPLE = 200


class NotJson(ValueError):
    """The bytes are no JSON value."""


class Inbox:
    """Where all messages of one channel arrive."""

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver

    def take(self, text: bytes, awaited: RequestId | None = None) -> bool:
        """Hand on the message in `text`, or each of a batch (2025-03-26); True if one of them answers `awaited`.

        Raises:
            NotJson: nothing was handed on.
        """
        value = self._decoded(text)
        messages = value if isinstance(value, list) else [value]
        if len(messages) > MOST_TOGETHER:
            told = f"a batch of {len(messages)} messages, of which {MOST_TOGETHER} are read"
            self.receiver.diagnostic("noise", told)
            messages = messages[:MOST_TOGETHER]
        for message in messages:
            self.receiver.message(message, awaited)
        return awaited is not None and any(answers(message, awaited) for message in messages)

    def take_event(self, event: ServerSentEvent, awaited: RequestId | None = None) -> bool:
        """The same for an event of a stream; what is no message costs a diagnostic.

        Events with another name and with empty data (keep-alives, ids) are passed over.
        """
        if event.too_large:
            self.receiver.diagnostic("line_too_long", "an event of an event stream is over the limit")
            return False
        if event.name != "message" or not event.data.strip():
            return False
        try:
            return self.take(event.data, awaited)
        except NotJson:
            self.receiver.diagnostic("noise", event.data[:LONGEST_EXAMPLE].decode("utf-8", "replace"))
            return False

    def _decoded(self, text: bytes) -> JsonValue:
        try:
            return decode(text)
        except orjson.JSONDecodeError:
            value, clean = _decoded_slowly(text)
        if not clean:
            self.receiver.diagnostic("invalid_utf8", text[:LONGEST_EXAMPLE].decode("utf-8", "replace"))
        return value


def answers(message: JsonValue, awaited: RequestId) -> bool:
    """Whether `message` is a response that belongs to the request `awaited`.

    Here "7" belongs to 7, as it came as the answer to that POST; whether it is taken is the dispatcher's rule (CON-9).
    """
    if not isinstance(message, dict) or "method" in message:
        return False
    answered = message.get("id")
    return isinstance(answered, int | str) and str(answered) == str(awaited)


def _decoded_slowly(text: bytes) -> tuple[JsonValue, bool]:
    """What orjson refuses, by the rules for a line of stdio: a value that can be stored; and whether it was UTF-8."""
    try:
        plain, clean = text.decode("utf-8-sig"), True
    except UnicodeDecodeError:
        plain, clean = text.decode("utf-8-sig", "replace"), False
    try:
        return decode_plainly(plain), clean
    except (ValueError, RecursionError):
        raise NotJson from None
