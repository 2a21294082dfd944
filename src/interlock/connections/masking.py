"""Which words of a server must not be shown.

Owns: the secret values of one server's configuration, in the forms in which they come back (CFG-4).
Never: touches what a server gives as a result: that is data, kept as it came (RES-7, CAT-9).

A server knows its secrets, and repeats them: on stderr, in the message of an error, in the body of a refusal. Whatever
words of a server go into an error, a report or a diagnostic pass through its mask.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final, TypeAlias
from urllib.parse import quote

from yarl import URL

from interlock.vocabulary.json import JsonValue
from interlock.vocabulary.secret import MASK, Secret, reveal
from interlock.vocabulary.server import HttpTransport, StdioTransport, Text, Transport

Mask: TypeAlias = Callable[[str], str]
"""Gives a text back with every secret in it replaced."""

SHORTEST: Final = 4
"""Characters. Shorter values (flags, numbers, "en") are no secrets that could be recognised in a text."""
SHORTEST_SEGMENT: Final = 8
"""Characters of a part of a secret URL's path; shorter ones ("mcp", "sse", "api") are words that everybody uses."""
DEEPEST: Final = 50
"""Levels of a JSON value that are looked through; what lies deeper is masked unseen."""


def mask_of(transport: Transport) -> Mask:
    """The mask for the words of the server behind `transport`."""
    values = _of_process(transport) if isinstance(transport, StdioTransport) else _of_url(transport)
    forms = sorted({form for value in values for form in _forms(value) if len(form) >= SHORTEST}, key=len, reverse=True)

    def mask(text: str) -> str:
        for form in forms:
            text = text.replace(form, MASK)
        return text

    return mask


def masked_json(value: JsonValue, mask: Mask, *, levels: int = DEEPEST) -> JsonValue:
    """A copy of a decoded JSON value whose texts have passed through `mask`, the names of members included."""
    if isinstance(value, str):
        return mask(value)
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        return MASK
    if isinstance(value, list):
        return [masked_json(each, mask, levels=levels - 1) for each in value]
    return {mask(name): masked_json(each, mask, levels=levels - 1) for name, each in value.items()}


def _of_process(transport: StdioTransport) -> Iterator[str]:
    yield from (value.reveal() for value in transport.env.values())
    yield from _secrets((transport.command, *transport.args, transport.cwd))


def _of_url(transport: HttpTransport) -> Iterator[str]:
    for value in (secret.reveal() for secret in transport.headers.values()):
        yield value
        yield value.partition(" ")[2]  # the credential after a scheme word
    yield from _secrets((transport.url, transport.oauth_client_id, transport.oauth_resource))
    with suppress(ValueError):  # what is no URL is refused elsewhere
        yield from _of_parts(URL(reveal(transport.url)), whole=isinstance(transport.url, Secret))


def _of_parts(url: URL, *, whole: bool) -> Iterator[str]:
    if url.user is not None:
        yield url.password or ""
        yield base64.b64encode(f"{url.user}:{url.password or ''}".encode()).decode()
    for value in url.query.values():
        yield value
        yield value.partition(" ")[2]
    if whole:
        yield url.user or ""
        yield from (part for part in url.parts if len(part) >= SHORTEST_SEGMENT)


def _secrets(settings: Iterable[Text | None]) -> Iterator[str]:
    return (setting.reveal() for setting in settings if isinstance(setting, Secret))


def _forms(value: str) -> Iterator[str]:
    """As it is, and as it stands in JSON, in a quoted Python text and in a URL."""
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
    with suppress(UnicodeEncodeError):
        yield quote(value, safe="")
