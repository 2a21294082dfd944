"""NAME=VALUE, as options give it.

Owns: reading such options.
Never: knows what they mean.
"""

from collections.abc import Sequence

from interlock.vocabulary.errors import InvalidRequest


def read_pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """The values by name; the last of several of one name counts.

    Raises:
        InvalidRequest: one of them is no pair.
    """
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise InvalidRequest(f"cannot read {option} {name!r}: write it as NAME=VALUE")
    return {name: value for name, _, value in pairs}
