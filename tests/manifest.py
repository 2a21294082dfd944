"""The marker that ties a test to a promised behaviour, and the list of what has been delivered.

The promises stand in requirements.toml. DELIVERED only grows; test_manifest.py checks both directions.
"""

import pytest

requirement = pytest.mark.requirement

DELIVERED: tuple[str, ...] = ()
