"""`interlock mcp prompts`: the prompts of servers, and one of them filled in.

Owns: both forms, in a table and as JSON.
Never: gives a prompt to a model; it is printed, and what becomes of it is the user's business (RES-11).
"""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from interlock.surfaces.cli.asking import Answers, ask_all, ask_one
from interlock.surfaces.cli.opening import call_deadline, read_configuration
from interlock.surfaces.cli.output import Table, print_json, print_table, print_text, say
from interlock.surfaces.cli.pairs import read_pairs
from interlock.vocabulary.errors import InvalidRequest, ServerFailed
from interlock.vocabulary.json import JsonObject, compact
from interlock.vocabulary.resource import Listing, Prompt, PromptResult
from interlock.vocabulary.snapshot import ServerView

HEADINGS = ("server", "prompt", "arguments", "description")

Listed = Listing[Prompt] | None
"""None: the server has no prompts."""


async def show(
    config: Path | None,
    server: str | None,
    name: str | None,
    arguments: Sequence[str],
    as_json: bool,
    closing: AsyncExitStack,
) -> int:
    """List, or with a name print that prompt; 1 when everybody who was asked failed."""
    if server is not None and name is not None:
        await _show_one(config, server, name, read_pairs(arguments, "--set"), as_json, closing)
        return 0
    if arguments:
        raise InvalidRequest("cannot use --set without a prompt; name the SERVER and the PROMPT as well")
    configuration = read_configuration(config, server)
    if server is None:
        answers = await ask_all(closing, configuration, _list)
    else:
        answers = Answers({server: await ask_one(closing, configuration, server, _list)}, {})
    _show_list(answers, as_json)
    return answers.status


async def _list(view: ServerView) -> tuple[Listed]:
    """In a tuple, since a server without prompts is an answer, too."""
    try:
        return (await view.connection.list_all_prompts(timeout=call_deadline(view.config)),)
    except ServerFailed as error:
        if error.kind != "unsupported":
            raise
        return (None,)


def _show_list(answers: Answers[tuple[Listed]], as_json: bool) -> None:
    listings = {name: listing for name, (listing,) in answers.given.items()}
    prompts = [(name, prompt) for name, listing in listings.items() if listing for prompt in listing.entries]
    if as_json:
        print_json(
            {
                "prompts": [{"server": name, **prompt.raw} for name, prompt in prompts],
                "offered": {name: listing is not None for name, listing in listings.items()},
                "errors": answers.errors,
            }
        )
        return
    rows = [(name, p.name, _arguments(p), p.description or p.title or "-") for name, p in prompts]
    print_table(Table(HEADINGS, rows, "no server has a prompt", names=HEADINGS[:2]))
    lacking = [name for name, listing in listings.items() if listing is None]
    if lacking:
        say(f"without prompts: {', '.join(lacking)}")
    answers.complain()


def _arguments(prompt: Prompt) -> str:
    words = [f"{a.get('name')}{'' if a.get('required') is True else '?'}" for a in prompt.arguments]
    return ", ".join(words) or "-"


async def _show_one(
    config: Path | None,
    server: str,
    name: str,
    arguments: Mapping[str, str],
    as_json: bool,
    closing: AsyncExitStack,
) -> None:
    async def ask(view: ServerView) -> PromptResult:
        return await view.connection.get_prompt(name, dict(arguments), timeout=call_deadline(view.config))

    prompt = await ask_one(closing, read_configuration(config, server), server, ask)
    if as_json:
        print_json({"server": server, "prompt": name, "description": prompt.description, "messages": prompt.messages})
        return
    for message in prompt.messages:
        print_text(_text(message))


def _text(message: JsonObject) -> str:
    """The message's words under its role; content that is no text as JSON."""
    content: Any = message.get("content")
    is_text = isinstance(content, Mapping) and isinstance(content.get("text"), str)
    return f"{message.get('role', '?')}: {content['text'] if is_text else compact(content)}"
