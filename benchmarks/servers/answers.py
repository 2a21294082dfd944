"""What the reference servers answer, encoded once.

Owns: the tools, the resources and their bytes, the revision of the tool list.
Never: reads or writes a stream.
"""

import argparse
import base64
import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any

VERSION = "2025-11-25"
KNOWN_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", VERSION)
METHOD_NOT_FOUND = b'"error":{"code":-32601,"message":"method not found"}'
CALLED = b'"result":{"content":[{"type":"text","text":"ok"}],"isError":false}'
LIST_CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
TEXT_UNIT = (
    'A line with "quotes", a tab\t, and letters beyond ASCII: \u00e9 \u2014 0123456789 abcdefghijklmnopqrstuvwxyz.\n'
)


@dataclass(frozen=True)
class Answer:
    """The member `result` or `error` of a response, seconds to wait before it, and what is sent after it."""

    body: bytes
    delay: float = 0.0
    after: bytes = b""


@dataclass
class Answers:
    """`tools` in all, `page_size` of them on a page (0: one page), `delay` seconds for every call."""

    tools: int = 3
    page_size: int = 0
    delay: float = 0.0
    revision: int = 0
    _pages: dict[tuple[int, str], bytes] = field(default_factory=dict)

    def to(self, message: dict[str, Any]) -> Answer:
        """The answer to a request."""
        params = message.get("params") or {}
        match message["method"]:
            case "tools/call" if params.get("name") == "touch":
                self.revision += 1
                self._pages.clear()
                return Answer(CALLED, after=LIST_CHANGED)
            case "tools/call":
                return Answer(CALLED, delay=self.delay)
            case "tools/list":
                return Answer(self._page(params.get("cursor") or "0"))
            case "resources/read":
                return Answer(resource(params["uri"]))
            case "initialize":
                return Answer(initialized(params.get("protocolVersion", "")))
            case "ping":
                return Answer(b'"result":{}')
            case "resources/list" | "resources/templates/list" | "prompts/list" as method:
                member = {"resources/list": "resources", "prompts/list": "prompts"}.get(method, "resourceTemplates")
                return Answer(result({member: []}))
        return Answer(METHOD_NOT_FOUND)

    def _page(self, cursor: str) -> bytes:
        key = (self.revision, cursor)
        if key not in self._pages:
            first = int(cursor)
            end = min(self.tools, first + (self.page_size or self.tools))
            listed: dict[str, Any] = {"tools": [tool(number, self.revision) for number in range(first, end)]}
            if end < self.tools:
                listed["nextCursor"] = str(end)
            self._pages[key] = result(listed)
        return self._pages[key]


def result(value: object) -> bytes:
    return b'"result":' + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@cache
def initialized(asked: str) -> bytes:
    return result(
        {
            "protocolVersion": asked if asked in KNOWN_VERSIONS else VERSION,
            "capabilities": {"tools": {"listChanged": True}, "resources": {}},
            "serverInfo": {"name": "reference", "version": "1"},
        }
    )


def tool(number: int, revision: int) -> dict[str, Any]:
    """A tool of ordinary size. A revision changes the description of the first one."""
    news = f" Revision {revision}." if revision and number == 0 else ""
    return {
        "name": f"look_up_{number:05d}",
        "title": f"Look up {number}",
        "description": f"Looks up records of kind {number}: it takes words, a limit and options, and returns the "
        f"records that match them, newest first. Use it for questions about area {number % 13}.{news}",
        "inputSchema": {
            "type": "object",
            "properties": {
                "words": {"type": "string", "description": "What to look for."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
                "options": {
                    "type": "object",
                    "properties": {
                        "order": {"type": "string", "enum": ["newest", "oldest"]},
                        "fields": {"type": "array", "items": {"type": "string"}},
                    },
                },
            },
            "required": [],
        },
        "annotations": {"readOnlyHint": True},
    }


@cache
def resource(uri: str) -> bytes:
    """`bench://text/BYTES` or `bench://blob/BYTES`: so many bytes of text or of base64."""
    kind, size = uri.split("/")[2], int(uri.split("/")[3])
    if kind == "text":
        text = (TEXT_UNIT * (size // len(TEXT_UNIT.encode()) + 1)).encode()[:size].decode(errors="ignore")
        return result({"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]})
    raw = bytes(range(256)) * (size * 3 // 4 // 256 + 1)
    blob = base64.b64encode(raw[: size * 3 // 4]).decode()
    return result({"contents": [{"uri": uri, "mimeType": "application/octet-stream", "blob": blob}]})


def response(request_id: object, answer: Answer) -> bytes:
    return b'{"jsonrpc":"2.0","id":' + json.dumps(request_id).encode() + b"," + answer.body + b"}"


def from_arguments(parser: argparse.ArgumentParser) -> tuple[Answers, argparse.Namespace]:
    """What the command line of a server asks for."""
    parser.add_argument("--tools", type=int, default=3)
    parser.add_argument("--page-size", type=int, default=0)
    parser.add_argument("--delay-milliseconds", type=float, default=0.0)
    given = parser.parse_args()
    return Answers(tools=given.tools, page_size=given.page_size, delay=given.delay_milliseconds / 1000), given
