"""`interlock mcp read`: one resource of one server.

Owns: how its contents are printed.
Never: looks the URI up in a list, expands a template that nobody gave values for, or sends raw bytes to a terminal.
"""

import base64
import binascii
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from interlock.resources.templates import expand
from interlock.surfaces.cli.asking import ask_one
from interlock.surfaces.cli.opening import call_deadline, read_configuration
from interlock.surfaces.cli.output import at_terminal, print_json, print_text, say
from interlock.surfaces.cli.pairs import read_pairs
from interlock.vocabulary.errors import InvalidRequest, ServerFailed
from interlock.vocabulary.resource import ResourceContent, ResourceRead
from interlock.vocabulary.snapshot import ServerView


async def show(
    config: Path | None, server: str, uri: str, values: Sequence[str], as_json: bool, closing: AsyncExitStack
) -> None:
    """Print the resource; with `values` (NAME=VALUE) `uri` is a template, which they fill in (RES-11)."""
    wanted = _expanded(uri.strip(), values)
    if not wanted:
        raise InvalidRequest(
            f"cannot read a resource of server {server!r} without a URI; `interlock mcp resources {server}` lists them"
        )
    configuration = read_configuration(config, server)

    async def ask(view: ServerView) -> ResourceRead:
        try:
            return await view.connection.read_resource(wanted, timeout=call_deadline(view.config))
        except ServerFailed as error:
            if error.kind == "rejected":
                error.args = (f"{error.message}; {_way_out(server, wanted)}",)
            raise

    read = await ask_one(closing, configuration, server, ask)
    if as_json:
        print_json({"server": server, "uri": wanted, "contents": [_content(content) for content in read.contents]})
        return
    for content in read.contents:
        _print(content)


def _way_out(server: str, uri: str) -> str:
    if "{" in uri:  # no URI has braces: a template was meant
        return f"fill the template in with --set NAME=VALUE, as `interlock mcp templates {server}` shows"
    return f"`interlock mcp resources {server}` lists what it has"


def _expanded(uri: str, values: Sequence[str]) -> str:
    if not values:
        return uri
    expanded = expand(uri, read_pairs(values, "--set"))
    say(f"reading {expanded}")
    return expanded


def _content(content: ResourceContent) -> dict[str, Any]:
    members = {
        "uri": content.uri,
        "mimeType": content.mime_type,
        "text": content.text,
        "blob": content.blob,
        "_meta": content.meta,
    }
    return {key: value for key, value in members.items() if value is not None}


def _print(content: ResourceContent) -> None:
    """Text as it is; the bytes of a blob into a pipe, a remark about them at a terminal."""
    if content.text is not None:
        print_text(content.text)
        return
    try:
        data = base64.b64decode(content.blob or "", validate=True)
    except binascii.Error:
        print_text(content.blob or "")
        return
    if at_terminal(sys.stdout):
        kind = content.mime_type or "an unknown type"
        say(f"{content.uri} is {len(data)} bytes of {kind}; write them to a file with >")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
