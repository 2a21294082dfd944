"""Items: what the end of a call keeps of its start."""

from dataclasses import fields, replace
from typing import Any

from interlock.vocabulary.item import ItemError, McpToolCallItem
from interlock.vocabulary.tool import ToolResult
from tests.manifest import requirement


@requirement("LIF-2")
def test_an_item_at_its_end_keeps_every_fact_of_its_start() -> None:
    facts: dict[str, Any] = {field.name: f"the {field.name}" for field in fields(McpToolCallItem)}
    started = McpToolCallItem(**facts | {"status": "in_progress", "result": None, "error": None, "duration": None})
    result, error = ToolResult(is_error=True), ItemError(code="x", message="y")

    for change in ({"result": result}, {"error": error}, {"arguments": {"a": 1}, "result": result}):
        ended = started.ended("failed", duration=7, **change)
        assert ended == replace(started, status="failed", duration=7, **change)
