"""Which project files may start commands.

Owns: the table from a file's path to the SHA-256 of the content that the user trusted, kept in the home folder.
Never: trusts by itself, or remembers an older content: a changed file has to be trusted again.
"""

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from interlock.vocabulary.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class TrustStore:
    """`trusted.json` in the home folder; every method reads it anew, so two processes see each other's decisions."""

    home: Path

    def trusts(self, file: Path, content: bytes) -> bool:
        """Whether exactly this content was trusted at exactly this place."""
        return self._read().get(str(file.absolute())) == _digest(content)

    def trust(self, file: Path, content: bytes) -> None:
        """Remember `content`, the bytes that the user was shown.

        Raises:
            InvalidRequest: the home folder cannot be written.
        """
        entries = self._read() | {str(file.absolute()): _digest(content)}
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._replace(json.dumps(entries, indent=2, sort_keys=True))
        except OSError as error:
            raise InvalidRequest(
                f"cannot remember the trust in {file}: {self.file} cannot be written ({error.strerror}); "
                f"check the folder's permissions or set INTERLOCK_HOME"
            ) from error

    @property
    def file(self) -> Path:
        return self.home / "trusted.json"

    def _read(self) -> dict[str, str]:
        try:
            entries = json.loads(self.file.read_bytes())
        except (OSError, ValueError):
            return {}  # unreadable means nothing is trusted: the safe side
        return entries if isinstance(entries, dict) else {}

    def _replace(self, text: str) -> None:
        handle, name = tempfile.mkstemp(dir=self.home, prefix=".trusted-")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(name, self.file)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
