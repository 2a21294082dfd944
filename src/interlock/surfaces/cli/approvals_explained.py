"""`interlock approvals explain`: the decision on a call, with every rule that was looked at.

Owns: finding what is to be explained (a call that somebody thinks of, or recorded ones), and its words.
Never: calls a tool, or decides by rules of its own.
"""

import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from interlock.configuration import Configuration
from interlock.history.fold import fold
from interlock.questions.approval import Verdict, decide
from interlock.questions.rules import CallFacts
from interlock.stores import open_store
from interlock.surfaces.cli.asking import ask_one
from interlock.surfaces.cli.mcp_call import read_arguments
from interlock.surfaces.cli.opening import is_made, kept_in, read_configuration, refuse_unknown, start_deadline
from interlock.surfaces.cli.output import one_line, print_json, print_text, say
from interlock.surfaces.cli.stored_threads import find_thread
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.item import McpToolCallItem
from interlock.vocabulary.snapshot import ServerView
from interlock.vocabulary.tool import ToolAnnotations

WORDS = {"allow": "allowed without asking", "ask": "asked about", "deny": "refused"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One call with its verdict; `call_id` of a recorded one."""

    facts: CallFacts
    verdict: Verdict
    mode: str
    call_id: str | None = None


async def hypothetical(
    config: Path | None,
    server: str,
    tool: str,
    arguments: str,
    offline: bool,
    as_json: bool,
    closing: AsyncExitStack,
) -> int:
    """Explain a call that nobody makes. The server is started for the annotations of its tool, unless `offline`."""
    read = read_arguments(sys.stdin.read() if arguments == "-" else arguments)
    configuration = read_configuration(config, server)
    refuse_unknown(configuration, server)
    annotations = ToolAnnotations()
    if not offline:
        annotations = await ask_one(closing, configuration, server, partial(_annotations, tool))
    facts = CallFacts(server=server, tool=tool, annotations=annotations, arguments=read)
    _show([_explained(configuration, facts)], as_json)
    return 0


async def recorded(
    config: Path | None, thread: str, call_id: str | None, as_json: bool, closing: AsyncExitStack
) -> int:
    """Explain the calls of a stored thread under the configuration of today."""
    configuration = read_configuration(config)
    place = kept_in()
    if not is_made(place):
        raise InvalidRequest(f"there is no thread {thread!r}; nothing is stored yet")
    store = await closing.enter_async_context(open_store(place))
    thread_id = (await find_thread(store.threads, thread)).thread_id
    events = [stored async for stored in store.read(thread_id)]
    items = [item for turn in fold(thread_id, events).turns for item in turn.items]
    calls = [item for item in items if isinstance(item, McpToolCallItem) and call_id in (None, item.id)]
    known = [item for item in calls if item.server in configuration.servers]
    for item in calls:
        if item.server not in configuration.servers:
            say(f"{item.id}: no server {item.server!r} is configured, so nothing is decided about {item.tool}")
    if not calls:
        raise InvalidRequest(f"thread {thread_id} has no {'call ' + call_id if call_id else 'calls'}")
    _show([_explained(configuration, _facts(item), item.id) for item in known], as_json)
    return 0


async def _annotations(tool: str, view: ServerView) -> ToolAnnotations:
    listing = await view.connection.list_tools(timeout=start_deadline(view.config))
    found = next((entry for entry in listing.entries if entry.name == tool), None)
    if found is None:
        raise InvalidRequest(f"server {view.config.name!r} has no tool {tool!r}; --offline explains it all the same")
    return found.annotations


def _facts(item: McpToolCallItem) -> CallFacts:
    """What a record still says: of the annotations only whether the tool said that it reads."""
    return CallFacts(
        server=item.server,
        tool=item.tool,
        annotations=ToolAnnotations(read_only_hint=item.read_only_hint),
        arguments=item.arguments if isinstance(item.arguments, dict) else {},
        connector_id=item.connector_id,
    )


def _explained(configuration: Configuration, facts: CallFacts, call_id: str | None = None) -> Explained:
    mode = configuration.servers[facts.server].approval_mode(facts.tool)
    verdict = decide(facts, mode, configuration.policy, remembered=False)
    return Explained(facts=facts, verdict=verdict, mode=mode, call_id=call_id)


def _show(explained: list[Explained], as_json: bool) -> None:
    if as_json:
        print_json({"calls": [_document(one) for one in explained]})
        return
    for one in explained:
        for line in _lines(one):
            print_text(line)


def _lines(one: Explained) -> Iterator[str]:
    name = f"{one_line(one.facts.server)} {one_line(one.facts.tool)}"
    yield f"{f'{one_line(one.call_id)}: ' if one.call_id else ''}{name}: {WORDS[one.verdict.decision]}"
    yield f"  because {one_line(one.verdict.reason)}"
    for examined in one.verdict.examined:
        what = "matches" if examined.mismatch is None else f"does not match: {one_line(examined.mismatch)}"
        yield f"  rule {examined.number} ({examined.rule.action}) {what}"
    if one.verdict.basis == "mode":
        yield f"  no rule matches, so approval_mode '{one.mode}' decides"


def _document(one: Explained) -> dict[str, Any]:
    document = {
        "server": one.facts.server,
        "tool": one.facts.tool,
        "decision": one.verdict.decision,
        "basis": one.verdict.basis,
        "reason": one.verdict.reason,
        "approvalMode": one.mode,
        "rules": [
            {"number": examined.number, "action": examined.rule.action, "matches": examined.mismatch is None}
            | ({"mismatch": examined.mismatch} if examined.mismatch is not None else {})
            for examined in one.verdict.examined
        ],
    }
    return document if one.call_id is None else {"callId": one.call_id, **document}
