"""Event streams that outlive a cut: the answer to one request, and the server's own messages.

Owns: reading one response as events, re-opening it with Last-Event-ID, the pauses in between.
Never: sends a message, or judges what was received.
"""

import random
from collections.abc import Callable, Mapping
from typing import Final, Literal

import aiohttp
import anyio
from multidict import CIMultiDict

from interlock.connections.event_stream import EventStream, ServerSentEvent
from interlock.connections.http_client import HttpClient
from interlock.connections.http_ending import Ending
from interlock.connections.inbox import Inbox
from interlock.connections.slices import Pace, in_slices
from interlock.vocabulary.errors import ServerFailed
from interlock.vocabulary.slices import Sliced

DEFAULT_RETRY: Final = 1.0
"""Seconds before the first try when the server never said `retry` (what the official SDKs use)."""
SHORTEST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
LONG_LIVED_SECONDS: Final = 10.0
LINGER_SECONDS: Final = 1.0
LINGER_BYTES: Final = 64 * 1024
PIECE: Final = 4096
"""Bytes of a stream that are looked through in one step."""


def content_type(response: aiohttp.ClientResponse) -> str:
    """The media type in lower case, without parameters; empty if there is none."""
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def is_event_stream(response: aiohttp.ClientResponse) -> bool:
    return response.status < 300 and content_type(response) == "text/event-stream"


def pause(stream: EventStream, tries: int) -> float:
    """Seconds before the try number `tries` (from 0): what the server asked for, and more when tries bring nothing."""
    asked = DEFAULT_RETRY if stream.retry is None else stream.retry
    grown = min(SHORTEST_PAUSE * 2.0 ** (tries - 1), LONGEST_PAUSE) if tries else 0.0
    return max(asked, grown * random.uniform(0.75, 1.0))


async def read_events(
    response: aiohttp.ClientResponse, stream: EventStream, on_event: Callable[[ServerSentEvent], bool]
) -> bool:
    """Give every event of the response to `on_event`, until that says True or the stream ends.

    Returns whether `on_event` said True. A cut is an end: the caller has to ask again or to give up either way.
    """
    pace = Pace()
    try:
        with Ending(response):
            while chunk := await response.content.readany():  # a body that unpacks to much more is there all the time
                if await in_slices(_giving(stream, chunk, on_event)):
                    return True
                await pace.step()
    except (aiohttp.ClientError, OSError):
        return False
    done = False
    for event in stream.end():
        done = on_event(event) or done
    return done


def _giving(stream: EventStream, chunk: bytes, on_event: Callable[[ServerSentEvent], bool]) -> Sliced[bool]:
    done = False
    for start in range(0, len(chunk), PIECE):
        for event in stream.feed(chunk[start : start + PIECE]):  # also those behind the one that was waited for
            done = on_event(event) or done
            yield
        yield
    return done


async def linger(response: aiohttp.ClientResponse) -> None:
    """Give a response that is not needed a moment to end, so that its connection can be used again."""
    size, pace = 0, Pace()
    with anyio.move_on_after(LINGER_SECONDS):
        try:
            with Ending(response):
                while size < LINGER_BYTES and (chunk := await response.content.readany()):
                    size += len(chunk)
                    await pace.step()
        except (aiohttp.ClientError, OSError):
            return


def resuming(stream: EventStream) -> Mapping[str, str]:
    """The header that asks a server to go on after the newest event; none if events bore no ids."""
    return {"Last-Event-ID": stream.last_event_id} if stream.last_event_id else {}


Visit = Literal["again", "over", "session_lost"]


class Listener:
    """The GET stream of the handshake era, on which a server sends what belongs to no request."""

    def __init__(self, client: HttpClient, inbox: Inbox, limit: int, headers: Callable[[], CIMultiDict[str]]) -> None:
        self._client = client
        self._inbox = inbox
        self._stream = EventStream(limit)
        self._headers = headers
        self._was_open = False

    async def run(self) -> bool:
        """Listen for as long as the server offers the stream; any refusal (405, 400, a page) means it has none.

        Returns True if the stream was open before and is now answered with 404: the session is lost (CON-7).
        """
        tries = 0
        while True:
            started = anyio.current_time()
            visit = await self._visit()
            if visit != "again":
                return visit == "session_lost"
            tries = 0 if anyio.current_time() - started > LONG_LIVED_SECONDS else tries + 1
            await anyio.sleep(pause(self._stream, tries))

    async def _visit(self) -> Visit:
        try:
            headers = self._headers()
            headers.update(resuming(self._stream))
            response = await self._client.request("GET", headers, what="the GET for its own messages")
        except ServerFailed as error:
            return "over" if error.kind == "protocol" else "again"
        try:
            if response.status == 404 and self._was_open:
                return "session_lost"
            if not is_event_stream(response):
                return "again" if response.status >= 500 or response.status == 429 else "over"
            self._was_open = True
            self._stream = self._stream.again()
            await read_events(response, self._stream, self._inbox.take_event)
            return "again"
        finally:
            response.close()
