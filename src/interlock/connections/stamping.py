"""What every request of a negotiated session carries besides its own parameters.

Owns: the `_meta` members of 2026-07-28 and the Mcp-* headers of HTTP.
Never: sends anything, or puts a header together by its own rules where the SDK has a public function for it.
"""

from collections.abc import Mapping
from typing import Any

from interlock.connections.negotiation import META, Negotiated, client_version
from interlock.vocabulary.json import JsonObject

MAPS_LIMIT = 1024
"""Input schemas whose header map is remembered; beyond it all are forgotten, and found again."""


class Stamp:
    """Stamps the requests of one session."""

    def __init__(self, negotiated: Negotiated, capabilities: JsonObject, *, http: bool) -> None:
        self._version = negotiated.protocol_version
        self._stateless = negotiated.era == "stateless"
        self._http = http
        self._meta: JsonObject = {}
        if self._stateless:
            self._meta = {
                META + "protocolVersion": self._version,
                META + "clientInfo": {"name": "interlock", "version": client_version()},
                META + "clientCapabilities": capabilities,
            }
        self._maps: dict[int, tuple[JsonObject, Mapping[tuple[str, ...], str]]] = {}

    def params(self, params: JsonObject | None, meta: JsonObject | None) -> JsonObject | None:
        """The parameters with the caller's `meta` and ours in `_meta`; ours win."""
        if meta is None and not self._stateless:
            return params
        if params is None:
            params = {}
        return {**params, "_meta": {**params.get("_meta", {}), **(meta or {}), **self._meta}}

    def headers(self, method: str, params: JsonObject | None, input_schema: JsonObject | None) -> dict[str, str] | None:
        """The headers of a request over HTTP (specification: Streamable HTTP, standard headers); None for stdio."""
        if not self._http:
            return None
        from mcp.shared import inbound  # loaded long ago, by negotiation

        headers = {inbound.MCP_PROTOCOL_VERSION_HEADER: self._version}
        if self._stateless:
            headers[inbound.MCP_METHOD_HEADER] = method
            key = inbound.NAME_BEARING_METHODS.get(method)
            if key is not None and params is not None and isinstance(name := params.get(key), str):
                headers[inbound.MCP_NAME_HEADER] = inbound.encode_header_value(name)
            if input_schema is not None and params is not None:
                arguments: Any = params.get("arguments") or {}
                headers |= inbound.mcp_param_headers(self._header_map(input_schema), arguments)
        return headers

    def _header_map(self, schema: JsonObject) -> Mapping[tuple[str, ...], str]:
        from mcp.shared import inbound

        known = self._maps.get(id(schema))
        if known is None:
            if len(self._maps) >= MAPS_LIMIT:
                self._maps.clear()
            valid = inbound.find_invalid_x_mcp_header(schema) is None
            # The schema is kept with its map, so that its id means no other object.
            known = self._maps[id(schema)] = (schema, inbound.x_mcp_header_map(schema) if valid else {})
        return known[1]
