"""A stdio server with books to read: resources over several pages, a template, a search.

Owns: seven books and how they are listed, three on a page.
Never: changes anything; all its tools are marked as reading only.
"""

from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resources import TextResource
from pydantic import BaseModel

from interlock.demo.hints import READS

BOOKS = {
    "signals": ("Signals and Sidings", "How a lever frame keeps two trains off one track, and why it never forgets."),
    "tides": ("A Table of Tides", "High and low water for harbours that no longer exist."),
    "moss": ("Moss", "Four hundred pages on the patience of very small plants."),
    "bridges": ("Bridges That Stood", "Twelve bridges, none of which fell down. A dull and hopeful book."),
    "knots": ("Knots for Two Hands", "Every knot that can be tied while holding a lantern."),
    "maps": ("Maps of the Same Place", "One valley, drawn by nine people who disagreed."),
    "clocks": ("Slow Clocks", "On keeping time when nothing is in a hurry."),
}
PAGE = 3


class Book(BaseModel):
    uri: str
    title: str


class Found(BaseModel):
    """What a search found."""

    books: list[Book]


async def in_pages(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Cut the list of resources into pages; a cursor is the number of books before it."""
    result = await call_next(ctx)
    if ctx.method != "resources/list" or not isinstance(result, dict):
        return result
    start = int((ctx.params or {}).get("cursor") or 0)
    books = result["resources"]
    more = {"nextCursor": str(start + PAGE)} if start + PAGE < len(books) else {}
    return {**result, "resources": books[start : start + PAGE], **more}


server = MCPServer(
    "library",
    version="1.0",
    instructions="Books are resources. Search finds their URIs.",
    resources=[
        TextResource(uri=f"library://books/{key}", name=key, title=title, description=text, text=f"{title}\n\n{text}\n")
        for key, (title, text) in BOOKS.items()
    ],
    middleware=[in_pages],
    log_level="ERROR",
)


@server.resource("library://books/{book}/page/{number}", title="One page of a book", mime_type="text/plain")
def page(book: str, number: str) -> str:
    title, text = BOOKS[book]
    return f"{title}, page {number}: {text}"


@server.tool(title="Search the library", annotations=READS)
def search(words: str) -> Found:
    """Find books by words of their title or description."""
    wanted = words.lower()
    return Found(
        books=[
            Book(uri=f"library://books/{key}", title=title)
            for key, (title, text) in BOOKS.items()
            if wanted in f"{title} {text}".lower()
        ]
    )


if __name__ == "__main__":
    server.run()
