"""Small changes of a configuration file, on behalf of the user.

Owns: writing an approval mode into the table of a tool; comments, order and layout stay (APR-2).
Never: touches a file that a project brought along, or leaves a half-written one.
"""

import os
import tempfile
import tomllib
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import tomlkit
from filelock import FileLock
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.policy import ApprovalMode

LOCK_PATIENCE = 10.0


def set_approval_mode(file: Path, server: str, tool: str, mode: ApprovalMode) -> None:
    """Write `[mcp_servers.SERVER.tools.TOOL] approval_mode = "MODE"` into `file`, which has the server's table.

    Raises:
        InvalidRequest: the file cannot be read, understood or written, or has no such server; nothing has changed.
    """
    try:
        with FileLock(f"{file}.lock", timeout=LOCK_PATIENCE):
            text = file.read_bytes().decode("utf-8")
            document = tomlkit.parse(text)
            _put(document, server, tool, mode)
            edited = tomlkit.dumps(document)
            _compare(text, edited, server, tool, mode)
            _replace(file, edited)
    except (OSError, TOMLKitError, ValueError, TypeError) as error:
        raise InvalidRequest(f"cannot write the approval of {tool!r} into {file}: {error}") from error


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


def _replace(file: Path, text: str) -> None:
    """All or nothing; a link stays a link, and who may read the file stays the same."""
    real = file.resolve()
    handle, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            os.fchmod(stream.fileno(), real.stat().st_mode & 0o7777)
            stream.write(text)
        os.replace(name, real)
    except BaseException:
        os.unlink(name)
        raise
