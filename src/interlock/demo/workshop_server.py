"""A stdio server that does things: one takes its time, one fails, one destroys.

Owns: a bookbinder's workshop that exists only in memory.
Never: touches a file.
"""

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from interlock.demo.hints import CHANGES, DESTROYS

WORK = ("folding the sheets", "sewing the quires", "gluing the spine", "pressing the cover")
STEP = 0.25
"""Seconds for each piece of work: long enough to watch."""

server = MCPServer("workshop", version="1.0", log_level="ERROR")


@server.tool(title="Bind a book", annotations=CHANGES, structured_output=False)
async def bind(title: str, context: Context) -> str:
    """Bind a book. Takes a moment and tells how far it is."""
    for number, piece in enumerate(WORK, start=1):
        await context.report_progress(number, len(WORK), piece)
        await anyio.sleep(STEP)
    return f"'{title}' is bound in blue cloth"


@server.tool(title="Print a label", annotations=CHANGES, structured_output=False)
def print_label(text: str) -> str:
    """Print a label for a spine."""
    raise ToolError(f"cannot print '{text}': the printer is out of ink")


@server.tool(title="Pulp a book", annotations=DESTROYS, structured_output=False)
def pulp(title: str) -> str:
    """Turn a book into paper pulp. There is no way back."""
    return f"'{title}' is pulp now"


if __name__ == "__main__":
    server.run()
