"""Names for decoded JSON.

Owns: the two aliases by which every room speaks of JSON that came from outside.
Never: parses or validates.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

JsonValue: TypeAlias = Any
"""Any decoded JSON value: None, bool, int, float, str, list or dict."""

JsonObject: TypeAlias = Mapping[str, Any]
"""A decoded JSON object, treated as frozen by everybody who holds it."""
