"""Which protocol era a server speaks, and what it says of itself.

Owns: the order of server/discover and initialize, what counts as evidence of an era, the reading of both answers.
Never: starts a process anew (the session does, for a server that dies on the probe), or refuses a server for a
    member that nobody needs.

No model judges the answers: it would refuse a server that forgets its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from interlock.connections import headers
from interlock.connections.clock import now
from interlock.connections.dispatcher import Dispatcher
from interlock.connections.protocol import HANDSHAKE_VERSIONS, META, STATELESS_VERSIONS, client_info, envelope
from interlock.connections.waiter import OnLateAnswer
from interlock.vocabulary.errors import ServerFailed, ServerFailure
from interlock.vocabulary.json import JsonObject, excerpt
from interlock.vocabulary.server import Era, ServerInfo

PROBE_TIMEOUT = 3.0
"""Seconds for the answer to server/discover before initialize goes out beside it. One that is silent about unknown
methods costs this much at its first start. One that is only slow to start (a launcher that downloads it first) loses
nothing: it reads the probe first, and its late answer still decides, until initialize is answered."""
PROBE_SHARE = 1 / 3
"""At most so much of the time left goes into the probe, so that initialize has the rest."""
DISCOVER = "server/discover"
MODERN_ERRORS = {-32020, -32021, -32022}
"""HeaderMismatch, MissingRequiredClientCapability, UnsupportedProtocolVersion: only a 2026-07-28 server sends them."""
UNSUPPORTED_PROTOCOL_VERSION = -32022


@dataclass(frozen=True, slots=True, kw_only=True)
class Negotiated:
    """The outcome: the era with its version, and what the server says of itself."""

    era: Era
    protocol_version: str
    info: ServerInfo | None = None
    capabilities: JsonObject = field(default_factory=dict[str, Any])
    instructions: str | None = None


class DiedOnProbe(Exception):
    """The connection ended before server/discover was answered: some older servers exit on an unknown method.
    `error` says how; `slow`: the probe's time was over, and initialize sent beside it."""

    def __init__(self, error: ServerFailed, *, slow: bool = False) -> None:
        super().__init__(error.message)
        self.error = error
        self.slow = slow


class _Probe:
    """What server/discover brought after its time was over. `handshake` is cancelled once that decides the era."""

    def __init__(self) -> None:
        self.answered = False
        self.evidence: JsonObject | ServerFailed | None = None
        self.handshake: anyio.CancelScope | None = None

    def take(self, outcome: JsonObject | ServerFailed) -> None:
        self.answered = True
        if _shows_stateless(outcome):
            self.evidence = outcome
            if self.handshake is not None:
                self.handshake.cancel()


class _NotStateless(Exception):
    """No evidence of the stateless era. `silent`: no answer at all, so the server may only be slow."""

    def __init__(self, error: ServerFailed, *, silent: bool = False) -> None:
        super().__init__(error.message)
        self.error = error
        self.silent = silent


async def negotiate(
    dispatcher: Dispatcher,
    *,
    server: str,
    capabilities: JsonObject,
    deadline: float,
    patience: float = float("inf"),
    protocol: str = "auto",
    era: Era | None = None,
    probe_timeout: float = PROBE_TIMEOUT,
) -> Negotiated:
    """Find the era, or use the one that is pinned, and agree on a version (CON-4).

    `deadline` is on anyio's clock; `patience` is the seconds that the whole start was given, for a message.
    `protocol` is "auto" or one version; `era` is what worked last time.

    Raises:
        ServerFailed: no agreement, or the connection broke.
        DiedOnProbe: the connection ended before server/discover was answered, so initialize was not tried by itself.
    """
    try:
        return await _Negotiation(dispatcher, server, capabilities, deadline).run(protocol, era, probe_timeout)
    except ServerFailed as error:
        if error.kind != "deadline" or now() < deadline:
            raise
    raise ServerFailed(
        f"server {server!r} did not answer within {round(patience, 1):g} s; "
        "raise `startup_timeout_sec` if it is only slow",
        server=server,
        kind="deadline",
    )


class _Negotiation:
    """One attempt over one live dispatcher."""

    def __init__(self, dispatcher: Dispatcher, server: str, capabilities: JsonObject, deadline: float) -> None:
        self._dispatcher = dispatcher
        self._server = server
        self._capabilities = capabilities
        self._deadline = deadline

    async def run(self, protocol: str, era: Era | None, probe_timeout: float) -> Negotiated:
        if protocol == "auto":
            return await (self._initialize_first() if era == "handshake" else self._discover_first(era, probe_timeout))
        if protocol in HANDSHAKE_VERSIONS:
            return await self._initialize(protocol)
        if protocol not in STATELESS_VERSIONS:
            raise self._failed(f"cannot be spoken to: protocol version {protocol!r} is not known here", "unsupported")
        try:
            return await self._discover(protocol)
        except _NotStateless as no:
            raise no.error from no

    async def _discover_first(self, era: Era | None, probe_timeout: float) -> Negotiated:
        left, probe = self._deadline - now(), _Probe()
        # A server that was stateless the last time may take its time; others are not waited for.
        seconds = left / 2 if era else min(probe_timeout, left * PROBE_SHARE)
        try:
            return await self._discover(self._newest(), seconds, late=probe.take)
        except _NotStateless as no:
            silent = no.silent
        except ServerFailed as error:
            if self._dispatcher.failure is not None:
                raise DiedOnProbe(error) from error
            raise
        try:
            return await (self._initialize_beside(probe) if silent else self._initialize_newest())
        except ServerFailed as error:
            if silent and not probe.answered and self._dispatcher.failure is not None:
                raise DiedOnProbe(error, slow=True) from error
            if error.kind != "rejected" or not (silent or error.rpc_code == UNSUPPORTED_PROTOCOL_VERSION):
                raise
            return await self._discover_again(error)  # a slow server took the late probe for its first request
        finally:
            self._dispatcher.stop_late_requests()

    async def _initialize_beside(self, probe: _Probe) -> Negotiated:
        """initialize, unless the probe is answered first after all: evidence of the stateless era outweighs whatever
        the server then says to initialize, for its first request was the probe (basic/transports/stdio)."""
        outcome: Negotiated | ServerFailed | None = None
        with anyio.CancelScope() as probe.handshake:
            try:
                outcome = await self._initialize_newest()
            except ServerFailed as error:
                outcome = error
        if probe.evidence is not None:
            try:
                return await self._discovered(probe.evidence, self._newest())
            except _NotStateless as no:
                raise no.error from no
        if isinstance(outcome, Negotiated):
            return outcome
        raise outcome or AssertionError("nobody else cancels this scope")

    async def _initialize_first(self) -> Negotiated:
        try:
            return await self._initialize_newest()
        except ServerFailed as error:
            if error.kind != "rejected":
                raise
            return await self._discover_again(error)

    async def _discover_again(self, why: ServerFailed) -> Negotiated:
        try:
            return await self._discover(self._newest())
        except _NotStateless as no:
            raise (no.error if why.rpc_code == UNSUPPORTED_PROTOCOL_VERSION else why) from no

    # ------------------------------------------------------------------ stateless

    async def _discover(
        self, version: str, seconds: float = float("inf"), *, again: bool = False, late: OnLateAnswer | None = None
    ) -> Negotiated:
        params = {"_meta": envelope(version, self._capabilities)}
        written = {headers.PROTOCOL_VERSION: version, headers.METHOD: DISCOVER}
        outcome: JsonObject | ServerFailed
        try:
            outcome = await self._ask(DISCOVER, params, written, seconds, late)
        except ServerFailed as error:
            outcome = error
        return await self._discovered(outcome, version, again)

    async def _discovered(self, outcome: JsonObject | ServerFailed, version: str, again: bool = False) -> Negotiated:
        if isinstance(outcome, ServerFailed):
            return await self._after_refused_probe(outcome, version, again)
        versions = outcome.get("supportedVersions")
        mutual = _mutual(versions)
        if mutual is None:
            reason = f"answered server/discover with the protocol versions {excerpt(versions, 200)}"
            raise _NotStateless(self._failed(f"{reason}, none of which is known here as stateless", "protocol"))
        return self._read_discovery(outcome, mutual)

    async def _after_refused_probe(self, error: ServerFailed, version: str, again: bool) -> Negotiated:
        if self._dispatcher.failure is not None or _is_final(error):
            raise error
        if error.kind != "rejected" or error.rpc_code not in MODERN_ERRORS:
            raise _NotStateless(error, silent=error.kind == "deadline") from error
        if error.rpc_code != UNSUPPORTED_PROTOCOL_VERSION:
            raise error  # it is stateless and does not take us: initialize would be no answer to that
        supported = _supported(error)
        mutual = _mutual(supported)
        if mutual is not None and not again:
            return await self._discover(mutual, again=True)
        if isinstance(supported, list) and not any(known in supported for known in HANDSHAKE_VERSIONS):
            if mutual is not None:
                raise error  # it names the very version that it refuses
            known = ", ".join((*HANDSHAKE_VERSIONS, *STATELESS_VERSIONS))
            raise self._failed(
                f"speaks only the protocol versions {excerpt(supported, 200)}; known here are {known}", "unsupported"
            ) from error
        raise _NotStateless(error) from error

    def _newest(self) -> str:
        return str(STATELESS_VERSIONS[-1])

    def _read_discovery(self, result: JsonObject, version: str) -> Negotiated:
        meta = result.get("_meta")
        stamped = meta.get(META + "serverInfo") if isinstance(meta, Mapping) else None
        return Negotiated(
            era="stateless",
            protocol_version=version,
            info=read_info(stamped or result.get("serverInfo")),
            capabilities=_object(result.get("capabilities")),
            instructions=_text(result.get("instructions")),
        )

    # ------------------------------------------------------------------ handshake

    async def _initialize_newest(self) -> Negotiated:
        """The newest version; the newest that the server names, if it refuses that one instead of offering its own
        (specification 2025-11-25 basic/lifecycle: Error Handling)."""
        newest = HANDSHAKE_VERSIONS[-1]
        try:
            return await self._initialize(newest)
        except ServerFailed as error:
            supported = _supported(error)
            versions = supported if isinstance(supported, list) else []
            older = [known for known in HANDSHAKE_VERSIONS[:-1] if known in versions]
            if not older:
                raise
        return await self._initialize(older[-1])

    async def _initialize(self, version: str) -> Negotiated:
        params = {"protocolVersion": version, "capabilities": self._capabilities, "clientInfo": client_info()}
        result = await self._ask("initialize", params, late=lambda outcome: None)
        agreed = result.get("protocolVersion")
        if agreed not in HANDSHAKE_VERSIONS:
            known = ", ".join(HANDSHAKE_VERSIONS)
            raise self._failed(
                f"answered initialize with protocol version {excerpt(agreed, 100)}; known here are {known}",
                "unsupported",
            )
        written = {headers.PROTOCOL_VERSION: agreed}
        await self._dispatcher.notify("notifications/initialized", headers=written, deadline=self._deadline)
        return Negotiated(
            era="handshake",
            protocol_version=agreed,
            info=read_info(result.get("serverInfo")),
            capabilities=_object(result.get("capabilities")),
            instructions=_text(result.get("instructions")),
        )

    # ------------------------------------------------------------------ requests

    async def _ask(
        self,
        method: str,
        params: JsonObject,
        written: Mapping[str, str] | None = None,
        seconds: float = float("inf"),
        late: OnLateAnswer | None = None,
    ) -> JsonObject:
        """The raw result. Nobody is told when it is given up: a request that opens a session is not cancelled."""
        return await self._dispatcher.request(
            method,
            params,
            timeout=min(seconds, self._seconds()),
            headers=written,
            cancellable=False,
            on_late_answer=late,
        )

    def _seconds(self) -> float:
        return max(0.0, self._deadline - now())

    def _failed(self, text: str, kind: ServerFailure) -> ServerFailed:
        return ServerFailed(f"server {self._server!r} {text}", server=self._server, kind=kind)


def _is_final(error: ServerFailed) -> bool:
    """Whether initialize would fare no better: nobody is there, or nobody lets us in."""
    return error.kind == "authentication" or (error.kind == "unavailable" and "status" not in error.facts)


def _supported(error: ServerFailed) -> Any:
    return error.rpc_data.get("supported") if isinstance(error.rpc_data, Mapping) else None


def _mutual(versions: Any) -> str | None:
    if not isinstance(versions, list):
        return None
    return next((known for known in reversed(STATELESS_VERSIONS) if known in versions), None)


def _shows_stateless(outcome: JsonObject | ServerFailed) -> bool:
    """Whether an answer to server/discover leaves no doubt (basic/transports/stdio: Backward Compatibility)."""
    if not isinstance(outcome, ServerFailed):
        return _mutual(outcome.get("supportedVersions")) is not None
    if outcome.rpc_code == UNSUPPORTED_PROTOCOL_VERSION:
        return _mutual(_supported(outcome)) is not None
    return outcome.rpc_code in MODERN_ERRORS


def read_info(value: Any) -> ServerInfo | None:
    """What can be read of an Implementation object; None if it has no name."""
    if not isinstance(value, Mapping) or not isinstance(name := value.get("name"), str):
        return None
    icons = value.get("icons")
    return ServerInfo(
        name=name,
        version=_text(value.get("version")) or "",
        title=_text(value.get("title")),
        description=_text(value.get("description")),
        icons=tuple(icon for icon in icons if isinstance(icon, Mapping)) if isinstance(icons, list) else None,
        website_url=_text(value.get("websiteUrl")),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}
