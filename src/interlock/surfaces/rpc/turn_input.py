"""What a client gives to a turn.

Owns: the kinds of user input and what the library is given for them.
Never: fetches an address; only data URLs and files of this machine are read.
"""

import base64
import binascii
import mimetypes
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import unquote_to_bytes

import anyio.to_thread
from pydantic import Field

from interlock.configuration.documents import first_bytes
from interlock.surfaces.rpc.method import Params
from interlock.vocabulary.conversation import MediaPart, Part, TextPart
from interlock.vocabulary.errors import InvalidRequest

FILE_LIMIT: Final = 20 * 1024 * 1024
"""Bytes of one local image or sound."""


class TextInput(Params):
    type: Literal["text"]
    text: str


class UrlInput(Params):
    """`url` must be a data URL: the host opens no address for a client."""

    type: Literal["image", "audio"]
    url: str


class FileInput(Params):
    type: Literal["localImage", "localAudio"]
    path: str


class MentionInput(Params):
    """Something named in the text; the model is told its name and place."""

    type: Literal["skill", "mention"]
    name: str
    path: str


UserInput = Annotated[TextInput | UrlInput | FileInput | MentionInput, Field(discriminator="type")]


async def parts_of(inputs: list[Any]) -> tuple[Part, ...]:
    """The parts of a message.

    Raises:
        InvalidRequest: there is nothing, an address is no data URL, or a file cannot be read.
    """
    if not inputs:
        raise InvalidRequest("a turn needs an input; send at least one item")
    return tuple([await _part(item) for item in inputs])


async def _part(item: TextInput | UrlInput | FileInput | MentionInput) -> Part:
    match item:
        case TextInput():
            return TextPart(text=item.text)
        case UrlInput():
            return _from_data_url(item)
        case FileInput():
            return await anyio.to_thread.run_sync(_from_file, item)
        case MentionInput():
            return TextPart(text=f"[{item.type} {item.name}: {item.path}]")


def _from_data_url(item: UrlInput) -> MediaPart:
    scheme, _, rest = item.url.partition(":")
    head, comma, data = rest.partition(",")
    if scheme.lower() != "data" or not comma:
        raise InvalidRequest(f"an {item.type} must be a data URL; the host opens no address for a client")
    kind, *parameters = head.split(";")
    if "base64" in parameters:
        try:
            base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise InvalidRequest(f"the data URL of an {item.type} holds no base64: {error}") from error
    else:
        data = base64.b64encode(unquote_to_bytes(data)).decode("ascii")
    return MediaPart(kind=item.type, data=data, mime_type=kind or "application/octet-stream")


def _from_file(item: FileInput) -> MediaPart:
    path = Path(item.path)
    try:
        data = first_bytes(path, FILE_LIMIT + 1)
    except OSError as error:
        raise InvalidRequest(f"cannot read the file {path}: {error.strerror or error}") from error
    if len(data) > FILE_LIMIT:
        raise InvalidRequest(f"cannot use the file {path}: it is larger than {FILE_LIMIT} bytes")
    kind: Literal["image", "audio"] = "image" if item.type == "localImage" else "audio"
    guessed = mimetypes.guess_type(path.name)[0] or ("image/png" if kind == "image" else "audio/wav")
    return MediaPart(kind=kind, data=base64.b64encode(data).decode("ascii"), mime_type=guessed, name=path.name)
