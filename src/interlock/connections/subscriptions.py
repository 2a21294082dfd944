"""Hearing of changes: subscriptions of one connection, kept over its sessions.

Owns: which resources are subscribed to and how often, and the subscriptions/listen streams of a 2026-07-28 session,
opened again after a cut (CON-14).
Never: reads anything again; after a gap in a stream it says that everything may have changed, for nothing is replayed.
"""

import random
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from itertools import count
from typing import Any, Final

import anyio

from interlock.connections.bell import Once
from interlock.connections.notices import ChangeKind
from interlock.connections.session import Session
from interlock.connections.startup import Recovery
from interlock.vocabulary.errors import InvalidRequest, ServerFailed
from interlock.vocabulary.json import JsonObject

MAXIMUM_RESOURCES: Final = 1_000
"""Resources that one connection subscribes to."""
FINAL_REFUSALS: Final = frozenset({-32601, -32602})
"""Codes (method not found, invalid params) after which listening is not tried again in this session."""
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
RESUBSCRIBE_TIMEOUT: Final = 30.0

LISTS: Final[Mapping[str, tuple[str, ChangeKind]]] = {
    "tools": ("toolsListChanged", "tools"),
    "prompts": ("promptsListChanged", "prompts"),
    "resources": ("resourcesListChanged", "resources"),
}

Tell = Callable[[ChangeKind, str | None], None]


class Subscriptions:
    """The subscriptions of one connection. `run` accompanies each session; `tell` says what changed.

    `begun` is called when the stream for lists stands for the first time in a session: whoever listed before that may
    have missed a change.
    """

    def __init__(
        self, tell: Tell, *, begun: Callable[[], None] = lambda: None, recovery: Recovery | None = None
    ) -> None:
        self.hears_lists = False
        """Whether changes of lists are being told: a handshake server always does, another one through its stream."""
        self._tell = tell
        self._begun = begun
        self._recovery = recovery or Recovery()
        self._uris: Counter[str] = Counter()
        self._uris_changed = Once()
        self._numbers = count(1)
        self._opening: dict[str, Callable[[], None]] = {}

    def __repr__(self) -> str:
        return f"<Subscriptions resources={len(self._uris)}>"

    def add(self, uri: str) -> bool:
        """Count one more subscriber of `uri`; True if it is the first.

        Raises:
            InvalidRequest: there are too many.
        """
        if uri not in self._uris and len(self._uris) >= MAXIMUM_RESOURCES:
            raise InvalidRequest(f"cannot subscribe to more than {MAXIMUM_RESOURCES} resources of one server")
        self._uris[uri] += 1
        return self._changed(self._uris[uri] == 1)

    def remove(self, uri: str) -> bool:
        """One subscriber less; True if that was the last."""
        if uri not in self._uris:
            return False
        self._uris[uri] -= 1
        if self._uris[uri] > 0:
            return False
        del self._uris[uri]
        return self._changed(True)

    def notified(self, method: str, params: JsonObject) -> None:
        """Hear that a stream stands: if it had been cut, what happened in between was missed."""
        if method == ACKNOWLEDGED:
            meta: Any = params.get("_meta")
            key = meta.get(SUBSCRIPTION_KEY) if isinstance(meta, dict) else None
            stands = self._opening.pop(key, None) if isinstance(key, str) else None
            if stands is not None:
                stands()

    def accompanying(self, session: Session, *, first: bool) -> Callable[[], Coroutine[Any, Any, None]] | None:
        """What is to run beside `session`: `run`, or nothing where nothing is to be done (most servers)."""
        self.hears_lists = session.era == "handshake"
        if self.hears_lists and (first or not self._uris):
            return None
        return partial(self.run, session, first=first)

    async def run(self, session: Session, *, first: bool) -> None:
        """Keep the subscriptions of `session` for as long as it lives; cancelled with it.

        `first` False: there were sessions before, so notices may have been missed.
        """
        self.hears_lists = session.era == "handshake"
        if session.era == "stateless":
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._listen_to_lists, session)
                tasks.start_soon(self._listen_to_resources, session, first)
        elif not first:
            await self._subscribe_again(session)

    def _changed(self, changed: bool) -> bool:
        if changed:
            self._uris_changed.set()
            self._uris_changed = Once()
        return changed

    async def _subscribe_again(self, session: Session) -> None:
        for uri in tuple(self._uris):
            try:
                await session.request("resources/subscribe", {"uri": uri}, timeout=RESUBSCRIBE_TIMEOUT)
                self._tell("updated", uri)
            except ServerFailed as error:
                session.diagnostic("subscription_lost", f"{uri}: {error.message}")

    async def _listen_to_lists(self, session: Session) -> None:
        offered = {
            name: kind for capability, (name, kind) in LISTS.items() if advertises(session, capability, "listChanged")
        }

        def stands(gap: bool) -> None:
            self.hears_lists = True
            for kind in offered.values() if gap else ():
                self._tell(kind, None)
            if not gap:
                self._begun()

        def cut() -> None:
            self.hears_lists = False

        if offered:
            await self._keep(session, dict.fromkeys(offered, True), stands, cut)

    async def _listen_to_resources(self, session: Session, first: bool) -> None:
        """One stream for all subscribed resources; another one when they change."""
        heard: set[str] = set() if first else set(self._uris)
        while True:
            changed, uris = self._uris_changed, tuple(self._uris)
            async with anyio.create_task_group() as stream:
                if uris:
                    stream.start_soon(self._keep_resources, session, uris, heard & set(uris))
                await changed.wait()
                stream.cancel_scope.cancel()
            heard = set(uris)

    async def _keep_resources(self, session: Session, uris: tuple[str, ...], heard: set[str]) -> None:
        """`heard`: those that were subscribed to before, so that this stream begins after a gap."""

        def stands(gap: bool) -> None:
            for uri in uris if gap else sorted(heard):
                self._tell("updated", uri)

        await self._keep(session, {"resourceSubscriptions": list(uris)}, stands)

    async def _keep(
        self,
        session: Session,
        wanted: JsonObject,
        stands: Callable[[bool], None],
        cut: Callable[[], None] = lambda: None,
    ) -> None:
        """Hold one stream open. `stands` is called whenever it stands, with whether that is after a cut."""
        recovery, gap = self._recovery, False
        while not session.ended.is_set():
            key = f"listen-{next(self._numbers)}"
            self._opening[key] = partial(stands, gap)
            began = anyio.current_time()
            try:
                await session.request("subscriptions/listen", {"notifications": wanted}, timeout=None, request_id=key)
            except ServerFailed as error:
                if error.rpc_code in FINAL_REFUSALS:
                    session.diagnostic("listen_refused", error.message)
                    return
            finally:
                self._opening.pop(key, None)
                cut()
            now = anyio.current_time()
            recovery, gap = recovery.failed(now, lived=now - began), True
            await anyio.sleep(recovery.delay(now, random.random()))


def advertises(session: Session, capability: str, flag: str) -> bool:
    """Whether the server advertised `flag` of `capability`, such as listChanged of tools."""
    found = session.capabilities.get(capability)
    return isinstance(found, Mapping) and found.get(flag) is True
