"""Values that stand elsewhere: `{ env = "NAME" }`, `{ keyring = "service/name" }`, `{ file = "path" }`.

Owns: the shape of a reference and looking its value up (CFG-4).
Never: puts a value into a message; a failed look-up names the place only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic_core import PydanticCustomError

from interlock.configuration.documents import first_bytes
from interlock.vocabulary.secret import Secret

MAXIMUM_SECRET = 64 * 1024


class Unresolved(Exception):
    """A reference without a value; the sentence says which and what to do."""


@dataclass(frozen=True, slots=True)
class Reference:
    kind: Literal["env", "keyring", "file"]
    target: str

    @property
    def source(self) -> str:
        """Where the value comes from, in words that are safe to show."""
        match self.kind:
            case "env":
                return f"environment variable {self.target}"
            case "keyring":
                return f"keyring entry {self.target}"
            case "file":
                return f"file {self.target}"


Lookup = Callable[[Reference], Secret]


def text_setting(value: Any) -> str | Secret | Reference:
    """pydantic's view of a text setting: a text, or a table with one of the three keys."""
    if isinstance(value, str | Secret):
        return value
    if isinstance(value, dict) and len(value) == 1:
        (kind, target), *_ = value.items()
        if kind in {"env", "keyring", "file"} and isinstance(target, str) and target.strip():
            return Reference(kind, target.strip())
    raise PydanticCustomError(
        "text_setting", 'must be a text, or { env = "NAME" }, { keyring = "service/name" } or { file = "path" }'
    )


def lookup(environment: Mapping[str, str], folder: Path) -> Lookup:
    """A function that finds the values of references; relative files are in `folder`."""

    def find(reference: Reference) -> Secret:
        match reference.kind:
            case "env":
                value = _from_environment(environment, reference.target)
            case "keyring":
                value = _from_keyring(reference.target)
            case "file":
                value = _from_file(folder, reference.target)
        return Secret(value, reference.source)

    return find


def unlooked(reference: Reference) -> Secret:
    """The look-up for what is switched off: nobody is asked for a keyring that nobody needs."""
    return Secret("", reference.source)


def _from_environment(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name)
    if value is None:
        raise Unresolved(f"the environment variable {name} is not set; set it")
    return value


def _from_file(folder: Path, target: str) -> str:
    file = folder / Path(target).expanduser()
    try:
        content = first_bytes(file, MAXIMUM_SECRET + 1)
        if len(content) > MAXIMUM_SECRET:
            raise Unresolved(f"the file {file} is larger than a secret may be ({MAXIMUM_SECRET} bytes)")
        return content.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise Unresolved(f"the file {file} is not UTF-8 text") from None
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise Unresolved(f"the file {file} cannot be read ({reason}); check its path and permissions") from None


def _from_keyring(target: str) -> str:
    service, _, name = target.rpartition("/")
    if not service or not name:
        raise Unresolved(f'the keyring entry {target!r} has no name; write keyring = "service/name"')
    try:
        import keyring  # on demand: it looks for backends when imported, and is an extra
    except ImportError:
        raise Unresolved("the package keyring is not installed; run: pip install 'interlock[keyring]'") from None
    try:
        value = keyring.get_password(service, name)
    except Exception as error:  # backends raise whatever their system raises; its text might hold more than we want
        raise Unresolved(
            f"the keyring did not give {target} ({type(error).__name__}); unlock it or use an environment variable"
        ) from None
    if value is None:
        raise Unresolved(f"the keyring has no entry {target}; add it with: keyring set {service} {name}")
    return value
