"""Which addresses a person may be asked to open.

Owns: the rules for URL questions (QST-7; specification: client/elicitation, Safe URL Handling).
Never: opens, fetches or resolves an address.
"""

from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.question import Link

LONGEST_URL: Final = 8192
LOOPBACK_NAMES: Final = frozenset({"localhost"})


def read_link(url: str, *, elicitation_id: str | None = None) -> Link:
    """What to show of `url` before anybody agrees to open it.

    Raises:
        InvalidRequest: it is no https address (http is for loopback only), could be mistaken for another one
            (user names, blanks, control characters, backslashes), or has no host.
    """
    if len(url) > LONGEST_URL:
        raise InvalidRequest(f"the url must have at most {LONGEST_URL} characters")
    if any(character.isspace() or not character.isprintable() for character in url) or "\\" in url:
        raise InvalidRequest("the url must not contain blanks, control characters or backslashes")
    parts, host = _split(url)
    loopback = _is_loopback(host)
    if parts.scheme != "https" and not (parts.scheme == "http" and loopback):
        raise InvalidRequest("the url must begin with https:// (http:// is for this computer itself only)")
    if "@" in parts.netloc:
        raise InvalidRequest("the url must not contain a user name; it could be mistaken for another host")
    return Link(url=url, host=host, warnings=_warnings(host, loopback), elicitation_id=elicitation_id)


def _split(url: str) -> tuple[SplitResult, str]:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port  # a port that is no number shows up here
    except ValueError as error:
        raise InvalidRequest(f"the url cannot be understood: {error}") from error
    if not parts.scheme or not host:
        raise InvalidRequest("the url must be absolute, with a scheme and a host")
    return parts, host.rstrip(".")


def _is_loopback(host: str) -> bool:
    if host in LOOPBACK_NAMES or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _warnings(host: str, loopback: bool) -> tuple[str, ...]:
    found = []
    if any(label.startswith("xn--") for label in host.split(".")):
        found.append(f"the host {host} is written in punycode and may look like {_decoded(host)}, another one's name")
    elif not host.isascii():
        found.append(f"the host {host} has letters outside ASCII and may only look like a name that you know")
    if loopback:
        found.append("the address belongs to a program on this computer")
    elif _is_address(host):
        found.append(f"the host {host} is a bare address without a name")
    return tuple(found)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _decoded(host: str) -> str:
    """The host with its punycode labels as people would read them, escaped where they cannot be decoded."""
    return ".".join(_label(label) for label in host.split("."))


def _label(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    try:
        decoded = label.removeprefix("xn--").encode("ascii").decode("punycode")
    except UnicodeError:
        return label
    return decoded if decoded.isprintable() else label
