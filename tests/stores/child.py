"""A process of its own for tests that kill it: python -m tests.stores.child PLACE hold|append THREAD."""

import sys

import anyio

from interlock.stores import open_store
from interlock.vocabulary.event import ThreadNamed, ThreadStarted
from interlock.vocabulary.ports import EventStore


async def hold(store: EventStore, thread_id: str) -> None:
    async with store.claim(thread_id):
        say("held")
        await anyio.sleep_forever()


async def append(store: EventStore, thread_id: str) -> None:
    """Store one event after another; say each number once it is stored."""
    await store.append(thread_id, [ThreadStarted()], after=0, at=0)
    say("1.")
    for sequence in range(2, 100_000):
        await store.append(thread_id, [ThreadNamed(name=f"name {sequence}")], after=sequence - 1, at=sequence)
        say(f"{sequence}.")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main(place: str, task: str, thread_id: str) -> None:
    async with open_store(place) as store:
        await {"hold": hold, "append": append}[task](store, thread_id)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
