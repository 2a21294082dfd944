"""What the scripted model of the demonstration does: it explores, reads, calls tools, and reports.

Owns: the steps, each made from what the host answered before.
Never: knows a cursor or a URI by heart; like a real model it has only what it was told.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from interlock.testing.model import ScriptedModel
from interlock.testing.script import Call, ModelStep, Say
from interlock.vocabulary.conversation import ModelRequest, OutputEntry, TextPart

PROMPT = "What can I read and use here? Have a book bound, and tell me what went wrong on the way."
AGAIN = "-again-"
"""Between the name of a call and the number of its turn, in all turns but the first."""
PIECE = 6
"""Characters of one delta, as a model would stream them."""


def scripted_model(turns: int = 0) -> ScriptedModel:
    """The model of a turn that comes after `turns` others, whose call ids it may not use again (LIF-8)."""
    steps = (look_around, first_page, second_page, third_page, read, work, report)
    return ScriptedModel(*(partial(_numbered, step, turns) for step in steps), name="scripted demo model")


def _numbered(step: Callable[[ModelRequest], ModelStep | list[ModelStep]], turns: int, request: ModelRequest) -> Any:
    said = step(request)
    return [_with_number(part, turns) for part in (said if isinstance(said, list) else [said])]


def _with_number(step: ModelStep, turns: int) -> ModelStep:
    if isinstance(step, Call) and turns > 0:
        return replace(step, call_id=f"{step.call_id}{AGAIN}{turns}")
    return step


def look_around(_: ModelRequest) -> list[ModelStep]:
    return [
        Say("I look at what all servers have to read.", PIECE),
        Call("list_mcp_resources", {}, "all-resources"),
        Call("list_mcp_resource_templates", {}, "all-templates"),
    ]


def first_page(_: ModelRequest) -> list[ModelStep]:
    return [
        Say("Now the library alone, page by page.", PIECE),
        Call("list_mcp_resources", {"server": "library"}, "page-1"),
    ]


def second_page(request: ModelRequest) -> Call:
    return _page_after(request, "page-1", "page-2")


def third_page(request: ModelRequest) -> Call:
    return _page_after(request, "page-2", "page-3")


def read(request: ModelRequest) -> list[ModelStep]:
    last = answered(request, "page-3")["resources"][-1]
    template = answered(request, "all-templates")["resourceTemplates"][0]
    page = template["uriTemplate"].replace("{book}", last["name"]).replace("{number}", "12")
    return [
        Say("I read the last book, and a page of it that only the template promises.", PIECE),
        Call("read_mcp_resource", {"server": last["server"], "uri": last["uri"]}, "read-book"),
        Call("read_mcp_resource", {"server": template["server"], "uri": page}, "read-page"),
    ]


def work(_: ModelRequest) -> list[ModelStep]:
    return [
        Say("Five tools at once, on three servers.", PIECE),
        Call("mcp__library__search", {"words": "patience"}, "search"),
        Call("mcp__weather__forecast", {"place": "the harbour"}, "forecast"),
        Call("mcp__workshop__bind", {"title": "Slow Clocks"}, "bind"),
        Call("mcp__workshop__print_label", {"text": "Slow Clocks"}, "label"),
        Call("mcp__workshop__pulp", {"title": "Moss"}, "pulp"),
    ]


def report(request: ModelRequest) -> Say:
    everything = answered(request, "all-resources")
    dead = ", ".join(failure["server"] for failure in everything.get("errors", ()))
    found = answered(request, "search")["books"][0]["title"]
    return Say(
        f"There are {len(everything['resources'])} things to read; the server {dead!r} could not be asked. "
        f"{_text(request, 'bind')}. The search found '{found}'. Tomorrow at {_text(request, 'forecast')}. "
        f"Two things went wrong: the label ({_text(request, 'label')}), and pulping a book, "
        "which nobody had allowed.",
        PIECE,
    )


def answered(request: ModelRequest, call_id: str) -> dict[str, Any]:
    """The JSON that the model was told about a call."""
    value: dict[str, Any] = json.loads(_text(request, call_id))
    return value


def _page_after(request: ModelRequest, earlier: str, call_id: str) -> Call:
    cursor = answered(request, earlier)["nextCursor"]
    return Call("list_mcp_resources", {"server": "library", "cursor": cursor}, call_id)


def _text(request: ModelRequest, call_id: str) -> str:
    for entry in reversed(request.entries):
        if isinstance(entry, OutputEntry) and entry.call_id.partition(AGAIN)[0] == call_id:
            return "\n".join(part.text for part in entry.content if isinstance(part, TextPart))
    raise LookupError(f"the model was told nothing about the call {call_id}")
