"""Structured results against the schema that their tool promised."""

from typing import Any

import pytest

from interlock.connections.outputs import Outputs
from interlock.vocabulary.slices import at_once
from interlock.vocabulary.tool import Tool, ToolResult

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def breach(schema: Any, structured: Any, **members: Any) -> str | None:
    tool = Tool(name="typed", input_schema={}, output_schema=schema)
    return at_once(Outputs({"typed": tool}).checking("typed", ToolResult(structured_content=structured, **members)))


def test_a_result_that_fits_is_no_breach() -> None:
    assert breach(NUMBER, {"n": 4}) is None


def test_a_result_that_does_not_fit_says_why() -> None:
    assert "integer" in (breach(NUMBER, {"n": "many"}) or "")
    assert "missing" in (breach(NUMBER, None) or "")


def test_nothing_is_asked_of_an_error_or_of_a_tool_without_a_schema() -> None:
    assert breach(NUMBER, None, is_error=True) is None
    assert breach(None, {"n": "many"}) is None
    assert at_once(Outputs({}).checking("unknown", ToolResult())) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "wat", "properties": 5},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$schema": "http://example.com/odd", "type": "object"},
    ],
)
def test_a_schema_that_cannot_be_used_leaves_the_tool_usable_and_fetches_nothing(schema: Any) -> None:
    assert "not valid" in (breach(schema, {"a": 1}) or "")
