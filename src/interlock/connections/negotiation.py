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
from interlock.vocabulary.errors import ServerFailed, ServerFailure
from interlock.vocabulary.json import JsonObject, excerpt
from interlock.vocabulary.server import Era, ServerInfo

PROBE_TIMEOUT = 3.0
"""Seconds for the answer to server/discover. Servers are up within two; one that is silent about unknown methods costs
this much at its first start, and a slower one loses nothing: it is asked again when it then refuses initialize."""
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
    """The connection ended on server/discover: some older servers exit on an unknown method. `error` says how."""

    def __init__(self, error: ServerFailed) -> None:
        super().__init__(error.message)
        self.error = error


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
        DiedOnProbe: the connection ended on server/discover, and initialize was not tried.
    """
    with anyio.CancelScope(deadline=deadline):
        return await _Negotiation(dispatcher, server, capabilities, deadline).run(protocol, era, probe_timeout)
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
        left = self._deadline - now()
        try:
            # A server that was stateless the last time may take its time; others are not waited for.
            return await self._discover(self._newest(), left / 2 if era else min(probe_timeout, left * PROBE_SHARE))
        except _NotStateless as no:
            silent = no.silent
        except ServerFailed as error:
            if self._dispatcher.failure is not None:
                raise DiedOnProbe(error) from error
            raise
        try:
            return await self._initialize_newest()
        except ServerFailed as error:
            if error.kind != "rejected" or not (silent or error.rpc_code == UNSUPPORTED_PROTOCOL_VERSION):
                raise
            return await self._discover_again(error)  # a slow server took the late probe for its first request

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

    async def _discover(self, version: str, seconds: float = float("inf"), *, again: bool = False) -> Negotiated:
        params = {"_meta": envelope(version, self._capabilities)}
        written = {headers.PROTOCOL_VERSION: version, headers.METHOD: DISCOVER}
        try:
            result = await self._ask(DISCOVER, params, written, seconds)
        except ServerFailed as error:
            return await self._after_refused_probe(error, version, again)
        versions = result.get("supportedVersions")
        mutual = self._mutual(versions)
        if mutual is None:
            reason = f"answered server/discover with the protocol versions {excerpt(versions, 200)}"
            raise _NotStateless(self._failed(f"{reason}, none of which is known here as stateless", "protocol"))
        return self._read_discovery(result, mutual)

    async def _after_refused_probe(self, error: ServerFailed, version: str, again: bool) -> Negotiated:
        if self._dispatcher.failure is not None or _is_final(error):
            raise error
        if error.kind != "rejected" or error.rpc_code not in MODERN_ERRORS:
            raise _NotStateless(error, silent=error.kind == "deadline") from error
        if error.rpc_code != UNSUPPORTED_PROTOCOL_VERSION:
            raise error  # it is stateless and does not take us: initialize would be no answer to that
        supported = error.rpc_data.get("supported") if isinstance(error.rpc_data, Mapping) else None
        mutual = self._mutual(supported)
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

    def _mutual(self, versions: Any) -> str | None:
        if not isinstance(versions, list):
            return None
        return next((known for known in reversed(STATELESS_VERSIONS) if known in versions), None)

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
            supported = error.rpc_data.get("supported") if isinstance(error.rpc_data, Mapping) else None
            versions = supported if isinstance(supported, list) else []
            older = [known for known in HANDSHAKE_VERSIONS[:-1] if known in versions]
            if not older:
                raise
        return await self._initialize(older[-1])

    async def _initialize(self, version: str) -> Negotiated:
        params = {"protocolVersion": version, "capabilities": self._capabilities, "clientInfo": client_info()}
        result = await self._ask("initialize", params)
        agreed = result.get("protocolVersion")
        if agreed not in HANDSHAKE_VERSIONS:
            known = ", ".join(HANDSHAKE_VERSIONS)
            raise self._failed(
                f"answered initialize with protocol version {excerpt(agreed, 100)}; known here are {known}",
                "unsupported",
            )
        with anyio.move_on_after(self._seconds()):
            written = {headers.PROTOCOL_VERSION: agreed}
            await self._dispatcher.notify("notifications/initialized", headers=written)
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
    ) -> JsonObject:
        """The raw result. Nobody is told when it is given up: a request that opens a session is not cancelled."""
        limit = min(seconds, self._seconds())
        return await self._dispatcher.request(method, params, timeout=limit, headers=written, cancellable=False)

    def _seconds(self) -> float:
        return max(0.0, self._deadline - now())

    def _failed(self, text: str, kind: ServerFailure) -> ServerFailed:
        return ServerFailed(f"server {self._server!r} {text}", server=self._server, kind=kind)


def _is_final(error: ServerFailed) -> bool:
    """Whether initialize would fare no better: nobody is there, or nobody lets us in."""
    return error.kind == "authentication" or (error.kind == "unavailable" and "status" not in error.facts)


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
