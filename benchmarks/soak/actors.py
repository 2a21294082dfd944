"""Who carries out a plan: each actor has one Thread at a time.

Owns: an actor's Thread, the record of what it did, and the checks of each answer.
Never: chooses what to do.
"""

import itertools
from collections import Counter
from collections.abc import Iterator

import anyio

from benchmarks.soak.plan import Act, Call, Calls, Kill, Read, Reload, Reopen
from benchmarks.soak.world import World
from interlock import Host
from interlock.threads.step import CallResult, Step
from interlock.threads.thread import Thread

HUNG = 60.0
"""Seconds after which an act counts as hung; everything in it has a deadline of its own far below."""


class Wrong(AssertionError):
    """The host did what it must never do."""


class Record:
    """What all actors did: the status of each call by Thread and call id, and how often what came of a call."""

    def __init__(self) -> None:
        self.statuses: dict[str, dict[str, str]] = {}
        self.outcomes: Counter[str] = Counter()
        self.acts: Counter[str] = Counter()

    def add(self, thread_id: str, result: CallResult) -> None:
        self.statuses[thread_id][result.call_id] = result.item.status
        code = result.item.error.code if result.item.error is not None else result.item.status
        self.outcomes[code] += 1


class Actor:
    def __init__(self, number: int, host: Host, world: World, record: Record) -> None:
        self.number = number
        self._host = host
        self._world = world
        self._record = record
        self._numbers = itertools.count()
        self._thread: Thread | None = None

    async def act(self, acts: Iterator[Act], until: float) -> None:
        """Acts until it is time to rest."""
        for act in acts:
            if anyio.current_time() >= until:
                return
            self._record.acts[type(act).__name__] += 1
            try:
                with anyio.fail_after(HUNG):
                    await self._do(act)
            except TimeoutError:
                raise Wrong(f"actor {self.number} hung in {act!r:.300}") from None

    async def begin_anew(self) -> None:
        """Another Thread; the old one goes only then, so that shared connections stay."""
        old = self._thread
        self._thread = await self._host.start_thread()
        self._record.statuses[self._thread.id] = {}
        if old is not None:
            await old.close()

    async def _do(self, act: Act) -> None:
        match act:
            case Calls():
                await self._calls(act)
            case Read(server=server):
                await self._read(server)
            case Kill(server=name):
                running = (report.process_id for report in self._host.reports() if report.name == name)
                self._world.kill(name, next(running, None))
            case Reload():
                await self._host.reload(self._world.after(act))
            case Reopen(resumed=True):
                await self._resume()
            case Reopen():
                await self.begin_anew()

    @property
    def _current(self) -> Thread:
        assert self._thread is not None
        return self._thread

    async def _resume(self) -> None:
        thread_id = self._current.id
        await self._current.close()
        self._thread = await self._host.resume_thread(thread_id)

    async def _calls(self, act: Calls) -> None:
        with anyio.move_on_after(None if act.left_after is None else act.left_after / 1000):
            async with self._current.step() as step, anyio.create_task_group() as tasks:
                for call in act.calls:
                    tasks.start_soon(self._call, step, call)

    async def _call(self, step: Step, call: Call) -> None:
        token = f"{self.number}-{next(self._numbers)}"
        seconds = None if call.cancelled_after is None else call.cancelled_after / 1000
        with anyio.move_on_after(seconds):
            result = await step.call(token, f"mcp__{call.server}__{call.tool}", {**call.arguments, "token": token})
            self._record.add(self._current.id, result)
            if not result.is_error and not (result.text + " ").startswith(f"{call.server} {token} "):
                raise Wrong(f"call {token} of {call.server} got the answer {result.text[:100]!r}")
            return
        self._record.outcomes["given up"] += 1

    async def _read(self, server: str | None) -> None:
        token = f"{self.number}-{next(self._numbers)}"
        name, arguments = "list_mcp_resources", {}
        if server is not None:
            name, arguments = "read_mcp_resource", {"server": server, "uri": f"soak://{server}"}
        async with self._current.step() as step:
            result = await step.call(token, name, arguments)
        self._record.add(self._current.id, result)
