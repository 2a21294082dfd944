"""Odd things that a server does, counted.

Owns: the table from kind to count and newest example.
Never: grows with what a server sends: kinds are our words, and examples are short.
"""

from collections.abc import Callable

from interlock.vocabulary.server import Diagnostic

LONGEST_EXAMPLE = 200
"""Characters of the newest example that are kept."""


def printable(text: str, limit: int = LONGEST_EXAMPLE) -> str:
    """The beginning of `text` with everything that could steer a terminal written as an escape."""
    cut = text[:limit] + ("…" if len(text) > limit else "")
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


class Diagnostics:
    """Counts by kind (CON-8, CON-9). `mask` takes secrets out of the examples."""

    def __init__(self, mask: Callable[[str], str] = str) -> None:
        self._mask = mask
        self._seen: dict[str, tuple[int, str]] = {}

    def __repr__(self) -> str:
        return f"<Diagnostics { ({kind: count for kind, (count, _) in self._seen.items()}) }>"

    def count(self, kind: str, text: str) -> None:
        counted = self._seen.get(kind, (0, ""))[0]
        self._seen[kind] = (counted + 1, text[: 5 * LONGEST_EXAMPLE])  # made fit to be shown only when it is: floods

    def report(self) -> tuple[Diagnostic, ...]:
        """One entry a kind, in the order of first sight."""
        return tuple(
            Diagnostic(kind=kind, count=count, last=printable(self._mask(last)))
            for kind, (count, last) in self._seen.items()
        )
