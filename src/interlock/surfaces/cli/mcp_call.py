"""`interlock mcp call`: one tool of one server.

Owns: reading the arguments, printing the result.
Never: asks for approval (who types the command gives it), or calls what the configuration filters out.
"""

import json
import sys
from contextlib import AsyncExitStack
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from interlock.catalog.result import result_parts
from interlock.surfaces.cli.asking import ask_one
from interlock.surfaces.cli.opening import read_configuration, start_deadline
from interlock.surfaces.cli.output import at_terminal, complain, print_json, print_text, say
from interlock.surfaces.cli.standard_input import read_standard_input
from interlock.vocabulary.conversation import TextPart
from interlock.vocabulary.errors import InvalidRequest, NotPermitted, ServerFailed
from interlock.vocabulary.json import fault
from interlock.vocabulary.snapshot import ServerView
from interlock.vocabulary.tool import Progress, Tool, ToolResult

MAXIMUM_ARGUMENTS = 256 * 1024 * 1024
"""Bytes of arguments from stdin; a server may take files."""


async def show(
    config: Path | None, server: str, tool: str, arguments: str, as_json: bool, closing: AsyncExitStack
) -> int:
    """Call and print; 1 when the result says that it is an error."""
    piped = arguments == "-"
    read = read_arguments(await read_standard_input("the arguments", MAXIMUM_ARGUMENTS) if piped else arguments)
    configuration = read_configuration(config, server)
    result = await ask_one(closing, configuration, server, partial(_call, tool, read))
    if as_json:
        print_json(_document(result))
    else:
        _print(result)
    if result.is_error:
        complain(f"tool {tool!r} of server {server!r} answered that it failed")
        return 1
    return 0


def read_arguments(text: str) -> dict[str, Any]:
    """A JSON object.

    Raises:
        InvalidRequest: it is none; the message has the place.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidRequest(
            f'cannot read the arguments: {fault(error)} at {place}; write a JSON object such as \'{{"path": "."}}\''
        ) from None
    except RecursionError:
        raise InvalidRequest("cannot read the arguments: they are nested too deeply") from None
    if not isinstance(value, dict):
        raise InvalidRequest('cannot read the arguments: they must be a JSON object such as \'{"path": "."}\'')
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidRequest("cannot read the arguments: a text in them is not UTF-8; convert it") from None
    return value


async def _call(name: str, arguments: dict[str, Any], view: ServerView) -> ToolResult:
    config, connection = view.config, view.connection
    if not config.allows(name):
        raise NotPermitted(
            f"cannot call tool {name!r} of server {config.name!r}: the filters in {config.source} rule it out"
        )
    listing = await connection.list_tools(timeout=start_deadline(config))
    _refuse_unknown(name, config.name, listing.entries)
    try:
        return await connection.call_tool(name, arguments, timeout=config.tool_timeout, on_progress=_progress())
    except ServerFailed as error:
        if error.effect == "unknown" and error.kind != "rejected":  # a refusal is the server's own answer
            error.args = (f"{error.message} (whether the call took effect is unknown)",)
        raise


def _refuse_unknown(name: str, server: str, tools: tuple[Tool, ...]) -> None:
    names = [tool.name for tool in tools]
    if name not in names:
        close = get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]}?" if close else f"`interlock mcp tools {server}` lists them"
        raise InvalidRequest(f"server {server!r} has no tool {name!r}; {hint}")


def _progress() -> Any:
    def on_progress(progress: Progress) -> None:
        total = "" if progress.total is None else f" of {progress.total:g}"
        say(f"progress {progress.progress:g}{total}{': ' + progress.message if progress.message else ''}")

    return on_progress if at_terminal(sys.stderr) else None


def _document(result: ToolResult) -> dict[str, Any]:
    document: dict[str, Any] = {"content": list(result.content), "isError": result.is_error}
    if result.structured_content is not None:
        document["structuredContent"] = result.structured_content
    if result.meta is not None:
        document["_meta"] = result.meta
    return document


def _print(result: ToolResult) -> None:
    for part in result_parts(result):
        if isinstance(part, TextPart):
            print_text(part.text)
        else:
            say(f"{part.kind} of type {part.mime_type} left out; --json prints it")
