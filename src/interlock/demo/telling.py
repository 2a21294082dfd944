"""One sentence for each thing that happened.

Owns: what a stranger reads of a call's outcome, of a tool's hints and of a server's state.
Never: prints.
"""

import json
from typing import Any

from interlock.demo.display import one_line
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.server import ServerReport
from interlock.vocabulary.tool import Tool


def outcome(item: McpToolCallItem) -> str:
    """What came of a call: the error's sentence, or what its result holds in a few words."""
    if item.error is not None:
        return one_line(item.error.message, 240)
    text = _result_text(item)
    match item.tool:
        case "list_mcp_resources" | "list_mcp_resource_templates":
            return _listing(json.loads(text))
        case "read_mcp_resource":
            return one_line("read: " + str(json.loads(text)["contents"][0].get("text", "")))
        case _:
            return one_line(text)


def hint(tool: Tool) -> str:
    """What a server says of a tool; a host must not trust it, but may be warned by it."""
    if tool.annotations.read_only_hint:
        return "reads"
    return "changes" if tool.annotations.destructive_hint is False else "destroys"


def server_row(report: ServerReport) -> tuple[str, str, str, str]:
    """Name, transport, state, and what else is worth knowing."""
    if report.reason is not None:
        return report.name, report.transport, report.status.value, one_line(report.reason, 140)
    seconds = f", ready after {report.seconds_to_ready:.1f} s" if report.seconds_to_ready is not None else ""
    return report.name, report.transport, report.status.value, f"MCP {report.protocol_version or '?'}{seconds}"


def _listing(answer: dict[str, Any]) -> str:
    things = "resources" if "resources" in answer else "resourceTemplates"
    count = len(answer[things])
    words = f"{count} {'resource' if things == 'resources' else 'template'}{'' if count == 1 else 's'}"
    if "server" in answer:
        return f"{words}, and a cursor to the next page" if "nextCursor" in answer else f"{words}, the last page"
    servers = sorted({entry["server"] for entry in answer[things]})
    failed = "".join(f"; not from {error['server']}: {error['message']}" for error in answer.get("errors", ()))
    return one_line(f"{words} from {', '.join(servers)}{failed}", 200)


def _result_text(item: McpToolCallItem) -> str:
    if item.result is None:
        return ""
    if item.result.structured_content is not None:
        return json.dumps(item.result.structured_content, ensure_ascii=False)
    return "\n".join(_block(block) for block in item.result.content)


def _block(block: JsonObject) -> str:
    return str(block.get("text", f"[{block.get('type')}]"))
