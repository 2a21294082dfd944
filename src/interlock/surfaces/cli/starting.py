"""Servers that live as long as one command.

Owns: the pool of a command that asks servers, and showing their start.
Never: opens a store or a thread: looking at servers leaves nothing behind.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from interlock.configuration import Configuration
from interlock.connections.pool import Pool
from interlock.surfaces.cli.progress import start_progress
from interlock.vocabulary.snapshot import ServerView

OWNER = "command line"


@asynccontextmanager
async def starting(
    closing: AsyncExitStack, configuration: Configuration, names: Iterable[str]
) -> AsyncIterator[Mapping[str, ServerView]]:
    """Start these servers side by side; their progress is shown while the block runs.

    They are closed with `closing`, after the result was printed: a server that is slow to end holds nobody up.
    Nobody listens, so their questions are declined (QST-4).
    """
    pool = await closing.enter_async_context(Pool())
    # Nobody waits for a second life: a server that ends has failed, and its report says why from then on.
    configs = [replace(configuration.servers[name], restart="never") for name in names]
    views = {c.name: ServerView(config=c, connection=pool.acquire(c, owner=OWNER)) for c in configs}
    async with start_progress(pool.reports):
        yield views
