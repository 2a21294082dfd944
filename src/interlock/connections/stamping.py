"""What every request of a negotiated session carries besides its own parameters.

Owns: the `_meta` members of 2026-07-28 and the Mcp-* headers of HTTP.
Never: sends anything, or knows how a header is written (`headers` does).
"""

from collections.abc import Mapping
from typing import Any

from interlock.connections import headers as standard
from interlock.connections.negotiation import Negotiated
from interlock.connections.protocol import envelope
from interlock.vocabulary.json import JsonObject

MAPS_LIMIT = 1024
"""Input schemas whose header map is remembered; beyond it all are forgotten, and found again."""


class Stamp:
    """Stamps the requests of one session."""

    def __init__(self, negotiated: Negotiated, capabilities: JsonObject, *, http: bool) -> None:
        self._version = negotiated.protocol_version
        self._stateless = negotiated.era == "stateless"
        self._http = http
        self._meta: JsonObject = envelope(self._version, capabilities) if self._stateless else {}
        self._maps: dict[int, tuple[JsonObject, Mapping[standard.Path, str]]] = {}

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
        headers = {standard.PROTOCOL_VERSION: self._version}
        if self._stateless:
            headers[standard.METHOD] = method
            key = standard.NAMED_BY.get(method)
            if key is not None and params is not None and isinstance(name := params.get(key), str):
                headers[standard.NAME] = standard.encoded(name)
            if input_schema is not None and params is not None:
                arguments: Any = params.get("arguments") or {}
                headers |= standard.parameter_headers(self._header_map(input_schema), arguments)
        return headers

    def _header_map(self, schema: JsonObject) -> Mapping[standard.Path, str]:
        known = self._maps.get(id(schema))
        if known is None:
            if len(self._maps) >= MAPS_LIMIT:
                self._maps.clear()
            valid = standard.invalid_annotation(schema) is None
            # The schema is kept with its map, so that its id means no other object.
            known = self._maps[id(schema)] = (schema, standard.header_map(schema) if valid else {})
        return known[1]
