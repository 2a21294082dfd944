"""An app server over WebSocket whose model says the time, 20 times a second.

    python -m benchmarks.app_server_host STORE PIECES

Prints its address, and ends when its stdin, a pipe, does: with whoever started it. Each piece of a message is the
monotonic clock in nanoseconds when the model said it.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator

from interlock import Host
from interlock.surfaces.rpc.app_server import serve
from interlock.surfaces.rpc.listening import Listening, WebSocket
from interlock.vocabulary.conversation import (
    AssistantEntry,
    EntryCompleted,
    ModelEvent,
    ModelRequest,
    SamplingCompleted,
    TextDelta,
)

PAUSE = 0.05


class Clockwork:
    """The port Model."""

    name, provider = "clockwork", "benchmark"

    def __init__(self, pieces: int) -> None:
        self._pieces = pieces

    async def sample(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        said = []
        for _ in range(self._pieces):
            await asyncio.sleep(PAUSE)
            said.append(str(time.monotonic_ns()))
            yield TextDelta(text=said[-1])
        yield EntryCompleted(entry=AssistantEntry(text="".join(said)))
        yield SamplingCompleted()


async def main(store: str, pieces: int) -> None:
    loop, serving = asyncio.get_running_loop(), asyncio.current_task()
    assert serving is not None
    loop.add_reader(sys.stdin, serving.cancel)
    async with Host(store=store, model=Clockwork(pieces)) as host:
        listening = Listening(place=WebSocket("127.0.0.1", 0), said=lambda address: print(address, flush=True))
        await serve(host, listening, home=store)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
