"""Media on the way to a provider.

Owns: which media types go out as parts of their own, and the words that stand for the others (CAT-10).
Never: decodes or checks the data; `catalog.result` has done so.

A provider that meets a part it does not take refuses the whole request, and the part stays in the
history: the conversation would be dead. So only types that all providers of a dialect take go out.
"""

from collections.abc import Collection
from typing import Literal, TypeAlias

from interlock.vocabulary.conversation import MediaPart, Part, TextPart

MediaKind: TypeAlias = Literal["image", "audio", "file"]

IMAGES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
AUDIO_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
DOCUMENTS = {"application/pdf"}


def mime_type(part: MediaPart) -> str:
    """Without parameters, in lower case, under its registered name."""
    name = part.mime_type.partition(";")[0].strip().lower()
    return "image/jpeg" if name == "image/jpg" else name


def kind(part: MediaPart, media: Collection[MediaKind]) -> MediaKind | None:
    """What the part can go out as; None: only as words."""
    name = mime_type(part)
    found: MediaKind | None = (
        "image" if name in IMAGES else "audio" if name in AUDIO_FORMATS else "file" if name in DOCUMENTS else None
    )
    return found if found in media else None


def data_url(part: MediaPart) -> str:
    return f"data:{mime_type(part)};base64,{part.data}"


def file_name(part: MediaPart) -> str:
    """A name for the file: the last piece of the URI or name that came with it."""
    return (part.name or "").rstrip("/").rpartition("/")[2] or "document.pdf"


def placeholder(part: MediaPart) -> str:
    """The words that stand for a part that cannot go out."""
    name = f" {part.name}" if part.name else ""
    size = len(part.data) * 3 // 4
    return f"[{part.kind}{name} ({part.mime_type}, {size} bytes) left out: it cannot be shown to this model]"


def only_text(parts: Collection[Part]) -> str | None:
    """The text of parts that are all text; None if one is not."""
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    return "\n".join(texts) if len(texts) == len(parts) else None
