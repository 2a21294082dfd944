"""How a server is asked: within one deadline, over a session that may have to be waited for.

Owns: what is repeated and when, which results may be kept, how pages become a listing.
Never: knows what a method means beyond its Request, or starts a session.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

import anyio

from interlock.connections import convert
from interlock.connections.cache import CACHEABLE, Cache
from interlock.connections.clock import now
from interlock.connections.elicitations import (
    MAXIMUM_ROUNDS,
    InFlight,
    InputRequired,
    answers,
    read_input_required,
    read_url_required,
    taken_up,
)
from interlock.connections.masking import mask_of
from interlock.connections.paging import PageWalk
from interlock.connections.session import Session
from interlock.connections.slices import in_slices
from interlock.connections.standstill import Deadline
from interlock.connections.supervisor import HTTP_PAUSES, Supervisor, retryable
from interlock.vocabulary.construction import quickly_made
from interlock.vocabulary.errors import Effect, InvalidRequest, ServerFailed
from interlock.vocabulary.json import JsonObject, JsonValue
from interlock.vocabulary.ports import OnProgress, Respondent
from interlock.vocabulary.question import InputResponses
from interlock.vocabulary.resource import Listing, Page
from interlock.vocabulary.server import COMPLETIONS_ADVERTISED_SINCE, HttpTransport
from interlock.vocabulary.slices import Sliced
from interlock.vocabulary.tool import BadEntry

METHOD_NOT_FOUND: Final = -32601
SHORTEST_WAIT: Final = 0.01
"""Seconds; what remains of a deadline below that is nothing."""

Decoded = TypeVar("Decoded", covariant=True)


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request before it is sent.

    `repeatable`: doing it twice is as good as once (CON-7). `capability`: what the server must have advertised; with
    it, "method not found" means that the server lacks it too. `fresh`: no kept result will do (CON-17).
    `respondent` answers what the server asks before it answers. `input_responses`: the answers to what it asked an
    earlier host, with which the request goes on (QST-9).
    """

    method: str
    params: JsonObject
    repeatable: bool = True
    capability: str | None = None
    on_progress: OnProgress | None = None
    meta: JsonObject | None = None
    input_schema: JsonObject | None = None
    fresh: bool = False
    respondent: Respondent | None = None
    input_responses: InputResponses | None = None

    @property
    def effect(self) -> Effect:
        """What it may have changed once the server has answered something that cannot be used."""
        return "none" if self.repeatable else "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed(Generic[Decoded]):
    """One kind of listing: `member` of the result holds the entries, `label` is what a bad one is called by."""

    method: str
    member: str
    capability: str
    decode: Callable[[JsonObject], Decoded]
    label: str = "name"
    persistent: bool = False
    """Over HTTP, tried three times where that may help: tools/list belongs to the first contact (BEHAVIOUR 3)."""


class Asker:
    """Asks one server. `cache` is for whoever hears that something changed, `in_flight` for whoever is asked back."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.cache = Cache()
        self.in_flight = InFlight()
        self._supervisor = supervisor
        self._server = supervisor.name
        self._cached_for: Session | None = None

    async def page(
        self, listed: Listed[Decoded], cursor: str | None, *, deadline: float, fresh: bool = False
    ) -> Page[Decoded]:
        """One page; the cursors are the server's business and pass through untouched (RES-4)."""
        result = await self.ask(_page_request(listed, cursor, fresh), deadline=deadline)
        raw = convert.entries(result, listed.member, server=self._server, method=listed.method)
        following = convert.next_cursor(result, server=self._server, method=listed.method)
        good, bad = await in_slices(self._decoding(listed, raw))
        return Page(entries=tuple(good), next_cursor=following, bad=tuple(bad))

    async def walk(self, listed: Listed[Decoded], *, deadline: float, fresh: bool = False) -> Listing[Decoded]:
        """Every page, under the bounds of CAT-1; nothing of a listing that fails half-way."""
        walk = PageWalk(server=self._server, method=listed.method)
        entries: list[Decoded] = []
        fallen: list[BadEntry] = []
        while not walk.done:
            request = _page_request(listed, walk.cursor, fresh)
            ask = self._ask_persistently if listed.persistent else self.ask
            try:
                result = await ask(request, deadline=deadline)
            except ServerFailed as error:
                if error.kind != "deadline" or not walk.pages:
                    raise
                raise _out_of_time(walk) from error
            raw = convert.entries(result, listed.member, server=self._server, method=listed.method)
            first, walk = walk.items, walk.fed(len(raw), result.get("nextCursor"))
            good, bad = await in_slices(self._decoding(listed, raw, first))
            entries += good
            fallen += bad
        return Listing(entries=tuple(entries), bad=tuple(fallen))

    def _decoding(
        self, listed: Listed[Decoded], raw: Sequence[JsonValue], first: int = 0
    ) -> Sliced[tuple[list[Decoded], list[BadEntry]]]:
        """What is told of bad entries goes into errors and notes, so it shows no secret (CFG-4)."""
        good, bad = yield from convert.decode(raw, listed.decode, label=listed.label, first=first)
        mask = mask_of(self._supervisor.config.transport) if bad else str
        for position, entry in enumerate(bad):
            bad[position] = BadEntry(name=mask(entry.name), reason=mask(entry.reason))
            yield
        return good, bad

    async def ask(self, request: Request, *, deadline: float) -> JsonObject:
        """The complete result of `request`, all waiting included but that for people (CON-11), or ServerFailed.

        A result that asks for input first (2026-07-28) is answered and the request sent again under a new id, in a
        bounded number of rounds (QST-8); a refusal that wants addresses opened first (2025-11-25), once.
        """
        current = _first_round(request)
        limit = Deadline(deadline, None if request.respondent is None else request.respondent.standstill)
        for _ in range(MAXIMUM_ROUNDS + 1):
            try:
                result = await self._answered(current, limit)
            except ServerFailed as error:
                if current is not request and request.effect == "unknown":
                    error.effect = error.facts["effect"] = "unknown"  # an earlier round has reached the server
                raise
            if not isinstance(result, InputRequired):
                return result
            if result.refusal is not None and current is not request:
                raise result.refusal  # people have agreed once; asking for the same again and again would be a trap
            with limit.pausing():
                given = await self._given(request, result)
            if result.refusal is not None and not result.agreed(given):
                raise result.refusal
            current = replace(request, params=result.params(request.params, given), fresh=True)
        reason = f"it asked for input more than {MAXIMUM_ROUNDS} times"
        raise convert.broken(self._server, request.method, reason, effect=request.effect)

    async def _given(self, request: Request, required: InputRequired) -> tuple[JsonObject, ...]:
        try:
            whereabouts = self._supervisor.config.whereabouts()
            elicitations = required.elicitations(request.method, request.params, whereabouts)
            return await answers(request.respondent, elicitations)
        except InvalidRequest as error:
            raise convert.broken(self._server, request.method, error.message, effect=request.effect) from error

    async def _answered(self, request: Request, deadline: Deadline) -> JsonObject | InputRequired:
        """One round.

        A request that met a lost session is sent once more on the next one when that is safe: when it is repeatable,
        or cannot have had any effect (CON-7). The end of a process is no such case: its calls in flight fail (CON-6).
        """
        session = await self._session(deadline)
        try:
            return await self._once(session, request, deadline)
        except ServerFailed as error:
            if not session.ended.is_set() or not _may_repeat(error, request):
                raise
        return await self._once(await self._session(deadline), request, deadline)

    async def _ask_persistently(self, request: Request, *, deadline: float) -> JsonObject:
        over_http = isinstance(self._supervisor.config.transport, HttpTransport)
        for pause in HTTP_PAUSES if over_http else ():
            try:
                return await self.ask(request, deadline=deadline)
            except ServerFailed as error:
                there = self._supervisor.session is not None  # else it was not the request that failed
                if not there or not retryable(error) or now() + pause >= deadline:
                    raise
            await anyio.sleep(pause)
        return await self.ask(request, deadline=deadline)

    async def _session(self, deadline: Deadline) -> Session:
        return self._supervisor.session or await self._ready_session(deadline)

    async def _ready_session(self, deadline: Deadline) -> Session:
        while True:
            patience = deadline.remaining()
            until = now() + patience
            try:
                return await self._supervisor.ready_session(patience)
            except ServerFailed:
                # Not the start has failed, but our own time is over; unless some of it did not count.
                if now() < until - SHORTEST_WAIT or deadline.remaining() <= SHORTEST_WAIT:
                    raise

    async def _once(self, session: Session, request: Request, deadline: Deadline) -> JsonObject | InputRequired:
        self._require(session, request)
        keep = session.era == "stateless" and request.method in CACHEABLE and request.meta is None
        if keep and (kept := self._kept(session, request)) is not None:
            return kept
        result = await self._send(session, request, deadline)
        if keep and not isinstance(result, InputRequired) and "requestState" not in request.params:
            self.cache.put(request.method, request.params, result, now())
        return result

    def _kept(self, session: Session, request: Request) -> JsonObject | None:
        if session is not self._cached_for:  # another session may be another server
            self.cache.clear()
            self._cached_for = session
        return None if request.fresh else self.cache.get(request.method, request.params, now())

    async def _send(self, session: Session, request: Request, deadline: Deadline) -> JsonObject | InputRequired:
        remaining = deadline.remaining()
        if remaining <= 0:
            text = f"no time was left to send {request.method} to server {self._server!r}"
            raise ServerFailed(text, server=self._server, kind="deadline")
        # Listing tools is what a host does by itself with every session; anything else is somebody's request.
        self._supervisor.used = self._supervisor.used or request.method != "tools/list"
        number = self.in_flight.begin(request.respondent)
        try:
            result = await session.request(
                request.method,
                request.params,
                timeout=remaining,
                on_progress=request.on_progress,
                meta=request.meta,
                input_schema=request.input_schema,
                respondent=request.respondent,
            )
        except ServerFailed as error:
            if error.kind == "rejected" and "cursor" in request.params:
                self.cache.drop(request.method)  # pages that belong together go together (specification: caching)
            if session.era == "handshake" and (required := self._url_required(error, request)) is not None:
                return required
            if request.capability is not None and error.rpc_code == METHOD_NOT_FOUND:
                raise self._unsupported(request.method, "it answers: method not found") from error
            raise
        finally:
            self.in_flight.end(number)
        return self._complete(result, request, session)

    def _url_required(self, error: ServerFailed, request: Request) -> InputRequired | None:
        return read_url_required(error, server=self._server, method=request.method, respondent=request.respondent)

    def _complete(self, result: JsonObject, request: Request, session: Session) -> JsonObject | InputRequired:
        """The one place where a result that is no answer yet is told from one that is."""
        match convert.result_kind(result, session.era):
            case "complete":
                return result
            case "input_required":
                return read_input_required(
                    result,
                    server=self._server,
                    method=request.method,
                    effect=request.effect,
                    respondent=request.respondent,
                )
            case "unknown":
                reason = "its resultType is not known"
                raise convert.broken(self._server, request.method, reason, effect=request.effect)

    def _require(self, session: Session, request: Request) -> None:
        if request.input_responses is not None and session.era != "stateless":
            text = f"server {self._server!r} cannot be told what it asked before: it speaks an older protocol now"
            raise ServerFailed(text, server=self._server, kind="unsupported")
        capability = request.capability
        if capability is None or capability in session.capabilities:
            return
        if capability == "completions" and session.protocol_version < COMPLETIONS_ADVERTISED_SINCE:
            return
        raise self._unsupported(request.method, f"it does not advertise {capability}")

    def _unsupported(self, method: str, why: str) -> ServerFailed:
        text = f"server {self._server!r} does not offer {method}: {why}"
        return ServerFailed(text, server=self._server, kind="unsupported")


def _first_round(request: Request) -> Request:
    if request.input_responses is None:
        return request
    return replace(request, params=taken_up(request.params, request.input_responses), fresh=True)


def _page_request(listed: Listed[object], cursor: str | None, fresh: bool) -> Request:
    params = {} if cursor is None else {"cursor": cursor}
    return Request(method=listed.method, params=params, capability=listed.capability, fresh=fresh)


def _out_of_time(walk: PageWalk) -> ServerFailed:
    """The one deadline of a listing was spent by its earlier pages (CAT-1)."""
    pages = "1 page" if walk.pages == 1 else f"{walk.pages} pages"
    text = (
        f"cannot read {walk.method} of server {walk.server!r}: its time was over after {pages}, none of which is used; "
        "raise its time limit, or have the server give larger pages"
    )
    return ServerFailed(text, server=walk.server, kind="deadline")


def _may_repeat(error: ServerFailed, request: Request) -> bool:
    return error.effect == "none" or (error.facts.get("session_lost") is True and request.repeatable)
