"""The one owner of a server's sessions: starts it, waits for its end, starts it again.

Owns: the state of one configured server, its current session, and all that outlives a session
(restarts, diagnostics, the newest stderr, the era that worked).
Never: sends a request of a caller or makes values of results; `connection` does, on the session it gets here.

One task runs `run`, from the first start to the last close. Everybody else only reads the state,
waits for it to change, or asks the owner to stop.
"""

import logging
import random
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final, Protocol

import anyio

from interlock.connections.bell import Bell, Once, first_of
from interlock.connections.clock import now
from interlock.connections.session import Session, SessionHandlers, open_session
from interlock.connections.startup import Recovery, State
from interlock.vocabulary.errors import ServerFailed, ServerFailure
from interlock.vocabulary.server import (
    Diagnostic,
    Era,
    HttpTransport,
    ServerConfig,
    ServerReport,
    ServerStatus,
)

logger = logging.getLogger(__name__)

HTTP_PAUSES: Final = (0.25, 1.0)
"""Seconds between the tries of an HTTP server's first contact (BEHAVIOUR section 3); a process gets one."""
STANDARD_ERROR_KEPT: Final = 16 * 1024
"""Characters of stderr that are kept from sessions that ended."""
SLACK: Final = 1.0
"""Seconds that a waiter grants beyond the start-up deadline, to hear the reason of the failure itself."""
QUICK: Final = 1.0
"""Seconds. A session that is lost sooner, after being re-opened at once, is re-opened under the backoff."""
VAIN_LIVES: Final = 2
"""Lives in a row, each shorter than QUICK and of use to nobody, after which a restart is no longer waited for."""
LONGEST_OBLIGED: Final = 300.0
"""Seconds of Retry-After that are honoured; a server cannot send us away for longer."""

WAITING: Final = frozenset({ServerStatus.FAILED, ServerStatus.AUTHENTICATION_REQUIRED})
"""States in which the owner waits for the time of the next try."""

Listener = Callable[[], None]


Companion = Callable[[], Coroutine[Any, Any, None]]
"""What runs beside one session, and is cancelled with it."""


class Opener(Protocol):
    """`open_session`, or what a test puts in its place."""

    def __call__(
        self, config: ServerConfig, *, timeout: float, era: Era | None, handlers: SessionHandlers
    ) -> AbstractAsyncContextManager[Session]: ...


class Supervisor:
    """One configured server, supervised. `config` may be replaced by one of equal identity.

    `randomness` gives numbers in [0, 1) for the jitter of the backoff.
    """

    def __init__(
        self,
        config: ServerConfig,
        *,
        handlers: SessionHandlers,
        era: Era | None = None,
        opener: Opener = open_session,
        recovery: Recovery | None = None,
        randomness: Callable[[], float] = random.random,
    ) -> None:
        self.config = config
        self.era = era
        self.state = State()
        if config.problem is not None:  # never started, so never moved (CFG-3)
            self.state = State(status=ServerStatus.FAILED, reason=config.problem)
        self.handlers = handlers
        self.used = False
        """Set by who sends a request of a caller: the life of this session was not in vain."""
        self.companion: Callable[[Session], Companion | None] = lambda session: None
        """Called with each session that became ready, for what is to run beside it."""
        self._opener = opener
        self._recovery = recovery or Recovery()
        self._randomness = randomness
        self._next_try: float | None = 0.0 if config.problem is None else None
        self._failing: str | None = None
        self._starts = 0
        self._session: Session | None = None
        self._introduction: ServerReport | None = None
        self._past_diagnostics: tuple[Diagnostic, ...] = ()
        self._past_standard_error = ""
        self._reopened = False
        self._asked_again = False
        self._vain_lives = 0
        self._listeners: list[Listener] = []
        self._changed = Bell()
        self._over = Once()
        self._asked_to_close = Once()
        self._closing = False
        self._scope: anyio.CancelScope | None = None

    def __repr__(self) -> str:
        return f"<Supervisor {self.config.name!r} {self.state.status.value} starts={self._starts}>"

    # ---- what anybody may ask

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def session(self) -> Session | None:
        """The session that can be asked right now."""
        session = self._session
        return None if session is None or session.ended.is_set() else session

    @property
    def closing(self) -> bool:
        """Whether it was asked to end, or has ended; nothing may be built on it any more."""
        return self._closing

    @property
    def given_up(self) -> bool:
        """Whether the breaker is open: the server failed again and again, and rests."""
        return self._recovery.given_up

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` called after every change of state, until the returned function is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def report(self) -> ServerReport:
        """A frozen copy of the present; what only a session can know is from the last one that was ready."""
        config, session = self.config, self._session
        known = self._introduction or ServerReport(name=config.name, status=self.state.status)
        overdue = self._overdue
        return replace(
            known,
            status=ServerStatus.FAILED if overdue else self.state.status,
            reason=self._why_late() if overdue else self.state.reason,
            required=config.required,
            transport="http" if isinstance(config.transport, HttpTransport) else "stdio",
            restarts=max(0, self._starts - 1),
            process_id=session.process_id if session else None,
            diagnostics=merged(self._past_diagnostics, session.diagnostics() if session else ()),
            standard_error=(self._past_standard_error + (session.standard_error if session else ""))[
                -STANDARD_ERROR_KEPT:
            ],
        )

    async def ready_session(self, timeout: float) -> Session:
        """The session, waited for within `timeout` seconds and the start-up deadline.

        A start that is under way is waited for; so is the restart of a server that was ready once, if it is due in
        time (CON-6). A server that failed to start, or that keeps dying as soon as it is up, fails the caller at once.

        Raises:
            ServerFailed: effect "none"; kind "unavailable", "authentication" or "deadline".
        """
        if (session := self.session) is not None:
            return session
        deadline = now() + min(timeout, self.config.startup_timeout + SLACK)
        while (session := self.session) is None:
            self._refuse_if_hopeless(deadline)
            await self._changed.next_ring(deadline)
            if now() >= deadline and self.session is None:
                raise self._refusal("deadline", self._why_late())
        return session

    def retry(self) -> None:
        """Try a failed server again soon, whatever the backoff says: the user asked, or mended something.

        Not sooner than the first backoff after the failure: many who ask are no reason for a storm.
        """
        if self.config.problem is not None or self.state.status not in WAITING:
            return
        soon = max(now(), self.state.since + self._recovery.backoff.first)
        self._next_try = soon if self._next_try is None else min(soon, self._next_try)
        self._asked_again = True
        self._interrupt()

    def close(self) -> None:
        """Ask the owner to end the session and itself; from any task, at once, any number of times."""
        self._closing = True
        self._asked_to_close.set()
        self._interrupt()
        self._tell()

    async def wait_closed(self) -> None:
        """Return once the owner has ended and nothing of the server is left."""
        await self._over.wait()

    # ---- the owner task

    async def run(self) -> None:
        """Own the server until `close` or cancellation. Never raises ServerFailed."""
        try:
            while await self._until_next_try():
                await self._one_life()
        finally:
            self._finish()

    async def _until_next_try(self) -> bool:
        """Wait for the backoff, or for ever where nothing is tried again; False: it is time to end."""
        while not self._closing:
            due = self._next_try
            if due is not None and due <= now():
                return True
            with self._interruptible():
                await (anyio.sleep_forever() if due is None else anyio.sleep_until(due))
        return False

    async def _one_life(self) -> None:
        began = now()
        self._next_try = None
        self._starts += 1
        self._failing = None
        self._move(ServerStatus.STARTING)
        try:
            with self._interruptible():
                await self._live(began)
        except ServerFailed as error:
            self._broke(error)
        except Exception as error:  # a fault of ours with one server must not take the others away (CON-1)
            logger.exception("the session of server %r ended by a fault of the host", self.name)
            self._broke(self._refusal("unavailable", f"the host failed to handle it ({type(error).__name__})"))

    async def _live(self, began: float) -> None:
        """A session from its first contact, which over HTTP is tried a few times, to its end."""
        deadline = began + self.config.startup_timeout
        handlers = replace(self.handlers, on_failing=self._will_fail)
        pauses = iter(HTTP_PAUSES if isinstance(self.config.transport, HttpTransport) else ())
        while True:
            try:
                async with self._opener(
                    self.config, timeout=deadline - now(), era=self.era, handlers=handlers
                ) as session:
                    self._scope = None  # from here on it is closed in peace, not cancelled
                    self._became_ready(session, began)
                    await self._accompanied(session)
                    self._left(session)
                return
            except ServerFailed as error:
                pause = next(pauses, None) if self.state.status is ServerStatus.STARTING else None
                if pause is None or not retryable(error) or now() + pause >= deadline:
                    raise
            await anyio.sleep(pause)

    async def _accompanied(self, session: Session) -> None:
        """Wait for the session's end, or for `close`, with the companion beside it."""
        companion = self.companion(session)
        if companion is None:
            await first_of(session.ended, self._asked_to_close)
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(companion)
            await first_of(session.ended, self._asked_to_close)
            tasks.cancel_scope.cancel()

    def _will_fail(self, error: ServerFailed) -> None:
        """Let those who wait for this start go, though its process is still being ended."""
        self._failing = error.message
        self._tell()

    def _became_ready(self, session: Session, began: float) -> None:
        self._session = session
        self.used = self._asked_again = False
        self._introduction = ServerReport(
            name=self.config.name,
            status=ServerStatus.READY,
            info=session.info,
            protocol_version=session.protocol_version,
            era=session.era,
            capabilities=session.capabilities,
            instructions=session.instructions,
            seconds_to_ready=now() - began,
        )
        self.era = session.era
        self._move(ServerStatus.READY)

    def _left(self, session: Session) -> None:
        """The session is over, or about to be because we are closing."""
        self._session = None
        self._remember(session.diagnostics(), session.standard_error)
        if self._closing:
            return
        error = session.failure or self._refusal("lost", "its session ended without a word")
        lived = now() - self.state.since
        self._vain_lives = self._vain_lives + 1 if lived < QUICK and not self.used else 0
        # A lost HTTP session is opened again at once (CON-7), but not in a circle.
        at_once = error.facts.get("session_lost") is True and not (self._reopened and lived < QUICK)
        self._failed(error, lived=lived, at_once=at_once)

    def _remember(self, diagnostics: tuple[Diagnostic, ...], standard_error: str) -> None:
        self._past_diagnostics = merged(self._past_diagnostics, diagnostics)
        self._past_standard_error = (self._past_standard_error + standard_error)[-STANDARD_ERROR_KEPT:]

    def _broke(self, error: ServerFailed) -> None:
        """The start failed; or, after a life, closing did, which changes nothing any more."""
        if self.state.status is ServerStatus.STARTING:
            self._remember(error.facts.get("diagnostics", ()), error.facts.get("standard_error", ""))
            self._failed(error, lived=0.0, at_once=False)
        elif self.state.status is ServerStatus.READY and not self._closing:
            self._session = None
            self._failed(error, lived=now() - self.state.since, at_once=False)

    def _failed(self, error: ServerFailed, *, lived: float, at_once: bool) -> None:
        """Decide when the next try is, before anybody learns of the failure."""
        at = now()
        self._reopened = at_once
        if self.state.status is ServerStatus.STARTING:
            self._asked_again = False
        self._next_try = at if at_once else None
        if error.kind == "authentication" and self.state.status is ServerStatus.STARTING:
            self._move(ServerStatus.AUTHENTICATION_REQUIRED, error.message)
            return
        if not at_once and self.config.restart == "always":
            self._recovery = self._recovery.failed(at, lived=lived)
            self._next_try = at + max(self._recovery.delay(at, self._randomness()), _asked_to_wait(error))
        self._move(ServerStatus.FAILED, error.message)

    def _finish(self) -> None:
        """Nothing is left of the server: say so, once and for all."""
        self._closing = True
        self._session = None
        if not self.state.over:
            starting = self.state.status is ServerStatus.STARTING
            self._move(ServerStatus.CANCELLED if starting else ServerStatus.CLOSED, self.state.reason)
        self._over.set()

    # ---- small parts

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """What runs inside is given up when somebody calls `close` (or `retry`, during a wait), as long as it is
        `_scope`."""
        with anyio.CancelScope() as scope:
            self._scope = scope
            if self._closing:
                scope.cancel()
            try:
                yield
            finally:
                self._scope = None

    def _interrupt(self) -> None:
        if self._scope is not None:
            self._scope.cancel()

    def _move(self, status: ServerStatus, reason: str | None = None) -> None:
        self.state = self.state.moved(status, at=now(), reason=reason)
        self._tell()

    def _tell(self) -> None:
        self._changed.ring()
        for listener in tuple(self._listeners):
            listener()

    def _refuse_if_hopeless(self, deadline: float) -> None:
        """Raise when no wait until `deadline` can help."""
        status, due = self.state.status, self._next_try
        if self._closing:
            raise self._refusal("unavailable", "its connection is closed")
        if status is ServerStatus.AUTHENTICATION_REQUIRED and not self._asked_again:
            raise self._refusal("authentication", self.state.reason or "it wants credentials")
        in_vain = self._vain_lives >= VAIN_LIVES and not self._asked_again
        if status is ServerStatus.STARTING and in_vain:
            raise self._refusal("unavailable", "it keeps ending as soon as it is up")
        hopeful = self._asked_again or (self._introduction is not None and not in_vain)
        if status is ServerStatus.STARTING and self._failing is not None and not hopeful:
            raise self._refusal("unavailable", self._failing)
        if status is not ServerStatus.FAILED:
            return
        patience = deadline if hopeful else now()
        if due is None or due > patience:
            raise self._refusal("unavailable", self._why_failed(due))

    @property
    def _overdue(self) -> bool:
        """Whether a start has failed by its deadline, though its process is still being ended."""
        waited = now() - self.state.since
        return self.state.status is ServerStatus.STARTING and waited > self.config.startup_timeout

    def _why_late(self) -> str:
        if self._failing is not None:
            return self._failing
        if self._overdue:
            limit = self.config.startup_timeout
            return f"it did not answer within {limit:g} s; raise startup_timeout_sec if it is only slow"
        return f"it was not ready in time, but {self.state.status.value}"

    def _why_failed(self, due: float | None) -> str:
        reason = self.state.reason or "it failed"
        if due is None:
            return reason
        wait = max(0.0, due - now())
        given_up = " after failing again and again" if self._recovery.given_up else ""
        return f"{reason} (next try{given_up} in {wait:.0f} s)"

    def _refusal(self, kind: ServerFailure, reason: str) -> ServerFailed:
        return ServerFailed(f"server {self.name!r} is not available: {reason}", server=self.name, kind=kind)


def retryable(error: ServerFailed) -> bool:
    """Whether the same request over HTTP may fare better in a moment: no connection, 429, or a 5xx."""
    status = error.facts.get("status")
    if isinstance(status, int):
        return status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return error.kind in {"unavailable", "lost"}


def merged(past: tuple[Diagnostic, ...], present: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """Counts of several sessions added up by kind; the newest example stays."""
    sums = {entry.kind: entry for entry in past}
    for entry in present:
        count = sums[entry.kind].count if entry.kind in sums else 0
        sums[entry.kind] = replace(entry, count=entry.count + count)
    return tuple(sums.values())


def _asked_to_wait(error: ServerFailed) -> float:
    """Retry-After in seconds, as far as we oblige."""
    wait = error.facts.get("retry_after")
    return min(float(wait), LONGEST_OBLIGED) if isinstance(wait, int | float) else 0.0
