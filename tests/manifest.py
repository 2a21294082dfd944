"""The marker that ties a test to a promised behaviour, and the list of what has been delivered.

The promises stand in requirements.toml. DELIVERED only grows; test_manifest.py checks both directions.
"""

import pytest

requirement = pytest.mark.requirement


def _numbered(room: str, *numbers: int) -> tuple[str, ...]:
    return tuple(f"{room}-{number}" for number in numbers)


DELIVERED: tuple[str, ...] = (
    *_numbered("CFG", 1, 2, 3, 4, 5, 6),
    *_numbered("CON", *range(1, 18)),
    *_numbered("CAT", *range(1, 11)),
    *_numbered("RES", *range(1, 13)),
    *_numbered("LIF", *range(1, 9)),
    *_numbered("TRN", 1),
    *_numbered("TYP", 1),
    *_numbered("QST", *range(1, 13)),
    *_numbered("APR", 1, 2, 3, 4),
    *_numbered("ORI", *range(1, 8)),
    *_numbered("HIS", *range(1, 9)),
    *_numbered("MEM", *range(1, 6)),
    *_numbered("SKL", 1, 2),
    *_numbered("RPC", *range(1, 8)),
)
