import json
from typing import Any

from interlock.demo import telling
from interlock.demo.display import one_line
from interlock.vocabulary.item import ItemError, McpToolCallItem
from interlock.vocabulary.server import ServerReport, ServerStatus
from interlock.vocabulary.tool import Tool, ToolAnnotations, ToolResult


def item(tool: str, result: ToolResult | None = None, **more: Any) -> McpToolCallItem:
    return McpToolCallItem(id="c", server="s", tool=tool, public_name=tool, arguments={}, result=result, **more)


def text(value: Any) -> ToolResult:
    return ToolResult(content=({"type": "text", "text": value if isinstance(value, str) else json.dumps(value)},))


def test_a_listing_is_counted_and_its_failures_are_named() -> None:
    everything = {"resources": [{"server": "b"}, {"server": "a"}], "errors": [{"server": "c", "message": "away"}]}
    told = telling.outcome(item("list_mcp_resources", text(everything)))
    assert told == "2 resources from a, b; not from c: away"


def test_a_page_says_whether_it_is_the_last() -> None:
    page = {"server": "a", "resourceTemplates": [{"server": "a"}]}
    assert telling.outcome(item("list_mcp_resource_templates", text(page))) == "1 template, the last page"
    more = telling.outcome(item("list_mcp_resource_templates", text({**page, "nextCursor": "x"})))
    assert more == "1 template, and a cursor to the next page"


def test_an_error_is_its_sentence_and_a_result_its_text() -> None:
    assert telling.outcome(item("t", error=ItemError(code="server_failed", message="away"))) == "away"
    assert telling.outcome(item("t", ToolResult(content=({"type": "image"},)))) == "[image]"
    assert telling.outcome(item("t", ToolResult(structured_content={"a": "ü"}))) == '{"a": "ü"}'


def test_a_tool_without_hints_counts_as_destructive() -> None:
    def hint(annotations: ToolAnnotations) -> str:
        return telling.hint(Tool(name="t", input_schema={}, annotations=annotations))

    assert hint(ToolAnnotations()) == "destroys"
    assert hint(ToolAnnotations(destructive_hint=False)) == "changes"
    assert hint(ToolAnnotations(read_only_hint=True)) == "reads"


def test_a_servers_row_has_its_reason_or_its_version() -> None:
    failed = ServerReport(name="a", status=ServerStatus.FAILED, reason="no such\ncommand")
    ready = ServerReport(name="b", status=ServerStatus.READY, protocol_version="2025-11-25", seconds_to_ready=0.25)
    assert telling.server_row(failed)[3] == "no such command"
    assert telling.server_row(ready)[3] == "MCP 2025-11-25, ready after 0.2 s"


def test_a_servers_text_cannot_steer_the_terminal_or_fill_it() -> None:
    assert one_line("a\x1b[2Jb\n c") == "a [2Jb c"
    assert one_line("x" * 200, 10) == "x" * 9 + "…"
