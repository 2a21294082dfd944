"""What a check found.

Owns: the shape of a finding.
Never: holds a secret.
"""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "warning", "error"]
"""error: something would fail. warning: something is odd and may fail. note: worth knowing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding about a server, or about "configuration", "model" or "home".

    `kind` is a short stable word for programs; `fix` says what to do, and is None where nothing is to be done.
    """

    subject: str
    level: Level
    kind: str
    message: str
    fix: str | None = None

    @classmethod
    def of_sentence(cls, subject: str, level: Level, kind: str, sentence: str, *, otherwise: str) -> "Finding":
        """From a sentence of the library, whose way out stands behind its last semicolon; `otherwise`: it has none."""
        message, _, fix = sentence.rpartition("; ")
        return cls(
            subject=subject, level=level, kind=kind, message=message or sentence, fix=fix if message else otherwise
        )
