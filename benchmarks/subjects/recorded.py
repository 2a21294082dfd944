"""A Connection call between two bare inserts: the least program that stores the start and the end of each call.

The inserts are those of `sqlite`, which makes them in a tight loop. Here each stands where a host needs it:
the first before the request goes out, the second after the process has slept until the answer came.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from benchmarks.subjects.connection import SUBJECT as CONNECTIONS
from benchmarks.subjects.ports import Client, Place
from benchmarks.subjects.sqlite import SUBJECT as INSERTS
from benchmarks.subjects.sqlite import Inserts


class RecordedClient:
    def __init__(self, client: Client, inserts: Inserts) -> None:
        self._client = client
        self._inserts = inserts

    async def call(self) -> None:
        self._inserts.insert()
        await self._client.call()
        self._inserts.insert()


class Recorded:
    @asynccontextmanager
    async def open(self, places: Sequence[Place]) -> AsyncIterator[Sequence[Client]]:
        async with INSERTS.open(places) as (inserts,), CONNECTIONS.open(places) as clients:
            yield [RecordedClient(client, inserts) for client in clients]


SUBJECT = Recorded()
