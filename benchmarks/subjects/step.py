"""The whole of Interlock: a Host with its store, a Thread, and calls of a Step under the policy.

It does not `touch`: a Thread follows its servers by itself, in a rhythm that calms storms (benchmarks/growth.py). Nor
does it `read`: a model is shown some KiB of a large resource. Its store is there before the first round that counts, as
a user's is after the first day.
"""

import atexit
import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from benchmarks.subjects.connection import TIMEOUT, config_of
from benchmarks.subjects.ports import ARGUMENTS, TOOL, Client, Place, expect
from interlock import Host
from interlock.threads.step import Step

NUMBERS = itertools.count()


class StepClient:
    def __init__(self, step: Step, server: str) -> None:
        self._step = step
        self._server = server
        self._tool = f"mcp__{server}__{TOOL}"

    async def call(self) -> None:
        result = await self._step.call(f"call-{next(NUMBERS)}", self._tool, ARGUMENTS)
        expect(result.text == "ok", result)

    async def tools(self) -> int:
        """A Step has its tools."""
        return sum(spec.name.startswith(f"mcp__{self._server}__") for spec in self._step.tools)


class Steps:
    @asynccontextmanager
    async def open(self, places: Sequence[Place]) -> AsyncIterator[Sequence[Client]]:
        servers = {place.name: config_of(place) for place in places}
        async with (
            Host(servers, store=store(), grace=TIMEOUT) as host,
            (await host.start_thread()).step() as step,
        ):
            yield [StepClient(step, place.name) for place in places]


@cache
def store() -> Path:
    """The one store of this process, which goes with it; the warm-up makes it."""
    folder = tempfile.mkdtemp(prefix="interlock-benchmark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder, "store.db")


SUBJECT = Steps()
