"""Descriptions of untrusted servers, made fit to be shown to a model or a person.

Owns: which characters of a description are no text.
Never: changes what a call needs (names, defaults, enumerations), or the tool as its server described it.
"""

import re
from typing import Any, Final

from interlock.vocabulary.json import JsonObject, ordered_and_written

_TERMINAL_SEQUENCE: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # ECMA-48 section 5.4: control sequences, such as colours
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # sections 5.6 and 8.3: strings, such as the title of a window
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_UNFIT: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, line feed and tab apart
    r"\u202a-\u202e\u2066-\u2069"  # bidirectional overrides: text that reads otherwise than it is
    r"\U000e0000-\U000e007f]"  # tags: letters that a model reads and a person does not see
)
_PERHAPS_UNFIT: Final = re.compile(rb"\\[ubfr]|[^\x00-\x7e]")
"""In JSON text: where it finds nothing, no text within has an unfit character."""
_PROSE: Final = frozenset({"description", "title"})


def shown(text: str) -> str:
    """`text` without terminal sequences, control characters, bidirectional overrides and invisible tags."""
    if _UNFIT.search(text) is None:
        return text
    return _UNFIT.sub("", _TERMINAL_SEQUENCE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def shown_schema(schema: JsonObject) -> JsonObject:
    """A copy of `schema` with its members sorted (CAT-7) and its descriptions and titles fit to be shown.

    Raises:
        ValueError: it is nested too deep to be written.
    """
    copy: JsonObject
    copy, text = ordered_and_written(schema)
    if text is not None and _PERHAPS_UNFIT.search(text) is None:  # most are so, and are not walked through
        return copy
    nodes: list[Any] = [copy]
    while nodes:
        node = nodes.pop()
        if isinstance(node, list):
            nodes += node
        elif isinstance(node, dict):
            for name, value in node.items():
                if isinstance(value, dict | list):
                    nodes.append(value)
                elif name in _PROSE and isinstance(value, str):
                    node[name] = shown(value)
    return copy
