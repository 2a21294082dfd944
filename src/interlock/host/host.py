"""The face of the library: one host for all its servers and Threads.

Owns: the store, the pool and the task group of a process, opened and closed together.
Never: reads a file unless it is made by `Host.open`, or lets the end of one Thread touch another.
"""

import logging
import os
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.abc
import anyio.to_thread

from interlock import models
from interlock.configuration import (
    Configuration,
    Difference,
    ModelConfig,
    Problem,
    difference,
    load,
    refuse_windows,
    store_place,
    watchable_files,
)
from interlock.connections.pool import Pool
from interlock.connections.session import SessionHandlers
from interlock.history.clip import DEFAULT_TOKENS, token_budget
from interlock.history.fold import Fold, ThreadState
from interlock.host.clock import SystemClock
from interlock.host.given import given_servers
from interlock.host.kept_approvals import KeptApprovals
from interlock.host.loading import LoadedThreads, Wishes
from interlock.host.reception import Reception
from interlock.host.requests import ServerRequests
from interlock.host.shelf import Shelf
from interlock.host.watching import changes, refuse_without_watchfiles
from interlock.questions.asking import Reviewer
from interlock.questions.respondent import Desk
from interlock.stores import open_store
from interlock.threads.call import CallRules
from interlock.threads.hooks import Hooks
from interlock.threads.identity import new_id
from interlock.threads.permission import Approvals
from interlock.threads.servers import DEFAULT_GRACE
from interlock.threads.settings import ThreadSettings
from interlock.threads.thread import Thread
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.event import StoredEvent, ThreadRecord, ThreadStarted
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.memory import MemoryUse
from interlock.vocabulary.notice import WarningNotice
from interlock.vocabulary.overrides import ThreadOverrides
from interlock.vocabulary.policy import Policy
from interlock.vocabulary.ports import Clock, Model, Store
from interlock.vocabulary.resource import Page, Resource, ResourceRead, ResourceTemplate
from interlock.vocabulary.server import ServerConfig, ServerReport, ServerStatus, unstarted_report
from interlock.vocabulary.tool import ToolResult

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """What exists only while the Host is open."""

    store: Store
    pool: Pool
    threads: LoadedThreads
    requests: ServerRequests
    shelf: Shelf


class Host:
    """An async context manager; leaving it closes every Thread and every server, bounded.

        async with Host.open("interlock.toml") as host: ...
        async with Host({"time": ServerConfig(name="time", transport=...)}) as host: ...

    `store` is a path or URL (default: `INTERLOCK_STORE`, else interlock.db in the home folder). `model` is used by
    turns that name none. `approvals` says what becomes of a tool call that somebody has to approve: "ask" the
    audience of its Thread (without one it is refused), "deny" it, or "allow" it. `reviewer` may answer questions before
    people do; `hooks` see every call of the model. `elicitation` False: servers are not told that they may ask;
    `extensions`: what else they are told, settings by extension id, but for those that only applications understand
    (CON-13).
    `grace` is seconds that a Step waits for optional servers of a new set (CON-3). `tool_output_token_limit` bounds
    what a model is shown of one result (RES-10); from `auto_compact_token_limit` on, a turn has the history summarised
    by itself (HIS-4; default: never).
    """

    def __init__(
        self,
        servers: Mapping[str, ServerConfig] | None = None,
        *,
        policy: Policy | None = None,
        model: Model | None = None,
        store: str | Path | None = None,
        approvals: Approvals = "ask",
        reviewer: Reviewer | None = None,
        hooks: Hooks | None = None,
        elicitation: bool = True,
        extensions: Mapping[str, JsonObject] | None = None,
        grace: float = DEFAULT_GRACE,
        tool_output_token_limit: int = DEFAULT_TOKENS,
        auto_compact_token_limit: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._configuration = Configuration(
            servers=given_servers(servers),
            policy=policy or Policy(),
            model=ModelConfig(
                tool_output_token_limit=tool_output_token_limit, auto_compact_token_limit=auto_compact_token_limit
            ),
        )
        self._model = model
        self._place = store
        self._approvals: Approvals = approvals
        self._reviewer = reviewer
        self._hooks = hooks or Hooks()
        self._elicitation = elicitation
        self._extensions = dict(extensions or {})
        self._grace = grace
        self._clock = clock or SystemClock()
        self._read: Callable[[], Configuration] | None = None
        self._watched_files: tuple[Path, ...] = ()
        self._reloading = anyio.Lock()
        self._opened: _Open | None = None
        self._stack = AsyncExitStack()

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        *,
        home: str | Path | None = None,
        project: str | Path | None = None,
        environment: Mapping[str, str] = os.environ,
        model: Model | None = None,
        store: str | Path | None = None,
        approvals: Approvals = "ask",
        reviewer: Reviewer | None = None,
        hooks: Hooks | None = None,
        elicitation: bool = True,
        extensions: Mapping[str, JsonObject] | None = None,
        grace: float = DEFAULT_GRACE,
        policy: Callable[[Policy], Policy] = lambda policy: policy,
        watch: bool = False,
    ) -> "Host":
        """A Host with the configuration of these files (see `interlock.configuration.load`).

        `open("interlock.toml")` reads that file only; `open()` the home folder. What is wrong in
        the files stands in `problems`; the servers that are right can be used. `watch`: reload by
        itself whenever the files change, while the Host is open (needs interlock[watch]). `policy` makes
        of every policy that is read the one that holds.

        Raises:
            InvalidRequest: a file cannot be read, or is malformed as a whole; watchfiles is missing.
        """
        host = cls(
            model=model,
            store=store,
            approvals=approvals,
            reviewer=reviewer,
            hooks=hooks,
            elicitation=elicitation,
            extensions=extensions,
            grace=grace,
        )
        read = partial(load, path, home=home, project=project, environment=environment)

        def read_and_adjust() -> Configuration:
            configuration = read()
            return replace(configuration, policy=policy(configuration.policy))

        host._read, host._configuration = read_and_adjust, read_and_adjust()
        if watch:
            refuse_without_watchfiles()
            host._watched_files = watchable_files(path, home=home, project=project, environment=environment)
        if store is None:
            host._place = store_place(environment, Path(home) if home is not None else None)
        return host

    async def __aenter__(self) -> Self:
        refuse_windows()
        if self._opened is not None:
            raise InvalidRequest("this host is open already; make another one")
        place = self._place if self._place is not None else store_place(os.environ)
        async with AsyncExitStack() as stack:
            store = await stack.enter_async_context(open_store(place))
            pool = await stack.enter_async_context(Pool(handlers_for=self._handlers_for))
            tasks = await stack.enter_async_context(anyio.create_task_group())
            threads = LoadedThreads(store, pool, tasks, self._clock, self._settings)
            stack.push_async_callback(threads.close)
            requests = ServerRequests(lambda: self._configuration.servers, pool)
            if self._watched_files:
                closing = anyio.Event()
                stack.callback(closing.set)
                tasks.start_soon(self._follow_files, closing, name="watch of the configuration")
            shelf = Shelf(store, threads, self._clock)
            self._opened = _Open(store=store, pool=pool, threads=threads, requests=requests, shelf=shelf)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        self._opened, stack = None, self._stack
        if isinstance(error, Exception):
            kind, error, traceback = None, None, None  # the block's own error leaves as it is, in no group
        return await stack.__aexit__(kind, error, traceback)

    def __repr__(self) -> str:
        opened = repr(self._opened.threads) if self._opened is not None else "closed"
        return f"<Host servers={list(self._configuration.servers)} {opened}>"

    # ---- what it was given

    @property
    def configuration(self) -> Configuration:
        return self._configuration

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong in the configuration files; `str()` of each is a sentence with its place (CFG-3)."""
        return self._configuration.problems

    async def reload(
        self, servers: Mapping[str, ServerConfig] | None = None, *, policy: Policy | None = None
    ) -> Difference:
        """Take over another configuration; every Thread follows from its next Step on (CFG-6).

        Reads the files of `Host.open` again; a Host made in code gets `servers` and `policy` here, None keeps
        what it has. A server that is the same but for its view (filters, timeouts, approval) keeps its process and
        session; a running Step keeps everything. Where a required server of the new set cannot start, a Thread
        stays with its old servers and says so in a WarningNotice. Failed servers are tried again.

        Raises:
            InvalidRequest: a file cannot be read or is malformed as a whole, or a value is no ServerConfig; nothing
                has changed then.
        """
        async with self._reloading:
            opened, old = self._open, self._configuration
            new = await anyio.to_thread.run_sync(self._read) if self._read is not None else old
            if servers is not None:
                new = replace(new, servers=given_servers(servers))
            self._configuration = new if policy is None else replace(new, policy=policy)
            opened.threads.follow()
            return difference(old, self._configuration)

    # ---- Threads

    async def start_thread(
        self,
        *,
        name: str | None = None,
        overrides: ThreadOverrides | None = None,
        extensions: Mapping[str, JsonObject] | None = None,
    ) -> Thread:
        """A new Thread, once its required servers are ready; optional ones join when they are.

        `overrides`: what it has otherwise than the configuration, also after a reload, for as long as it is loaded.
        `extensions`: what its servers are told besides what the Host tells all; where both name one, the Thread's
        settings count. A server that Threads share is shared by those that tell it the same (CON-15).

        Raises:
            ServerFailed: required servers could not start; all of them are named (CON-2).
            StorageFailed: its start could not be stored.
        """
        model = self._model.name if self._model is not None else self._configuration.model.name
        birth = ThreadStarted(name=name, model=model)
        return await self._open.threads.start(new_id(self._clock), birth, Wishes(overrides, extensions))

    async def resume_thread(
        self,
        thread_id: str,
        *,
        overrides: ThreadOverrides | None = None,
        extensions: Mapping[str, JsonObject] | None = None,
    ) -> Thread:
        """The Thread of that id: the loaded one (LIF-8), else one made from what is stored.

        What a killed host left open is closed first: calls as interrupted, effect unknown (LIF-1).
        `overrides` and `extensions` as in `start_thread`; a loaded Thread has the overrides from its next turn on,
        and keeps the extensions that it was loaded with.

        Raises:
            InvalidRequest: no such Thread is stored.
            StorageFailed: another process writes it (HIS-7), or it cannot be read.
            ServerFailed: required servers could not start.
        """
        return await self._open.threads.resume(thread_id, Wishes(overrides, extensions))

    @property
    def loaded_threads(self) -> Mapping[str, Thread]:
        """The Threads that are loaded here now, by id; not to be taken for what is stored (HIS-8)."""
        return self._open.threads.all

    async def threads(
        self,
        *,
        limit: int = 50,
        before: int | None = None,
        before_id: str | None = None,
        archived: bool | None = None,
    ) -> tuple[ThreadRecord, ...]:
        """Stored Threads, the latest changed first; continue with the last record's `updated_at` and `thread_id`.

        `archived`: only those that are put away, or that are not; None: all.
        """
        return await self._open.store.threads(limit=limit, before=before, before_id=before_id, archived=archived)

    async def read_thread(self, thread_id: str) -> ThreadState:
        """What is stored of a Thread; it is neither loaded nor claimed.

        Raises:
            InvalidRequest: no such Thread is stored.
        """
        folding = Fold(thread_id, await self._open.store.load_checkpoint(thread_id))
        async with aclosing(self.events(thread_id, after=folding.last_sequence)) as events:
            async for stored in events:
                folding.apply(stored)
        if folding.last_sequence == 0:
            raise InvalidRequest(f"there is no thread {thread_id!r} in the store")
        return folding.state

    async def fork_thread(
        self,
        thread_id: str,
        turn_id: str | None = None,
        *,
        overrides: ThreadOverrides | None = None,
        extensions: Mapping[str, JsonObject] | None = None,
    ) -> Thread:
        """A new Thread that stands where that one stood at the end of `turn_id`, by default its last turn.

        Turns, history and origins are copied; the source goes its own way, whoever holds it. The fork has its own
        `overrides` and `extensions`, not those of the source.

        Raises:
            InvalidRequest: there is no such Thread, or no such turn that has ended and was not rolled back.
            StorageFailed, ServerFailed: as `resume_thread`.
        """
        fork = await self._open.shelf.fork(thread_id, turn_id)
        thread = await self.resume_thread(fork, overrides=overrides, extensions=extensions)
        if thread.journal.facts.archived:
            await thread.archive(False)
        return thread

    async def archive_thread(self, thread_id: str, archived: bool = True) -> None:
        """Put a Thread away in lists (ThreadRecord.archived), or take it back.

        Raises:
            InvalidRequest: no such Thread is stored.
            StorageFailed: another process writes it (HIS-7).
        """
        await self._open.shelf.archive(thread_id, archived)

    async def delete_thread(self, thread_id: str) -> None:
        """Forget a Thread for ever, with all that is stored of it; a loaded one is closed first.

        Raises:
            InvalidRequest: no such Thread is stored.
            StorageFailed: another process writes it (HIS-7).
        """
        await self._open.shelf.delete(thread_id)

    def export_thread(self, thread_id: str) -> AsyncGenerator[str, None]:
        """The stored events of a Thread as lines of JSON, without newlines; `import_thread` takes them.

        InvalidRequest, when iterated: no such Thread is stored.
        """
        return self._open.shelf.lines(thread_id)

    async def import_thread(self, lines: AsyncIterable[str], *, new: bool = False) -> str:
        """Store the Thread of exported lines, under its own id or a `new` one; the id comes back. It is not loaded.

        Raises:
            InvalidRequest: a line cannot be read, contradicts those before, or the Thread is stored already;
                nothing of it stays.
        """
        return await self._open.shelf.bring_in(lines, new=new)

    async def memory_uses(self, *, limit: int = 50) -> tuple[MemoryUse, ...]:
        """How often answers cited the memories that were made of Threads, the most used first (MEM-5)."""
        return await self._open.store.memory_uses(limit=limit)

    def events(self, thread_id: str, *, after: int = 0) -> AsyncGenerator[StoredEvent, None]:
        """The stored events of a Thread above sequence `after`; ends with the last one stored now."""
        return self._open.store.read(thread_id, after=after)

    # ---- servers

    def reports(self) -> tuple[ServerReport, ...]:
        """The state of every configured server; nothing is started by asking (CON-16)."""
        live = sorted(self._open.pool.reports(), key=lambda report: report.status is ServerStatus.READY)
        by_name = {report.name: report for report in live}
        return tuple(by_name.get(c.name) or unstarted_report(c) for c in self._configuration.servers.values())

    @property
    def requests(self) -> ServerRequests:
        """Requests to single servers, for which no Thread is needed (RPC-2)."""
        return self._open.requests

    async def read_resource(self, server: str, uri: str, *, meta: JsonObject | None = None) -> ResourceRead:
        """Read a resource for the application: not a model's act, so no item and no history."""
        return await self._open.requests.read_resource(server, uri, meta=meta)

    async def list_resources(self, server: str, *, cursor: str | None = None) -> Page[Resource]:
        """One page of a server's resources."""
        return await self._open.requests.list_resources(server, cursor=cursor)

    async def list_resource_templates(self, server: str, *, cursor: str | None = None) -> Page[ResourceTemplate]:
        """One page of a server's resource templates."""
        return await self._open.requests.list_resource_templates(server, cursor=cursor)

    async def call_tool(self, server: str, tool: str, arguments: JsonObject | None = None) -> ToolResult:
        """Call a tool by its remote name, under the server's filters (CAT-8); no item, no history."""
        return await self._open.requests.call_tool(server, tool, arguments)

    # ---- inside

    @property
    def _open(self) -> _Open:
        if self._opened is None:
            raise InvalidRequest("this host is not open; use it inside `async with`")
        return self._opened

    async def _follow_files(self, closing: anyio.Event) -> None:
        try:
            async with aclosing(changes(self._watched_files, closing)) as bursts:
                async for _ in bursts:
                    await self._reload_or_warn()
        except (OSError, RuntimeError) as error:  # the system's limit of watches, say
            self._warn(f"the configuration is no longer watched, reload it by hand: {error}")

    async def _reload_or_warn(self) -> None:
        try:
            changed = await self.reload()
        except InvalidRequest as error:
            self._warn(f"the configuration that was read before stays in use: {error.message}")
        else:
            if changed:
                logger.info("the configuration was read again: %s", changed)

    def _warn(self, sentence: str) -> None:
        logger.warning("%s", sentence)
        if self._opened is not None:
            self._opened.threads.notify(WarningNotice(message=sentence))

    def _settings(self) -> ThreadSettings:
        configuration = self._configuration
        return ThreadSettings(
            servers=tuple(configuration.servers.values()),
            policy=configuration.policy,
            rules=CallRules(
                approvals=self._approvals,
                output_limit=token_budget(configuration.model.tool_output_token_limit),
                hooks=self._hooks,
                keeper=KeptApprovals(configuration.editable, self._approval_kept),
            ),
            default_model=lambda: self._chosen_model(None),
            model_named=self._chosen_model,
            grace=self._grace,
            reviewer=self._reviewer,
            compact_at=configuration.model.auto_compact_token_limit,
        )

    async def _approval_kept(self, failure: str | None) -> None:
        """An approval was written into a file, or could not be; Steps from now on know it from there."""
        if failure is None:
            await self._reload_or_warn()
        elif self._opened is not None:
            self._opened.threads.notify(WarningNotice(message=failure))

    def _handlers_for(self, config: ServerConfig, owner: str) -> SessionHandlers:
        """What a new connection of an owner listens to; its questions go to that Thread, if it is one."""
        respondent = Reception(owner, self._desk) if self._elicitation else None
        of_owner = self._opened.threads.extensions(owner) if self._opened is not None else {}
        return SessionHandlers(respondent=respondent, extensions={**self._extensions, **of_owner})

    def _desk(self, owner: str) -> Desk | None:
        return self._opened.threads.desk(owner) if self._opened is not None else None

    def _chosen_model(self, name: str | None) -> Model:
        """The Host's model; without one, that of the configuration, which `name` may stand above."""
        if self._model is not None:
            return self._model
        config = self._configuration.model
        return models.from_configuration(config if name is None else replace(config, name=name))
