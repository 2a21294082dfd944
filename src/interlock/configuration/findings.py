"""What is found in one table: its problems, and the values of its references.

Owns: collecting the problems of a table, resolving its text settings.
Never: stops at the first problem; a user sees all of them at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from interlock.configuration.references import Lookup, Reference, Unresolved
from interlock.configuration.values import Problem
from interlock.vocabulary.secret import Secret
from interlock.vocabulary.server import Text


@dataclass(slots=True)
class Findings:
    """The problems of one table, as they are found."""

    file: str
    table: str
    problems: list[Problem] = field(default_factory=list)

    def warn(self, key: str | None, sentence: str) -> None:
        self._add(key, sentence, fatal=False)

    def refuse(self, key: str | None, sentence: str) -> None:
        self._add(key, sentence, fatal=True)

    @property
    def verdict(self) -> str | None:
        """One sentence of everything fatal; None when the table can be used."""
        fatal = [problem for problem in self.problems if problem.fatal]
        return "; ".join([str(fatal[0]), *(f"`{p.key}`: {p.sentence}" for p in fatal[1:])]) if fatal else None

    def _add(self, key: str | None, sentence: str, *, fatal: bool) -> None:
        key = None if key is None else shown(key)
        self.problems.append(
            Problem(file=self.file, table=self.table, key=key, sentence=_printable(sentence), fatal=fatal)
        )


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolves the text settings of one table; an unresolved one is refused under its key."""

    environment: Mapping[str, str]
    find: Lookup
    findings: Findings

    def text(self, key: str, value: str | Secret | Reference) -> Text:
        if not isinstance(value, Reference):
            return value
        try:
            return self.find(value)
        except Unresolved as error:
            self.findings.refuse(key, str(error))
            return Secret("", value.source)

    def optional(self, key: str, value: str | Secret | Reference | None) -> Text | None:
        return None if value is None else self.text(key, value)

    def secret(self, key: str, value: str | Secret | Reference) -> Secret:
        text = self.text(key, value)
        return text if isinstance(text, Secret) else Secret(text)

    def variable(self, name: str) -> Secret | None:
        value = self.environment.get(name)
        return None if value is None else Secret(value, f"environment variable {name}")


def shown(name: str) -> str:
    """A name from a file, fit for a message: printable and at most 80 characters."""
    plain = _printable(name)
    return plain if len(plain) <= 80 else plain[:79] + "…"


def _printable(text: str) -> str:
    """Escape sequences in a file must not reach a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
