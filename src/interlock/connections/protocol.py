"""The words of the protocol that are the same over every transport.

Owns: the versions known here by era, the names of `_meta` members, what a server is told of this client.
Never: sends anything, or decides which era a server speaks.
"""

from functools import cache
from importlib import metadata
from typing import Final

from interlock.vocabulary.json import JsonObject

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions that begin with initialize, the oldest first."""
STATELESS_VERSIONS: Final = ("2026-07-28",)
"""The versions whose requests carry everything in `_meta`, the oldest first."""
META: Final = "io.modelcontextprotocol/"
"""What the protocol's own members of `_meta` begin with."""


@cache
def client_version() -> str:
    """The version of this package, as servers are told."""
    return metadata.version("interlock")


def client_info() -> JsonObject:
    """Who we are (specification: Implementation)."""
    return {"name": "interlock", "version": client_version()}


def envelope(version: str, capabilities: JsonObject) -> JsonObject:
    """The `_meta` of every stateless request (specification 2026-07-28: basic, Request Metadata)."""
    return {
        META + "protocolVersion": version,
        META + "clientInfo": client_info(),
        META + "clientCapabilities": capabilities,
    }
