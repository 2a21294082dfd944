"""What a well-behaved scripted MCP server answers, in both eras.

Owns: the script's members, and the results made from them: handshake, discovery, listings, reads.
Never: waits, writes, or plays steps; `server` does.
"""

from typing import Any

STATELESS = "2026-07-28"
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"

INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION = -32602, -32601, -32022

LISTINGS = {
    "tools/list": ("tools", "tools"),
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("templates", "resourceTemplates"),
    "prompts/list": ("prompts", "prompts"),
}
PLAYED = {"do", "text", "blob", "messages"}
"""Members of an entry that are for the script and never listed."""

Json = dict[str, Any]


class RpcError(Exception):
    """An answer that is a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error: Json = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


class Answers:
    """The script as a server: `members` may be replaced while it runs (the step "set")."""

    def __init__(self, script: Json) -> None:
        self.members: Json = dict(script)

    def speaks(self, era: str) -> bool:
        return era in self.members.get("eras", ("handshake", "stateless"))

    def steps(self, event: str) -> list[Json]:
        """The steps of "on": before a method's proper answer, or at "start"."""
        return list(self.members.get("on", {}).get(event, ()))

    def initialize(self, params: Json) -> Json:
        if not self.speaks("handshake"):
            raise self._unsupported(params.get("protocolVersion"))
        asked = params.get("protocolVersion")
        version = asked if asked in HANDSHAKE else HANDSHAKE[-1]
        return {
            "protocolVersion": version,
            "capabilities": self.capabilities(),
            "serverInfo": self.info(),
        } | self._help()

    def discover(self) -> Json:
        if not self.speaks("stateless"):
            raise RpcError(METHOD_NOT_FOUND, "method not found: server/discover")
        meta = {"io.modelcontextprotocol/serverInfo": self.info()}
        return {"supportedVersions": [STATELESS], "capabilities": self.capabilities(), "_meta": meta} | self._help()

    def check_version(self, params: Json) -> bool:
        """Whether the request is of the stateless era; one that names another version is refused."""
        version = (params.get("_meta") or {}).get(VERSION_KEY)
        if version is None:
            return False
        if version != STATELESS or not self.speaks("stateless"):
            raise self._unsupported(version)
        return True

    def capabilities(self) -> Json:
        present = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}, "completions": {}}
        found: Json = {name: value for name, value in present.items() if name in self.members}
        if "resources" in self.members or "templates" in self.members:
            found["resources"] = {"listChanged": True, "subscribe": True}
        found.update(self.members.get("capabilities", {}))
        return found

    def info(self) -> Json:
        return {"name": self.members.get("name", "scripted"), "version": self.members.get("version", "1.0")}

    def listing(self, method: str, params: Json) -> Json:
        """One page; a cursor is "page-N"."""
        member, key = LISTINGS[method]
        if member not in self.members and not (member == "templates" and "resources" in self.members):
            raise RpcError(METHOD_NOT_FOUND, f"method not found: {method}")
        entries = self.members.get(member, [])
        size = int(self.members.get("page_size", 0)) or max(len(entries), 1)
        page = _page_number(params.get("cursor"))
        shown = [{k: v for k, v in e.items() if k not in PLAYED} for e in entries[page * size : (page + 1) * size]]
        if member == "tools":
            shown = [{"inputSchema": {"type": "object"}, **tool} for tool in shown]
        more = (page + 1) * size < len(entries)
        return {key: shown} | ({"nextCursor": f"page-{page + 1}"} if more else {})

    def find(self, member: str, key: str, value: Any) -> Json:
        for entry in self.members.get(member, ()):
            if entry.get(key) == value:
                return dict(entry)
        raise RpcError(INVALID_PARAMS, f"unknown {key}: {value}")

    def read(self, resource: Json) -> Json:
        content = {"uri": resource["uri"], "mimeType": resource.get("mimeType", "text/plain")}
        kind = "blob" if "blob" in resource else "text"
        return {"contents": [{**content, kind: resource.get(kind, "")}]}

    def prompt(self, prompt: Json) -> Json:
        return {"messages": prompt.get("messages", [])}

    def complete(self, params: Json) -> Json:
        """Values by reference (a prompt's name or a template's URI) and argument, that begin as asked."""
        reference, argument = params.get("ref", {}), params.get("argument", {})
        known = self.members.get("completions", {}).get(reference.get("name") or reference.get("uri"), {})
        begin = str(argument.get("value", ""))
        values = [value for value in known.get(argument.get("name"), ()) if value.startswith(begin)]
        return {"completion": {"values": values[:100], "total": len(values), "hasMore": len(values) > 100}}

    def _help(self) -> Json:
        return {"instructions": self.members["instructions"]} if "instructions" in self.members else {}

    def _unsupported(self, requested: Any) -> RpcError:
        supported = ([STATELESS] if self.speaks("stateless") else []) + (
            list(HANDSHAKE) if self.speaks("handshake") else []
        )
        data = {"supported": supported, "requested": requested}
        return RpcError(UNSUPPORTED_VERSION, "unsupported protocol version", data)


def finished(result: Json, method: str) -> Json:
    """A result as the stateless era wants it: typed, and with a cache hint where it can be cached."""
    cached = method in LISTINGS or method in {"resources/read", "server/discover"}
    hint = {"ttlMs": 0, "cacheScope": "private"} if cached else {}
    return {"resultType": "complete", **hint, **result}


def text_result(text: str, *, is_error: bool = False) -> Json:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _page_number(cursor: Any) -> int:
    if cursor is None:
        return 0
    head, _, number = str(cursor).partition("-")
    if head != "page" or not number.isdecimal():
        raise RpcError(INVALID_PARAMS, f"unknown cursor: {cursor}")
    return int(number)
