"""Text that must not be shown.

Owns: the one wrapper for values that came from an environment variable, a keyring or a file.
Never: resolves a reference, or lets the value out by accident (repr, str, format, pickle).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NoReturn

MASK = "********"


@dataclass(frozen=True, slots=True)
class Secret:
    """A value with the place it came from; only `reveal()` gives the value (CFG-4).

    `source` is safe to show, such as "environment variable GITHUB_TOKEN".
    """

    _value: str = field(repr=False)
    source: str = "configuration"

    def reveal(self) -> str:
        return self._value

    def __str__(self) -> str:
        return MASK

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a secret from {self.source} cannot be pickled")


def reveal(text: "str | Secret") -> str:
    """The plain value of a setting that may be a secret."""
    return text.reveal() if isinstance(text, Secret) else text


def masked(text: str, secrets: Iterable[Secret]) -> str:
    """`text` with every value of `secrets` replaced by the mask (CFG-4).

    Values shorter than four characters (flags, numbers) stay: they are no secrets, and masking them
    would leave nothing readable.
    """
    values = {value for secret in secrets if len(value := secret.reveal()) >= 4}
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, MASK)
    return text
