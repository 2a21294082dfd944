"""The public name of a remote tool.

Owns: the function from (server, remote name) to a name that every model provider accepts (CAT-4).
Never: looks at a listing, an order or a neighbour, and never decodes a name.
"""

import hashlib
import re
from functools import lru_cache
from typing import NamedTuple

MAXIMUM_LENGTH = 64
"""What the strictest model providers accept for a function name, with the characters A-Z a-z 0-9 _ and -."""

_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST_DIGITS = 8


class PublicName(NamedTuple):
    """A public name, with the reason for its digest as the end of a sentence; None when it is the plain spelling."""

    text: str
    why_not_plain: str | None = None


def public_name(server: str, tool: str) -> PublicName:
    """`mcp__SERVER__TOOL`, or a shortened and sanitised form of it that ends in `_` and 8 hex digits.

    Always matches `^[A-Za-z0-9_-]{1,64}$`. The digits are of SHA-256 over server, NUL and remote name.
    """
    plain = f"mcp__{server}__{tool}"
    spelling = _FORBIDDEN.sub("_", plain)
    reason = _why_not_plain(server, tool, plain, spelling)
    if reason is None:
        return PublicName(plain)
    return PublicName(f"{spelling[: MAXIMUM_LENGTH - _DIGEST_DIGITS - 1]}_{_digest(server, tool)}", reason)


def _why_not_plain(server: str, tool: str, plain: str, spelling: str) -> str | None:
    if spelling != plain:
        return "it has characters other than letters, digits, _ and -"
    if len(plain) > MAXIMUM_LENGTH:
        return f"it would be longer than {MAXIMUM_LENGTH} characters"
    if tool[:1] == "_" or _runs_on(server):
        return "its underscores would let it be read as another server's tool"
    return None


@lru_cache(maxsize=1000)
def _runs_on(server: str) -> bool:
    """Whether the end of this server's name could be taken for the beginning of a tool's; servers have many tools."""
    return "__" in server or server.endswith("_")


def _digest(server: str, tool: str) -> str:
    identity = f"{server}\0{tool}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(identity).hexdigest()[:_DIGEST_DIGITS]
