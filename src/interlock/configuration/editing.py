"""Small changes of a configuration file, on behalf of the user.

Owns: writing an approval mode into the table of a tool; comments, order and layout stay (APR-2).
Never: touches a file that a project brought along, or keeps an edit that changed anything else.
"""

import tomllib
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

from interlock.configuration.rewriting import rewrite
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.policy import ApprovalMode


def set_approval_mode(file: Path, server: str, tool: str, mode: ApprovalMode) -> None:
    """Write `[mcp_servers.SERVER.tools.TOOL] approval_mode = "MODE"` into `file`, which has the server's table.

    Raises:
        InvalidRequest: the file cannot be read, understood or written, or has no such server; nothing has changed.
    """

    def change(text: str) -> str:
        try:
            document = tomlkit.parse(text)
            _put(document, server, tool, mode)
            edited = tomlkit.dumps(document)
            _compare(text, edited, server, tool, mode)
        except (TOMLKitError, ValueError, TypeError) as error:
            raise InvalidRequest(f"cannot write the approval of {tool!r} into {file}: {error}") from error
        return edited

    rewrite(file, change)


def _put(document: MutableMapping[str, Any], server: str, tool: str, mode: ApprovalMode) -> None:
    servers = document.get("mcp_servers")
    if not isinstance(servers, MutableMapping) or not isinstance(servers.get(server), MutableMapping):
        raise TypeError(f"it has no table [mcp_servers.{server}]")
    table: MutableMapping[str, Any] = servers[server]
    for name in ("tools", tool):
        if name not in table:
            inline = isinstance(table, InlineTable)
            table[name] = tomlkit.inline_table() if inline else tomlkit.table(is_super_table=name == "tools")
        table = table[name]
    table["approval_mode"] = mode


def _compare(old: str, new: str, server: str, tool: str, mode: ApprovalMode) -> None:
    """Nothing else may have changed, whatever the layout of the file made of the edit."""
    expected = tomllib.loads(old)
    expected["mcp_servers"][server].setdefault("tools", {}).setdefault(tool, {})["approval_mode"] = mode
    if tomllib.loads(new) != expected:
        raise ValueError("its layout cannot be edited safely; write it by hand")
