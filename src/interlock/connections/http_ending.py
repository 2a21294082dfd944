"""The end of a connection, told to who reads a body from it.

Owns: a gap of aiohttp's (seen in 3.14): a chunk that cannot be read ends the connection, and the reader of the body
hears of it only if the chunk came in one piece with the head. Else it waited until its call's time was over.
Never: reads, or tells what a reader knows already.
"""

import asyncio

import aiohttp


class Ending:
    """with Ending(response): read its body; a connection that ends meanwhile ends the body with ClientPayloadError."""

    __slots__ = ("_closed", "_content", "_lost")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        connection = response.connection  # none where the whole body has come
        protocol = None if connection is None else connection.protocol
        self._content = response.content
        self._closed = None if protocol is None else protocol.closed
        self._lost = protocol is not None and self._closed is None

    def __enter__(self) -> None:
        if self._closed is not None:
            self._closed.add_done_callback(self._tell)
        elif self._lost:
            self._end()

    def __exit__(self, *_: object) -> None:
        if self._closed is not None:
            self._closed.remove_done_callback(self._tell)

    def _tell(self, closed: "asyncio.Future[None]") -> None:
        if not closed.cancelled():
            closed.exception()  # else asyncio complains that nobody asked
        self._end()

    def _end(self) -> None:
        if not self._content.is_eof() and self._content.exception() is None:
            self._content.set_exception(aiohttp.ClientPayloadError("the connection ended within the body"))
