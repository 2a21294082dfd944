"""`interlock mcp complete`: what a server proposes for an argument.

Owns: the two kinds of things whose arguments are completed.
Never: invents a proposal; a server that has none says so.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from interlock.resources.templates import variable_names
from interlock.surfaces.cli.asking import ask_one
from interlock.surfaces.cli.opening import call_deadline, read_configuration
from interlock.surfaces.cli.output import print_json, print_text, say
from interlock.surfaces.cli.pairs import read_pairs
from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.json import JsonObject
from interlock.vocabulary.resource import Completion
from interlock.vocabulary.snapshot import ServerView


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The arguments of `mcp complete`: exactly one of `prompt` and `template` is set."""

    server: str
    argument: str
    value: str
    prompt: str | None
    template: str | None
    given: Sequence[str]


async def show(wish: Wish, config: Path | None, as_json: bool, closing: AsyncExitStack) -> None:
    reference, given = _reference(wish), read_pairs(wish.given, "--set")

    async def ask(view: ServerView) -> Completion:
        return await view.connection.complete(
            reference, wish.argument, wish.value, context=given, timeout=call_deadline(view.config)
        )

    completion = await ask_one(closing, read_configuration(config, wish.server), wish.server, ask)
    if as_json:
        print_json({"values": completion.values, "total": completion.total, "hasMore": completion.has_more})
        return
    for value in completion.values:
        print_text(value)
    if not completion.values:
        say(f"{wish.server} proposes nothing that begins with {wish.value!r}")
    elif completion.has_more:
        say("there are more; write more of the value")


def _reference(wish: Wish) -> JsonObject:
    if (wish.prompt is None) == (wish.template is None):
        of = "nothing" if wish.prompt is None else "two things"
        raise InvalidRequest(f"cannot complete an argument of {of}; give either --prompt NAME or --template TEMPLATE")
    if wish.template is None:
        return {"type": "ref/prompt", "name": wish.prompt}
    names = variable_names(wish.template)
    if wish.argument not in names:
        raise InvalidRequest(
            f"the template {wish.template!r} has no variable {wish.argument!r}; it has {', '.join(names) or 'none'}"
        )
    return {"type": "ref/resource", "uri": wish.template}
